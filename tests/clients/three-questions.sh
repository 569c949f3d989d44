#!/bin/sh
# Three questions about one policy, in the form that SageMaker's text-generation containers take.
# Usage: three-questions.sh URL
set -eu
url=$1
policy='Travel policy. Employees book economy class for journeys below six hours.'
clause=1
while [ "$clause" -le 60 ]; do
  policy="$policy Clause $clause: expenses are approved by the manager before the journey, and receipts are kept for ten years."
  clause=$((clause + 1))
done
for question in 'May I fly business class to Tokyo?' 'Who approves my hotel?' 'How long do I keep a receipt?'; do
  curl --silent --show-error --fail --max-time 30 --dump-header - "$url/invocations" \
    --header 'Content-Type: application/json' \
    --data "{\"inputs\": \"$policy\\n\\nQuestion: $question\", \"parameters\": {\"max_new_tokens\": 32}}"
  echo
done
