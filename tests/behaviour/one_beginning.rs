//! Requests that begin alike go to one instance, and find its cache warm.

use std::collections::BTreeSet;

use isotherm_tests::{Client, chat, document};

use crate::up;

/// 40 questions about one document of 8,000 tokens, one after another: who answered, and which share of the prompt
/// tokens came from the cache.
async fn ask_forty_questions(strategy: &str) -> (BTreeSet<String>, f64) {
    let up = up(&["--engines", "4", "--speed", "100", "--strategy", strategy]);
    let client = Client::new(up.url());
    let document = document(1, 8_000);
    let mut instances = BTreeSet::new();
    let (mut prompt_tokens, mut cached_tokens) = (0, 0);
    for number in 0..40 {
        let question = format!("Question {number}: what does the document say about it?");
        let answer = client.post("/v1/chat/completions", &chat(&document, &question)).await.ok();
        instances.insert(answer.instance());
        let (prompt, cached) = answer.usage();
        prompt_tokens += prompt;
        cached_tokens += cached;
    }
    assert!(prompt_tokens > 40 * 7_000, "the prompts were long: {prompt_tokens} tokens");
    (instances, cached_tokens as f64 / prompt_tokens as f64)
}

#[tokio::test]
async fn prefix_aware_answers_all_from_one_warm_instance() {
    let (instances, hit_rate) = ask_forty_questions("prefix-aware").await;
    assert_eq!(instances.len(), 1, "{instances:?}");
    assert!(hit_rate >= 0.9, "hit rate {hit_rate}");
}

#[tokio::test]
async fn random_scatters_them_over_all_instances() {
    let (instances, hit_rate) = ask_forty_questions("random").await;
    assert_eq!(instances.len(), 4, "{instances:?}");
    assert!(hit_rate < 0.95, "four instances had to compute the document, hit rate {hit_rate}");
}
