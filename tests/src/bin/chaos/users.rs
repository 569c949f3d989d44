//! Users that ask, wait, and sometimes leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use isotherm_tests::{Client, chat, document, streamed_chat};
use tokio::task::JoinSet;

use crate::faults::Random;
use crate::ledger::{Ending, Ledger};

const DOCUMENTS: u64 = 30;
/// No request may take longer: the router's own time-outs end it before.
const LONGEST: Duration = Duration::from_secs(30);

pub(crate) struct Users {
    users: JoinSet<()>,
    stop: Arc<AtomicBool>,
}

impl Users {
    pub(crate) fn start(url: &str, count: usize, seed: u64, ledger: &Arc<Ledger>) -> Users {
        let (stop, number) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut users = JoinSet::new();
        for user in 0..count as u64 {
            let (url, stop, number, ledger) =
                (url.to_owned(), Arc::clone(&stop), Arc::clone(&number), Arc::clone(ledger));
            users.spawn(async move {
                let mut random = Random::new(seed ^ (user << 32));
                while !stop.load(Ordering::Relaxed) {
                    let id = format!("chaos-{}", number.fetch_add(1, Ordering::Relaxed));
                    let asking = ask(&url, &id, &mut random, &ledger);
                    match tokio::time::timeout(LONGEST, asking).await {
                        Ok(ending) => ledger.ended(&id, ending),
                        Err(_) => ledger.is_wrong(format!("{id} did not end within {LONGEST:?}")),
                    }
                    tokio::time::sleep(Duration::from_millis(random.between(0, 60))).await;
                }
            });
        }
        Users { users, stop }
    }

    /// Lets every user finish.
    pub(crate) async fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        while self.users.join_next().await.is_some() {}
    }
}

async fn ask(url: &str, id: &str, random: &mut Random, ledger: &Ledger) -> Ending {
    let client = Client::new(url).with_header("x-request-id", id);
    let document = document(random.between(0, DOCUMENTS), 400);
    let question = format!("{id}?");
    let leaves = random.one_in(8).then(|| Duration::from_millis(random.between(1, 120)));
    let asking = async {
        if random.one_in(3) {
            whole(&client, &document, &question).await
        } else {
            stream(&client, &document, &question, id, ledger).await
        }
    };
    match leaves {
        None => asking.await,
        Some(after) => tokio::time::timeout(after, asking).await.unwrap_or(Ending::Left),
    }
}

async fn whole(client: &Client, document: &str, question: &str) -> Ending {
    match client.try_post("/v1/chat/completions", &chat(document, question)).await {
        Ok(answer) if answer.status == 200 => Ending::Whole,
        Ok(answer) => Ending::Status(answer.status.as_u16()),
        Err(_) => Ending::Broken,
    }
}

async fn stream(client: &Client, document: &str, question: &str, id: &str, ledger: &Ledger) -> Ending {
    let body = streamed_chat(document, question, 40);
    let Ok(stream) = client.open("/v1/chat/completions", &body).await else { return Ending::Broken };
    if stream.status != 200 {
        return Ending::Status(stream.status.as_u16());
    }
    let Ok(text) = stream.rest().await else { return Ending::Broken };
    let finished = text.contains(r#""finish_reason":"length""#) || text.contains(r#""finish_reason":"stop""#);
    let has_error = text.contains("data: {\"error\"");
    match (finished, has_error) {
        (_, true) => Ending::ErrorEvent,
        (true, false) => Ending::Whole,
        (false, false) => {
            ledger.is_wrong(format!("{id}: its stream broke off without a word: {text:?}"));
            Ending::Broken
        }
    }
}
