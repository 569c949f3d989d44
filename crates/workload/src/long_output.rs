//! Conversations with long answers, as of models that reason: engines spend their time on tokens, not on prompts.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::dialogue::{Dialogue, Ranges};
use crate::generator::{Session, Sessions};
use crate::invalid::{check_count, check_range};
use crate::pacing::users_for;
use crate::pieces::shared;
use crate::seed::{Purpose, stream};
use crate::{InvalidWorkload, Piece, SessionId, TenantId};

/// Conversations over one system prompt whose answers are longer than their questions.
#[derive(Clone, Debug, PartialEq)]
pub struct LongOutput {
    /// Closed-loop users, at least 1.
    pub users: u32,
    /// Mean think time between an answer and the next question.
    pub think: Duration,
    /// Tokens of the system prompt, at least 1.
    pub system_tokens: u32,
    /// How many questions a conversation has, at least 1.
    pub turns: RangeInclusive<u32>,
    /// Tokens of a question, at least 1.
    pub question_tokens: RangeInclusive<u32>,
    /// Tokens of an answer, at least 1.
    pub output_tokens: RangeInclusive<u32>,
}

impl LongOutput {
    /// The default for a fleet of this size: answers of 1,000 to 4,000 tokens, which keep an engine busy for half a
    /// minute, in conversations of up to 4 turns; twice as many users as for documents.
    pub fn for_instances(instances: u32) -> LongOutput {
        LongOutput {
            users: users_for(instances).saturating_mul(2),
            think: Duration::from_secs(5),
            system_tokens: 500,
            turns: 1..=4,
            question_tokens: 100..=1_000,
            output_tokens: 1_000..=4_000,
        }
    }
}

impl Sessions for LongOutput {
    fn name(&self) -> &'static str {
        "long-output"
    }

    fn check(&self) -> Result<(), InvalidWorkload> {
        check_count("the number of users", self.users)?;
        check_count("the length of the system prompt", self.system_tokens)?;
        check_range("the number of turns", &self.turns)?;
        check_range("the length of a question", &self.question_tokens)?;
        check_range("the length of an answer", &self.output_tokens)
    }

    fn users(&self) -> u32 {
        self.users
    }

    fn think(&self) -> Duration {
        self.think
    }

    fn session(&self, seed: u64, number: u64) -> Session {
        let rng = stream(seed, Purpose::Session, number);
        let system = Piece::new(shared(0), self.system_tokens);
        let ranges = Ranges {
            think: self.think,
            turns: self.turns.clone(),
            question_tokens: self.question_tokens.clone(),
            output_tokens: self.output_tokens.clone(),
        };
        Dialogue::new(SessionId(number), TenantId::default(), Some(system)).made_up(rng, ranges)
    }
}

#[cfg(test)]
mod tests {
    use crate::{LongOutput, Plan};

    #[test]
    fn answers_outweigh_questions_and_come_back_in_the_next_prompt() {
        let plan = Plan::new(LongOutput::for_instances(7), 1).unwrap();
        assert_eq!(plan.users(), 92);
        let requests: Vec<_> = plan.user(0).take(200).collect();
        assert!(requests.iter().all(|request| (1_000..=4_000).contains(&request.output_tokens)));
        let mut continued = 0;
        for [before, after] in requests.array_windows() {
            if before.session == after.session {
                continued += 1;
                let answer = after.prompt[before.prompt.len()];
                assert_eq!((answer.id, answer.tokens), (before.output, before.output_tokens));
            }
        }
        assert!((80..=150).contains(&continued), "{continued}");
    }
}
