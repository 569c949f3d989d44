//! Users as a healthy service has them: questions about documents, conversations that grow, prompts that nobody shares.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{Client, chat, document, streamed_chat};

/// Documents that questions are asked about.
const DOCUMENTS: u64 = 24;

/// Ten users, each with one request after another until it is stopped.
#[derive(Debug)]
pub struct MixedTraffic {
    users: JoinSet<()>,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
}

impl MixedTraffic {
    /// Begins; each user thinks for about so long between two requests.
    pub fn start(url: &str, think: Duration) -> MixedTraffic {
        let documents: Arc<Vec<String>> = Arc::new((0..DOCUMENTS).map(|number| document(number, 1_500)).collect());
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut users = JoinSet::new();
        for user in 0..10 {
            let (client, documents) = (Client::new(url), Arc::clone(&documents));
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            users.spawn(async move {
                let mut turns = Vec::new();
                for round in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let body = request(user, round, &documents, &mut turns);
                    let answer = client.post("/v1/chat/completions", &body).await;
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    answered.fetch_add(1, Ordering::Relaxed);
                    // Not all at once.
                    tokio::time::sleep(think.mul_f64(0.5 + (user * 7 + round * 3) as f64 % 10.0 / 10.0)).await;
                }
            });
        }
        MixedTraffic { users, stop, answered }
    }

    /// How many requests were answered so far.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Lets what is under way end; panics if any request had failed.
    pub async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.users.join_all().await;
    }
}

fn request(user: u64, round: u64, documents: &[String], turns: &mut Vec<Value>) -> Value {
    match user {
        // Nobody else asks this.
        0 => chat(&document(1_000_000 + round, 300), "What is it about?"),
        // A conversation of twelve turns, then another one.
        1 | 2 => {
            if turns.len() > 24 {
                turns.clear();
            }
            if turns.is_empty() {
                let system = document(2_000_000 + user * 100_000 + round, 400);
                turns.push(json!({ "role": "system", "content": system }));
            } else {
                turns.push(json!({ "role": "assistant", "content": format!("So it is, {round} times.") }));
            }
            turns.push(json!({ "role": "user", "content": format!("And then, for the {round}th time?") }));
            json!({ "messages": turns, "max_tokens": 16 })
        }
        user => {
            let document = &documents[((user * 5 + round * 7) % DOCUMENTS) as usize];
            let question = format!("User {user}, question {round}?");
            if user % 2 == 0 { streamed_chat(document, &question, 16) } else { chat(document, &question) }
        }
    }
}
