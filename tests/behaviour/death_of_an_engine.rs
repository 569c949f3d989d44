//! An engine that dies: what had no answer yet is answered by others, and its prefixes come home when it is back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use isotherm_tests::{Client, Engines, chat, document, eventually, streamed_chat};
use tokio::task::JoinSet;

use crate::serve;

const DOCUMENTS: u64 = 48;

#[tokio::test]
async fn nothing_without_a_body_byte_fails_and_prefixes_spread_and_come_home() {
    let mut engines = Engines::start(4, &["--speed", "10"]);
    let router = serve(&engines, &[]);
    let client = Client::new(router.url());
    let documents: Arc<Vec<String>> = Arc::new((0..DOCUMENTS).map(|number| document(number, 1_200)).collect());

    let homes = homes(&client, &documents).await;
    let victim = Engines::id(0);
    let moved: Vec<usize> = (0..documents.len()).filter(|index| homes[index] == victim).collect();
    assert!(moved.len() >= 4, "{} of {DOCUMENTS} documents live on {victim}", moved.len());

    let stop = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicUsize::new(0));
    let load = load(&client, &documents, &stop, &done);
    let further = async |requests: usize| {
        let before = done.load(Ordering::Relaxed);
        eventually("requests are done with", Duration::from_secs(60), async || {
            (done.load(Ordering::Relaxed) >= before + requests).then_some(())
        })
        .await;
    };
    further(100).await;
    engines.kill(0);
    further(200).await;
    stop.store(true, Ordering::Relaxed);
    let (mut answered, mut failed) = (0, Vec::new());
    for outcome in load.join_all().await.into_iter().flatten() {
        match outcome {
            Outcome::Answered => answered += 1,
            Outcome::CutInTheBody => {}
            Outcome::Failed(how) => failed.push(how),
        }
    }
    assert!(answered > 100, "too little load: {answered} requests");
    assert!(failed.is_empty(), "{failed:?}");

    let after = self::homes(&client, &documents).await;
    let heirs: BTreeSet<&String> = moved.iter().map(|index| &after[index]).collect();
    assert_eq!(heirs.len(), 3, "its prefixes spread over {heirs:?}");
    for (index, home) in &homes {
        assert!(moved.contains(index) || after[index] == *home, "document {index} had no reason to move");
    }

    engines.restart(0);
    eventually("its prefixes come home", Duration::from_secs(30), async || {
        let now = self::homes(&client, &documents).await;
        (now == homes).then_some(())
    })
    .await;
}

/// Which instance answers for each document.
async fn homes(client: &Client, documents: &Arc<Vec<String>>) -> BTreeMap<usize, String> {
    let mut homes = BTreeMap::new();
    for (index, document) in documents.iter().enumerate() {
        let answer = client.post("/v1/chat/completions", &chat(document, "Where is your home?")).await.ok();
        homes.insert(index, answer.instance());
    }
    homes
}

/// What became of a request.
enum Outcome {
    Answered,
    /// Bytes of the answer had been passed on when it was cut.
    CutInTheBody,
    Failed(String),
}

/// Sixteen clients, half of them streaming, each with one request after another until `stop`, counted once it is `done`.
fn load(
    client: &Client,
    documents: &Arc<Vec<String>>,
    stop: &Arc<AtomicBool>,
    done: &Arc<AtomicUsize>,
) -> JoinSet<Vec<Outcome>> {
    let mut load = JoinSet::new();
    for user in 0..16 {
        let (client, documents) = (client.clone(), Arc::clone(documents));
        let (stop, done) = (Arc::clone(stop), Arc::clone(done));
        load.spawn(async move {
            let mut outcomes = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let document = &documents[(user * 7 + outcomes.len() * 5) % documents.len()];
                let question = format!("User {user}, question {}?", outcomes.len());
                outcomes.push(if user % 2 == 0 {
                    whole(&client, document, &question).await
                } else {
                    streamed(&client, document, &question).await
                });
                done.fetch_add(1, Ordering::Relaxed);
            }
            outcomes
        });
    }
    load
}

/// A request for one JSON body: its first byte comes with its last, so nothing may be cut.
async fn whole(client: &Client, document: &str, question: &str) -> Outcome {
    match client.try_post("/v1/chat/completions", &chat(document, question)).await {
        Ok(answer) if answer.status == 200 => Outcome::Answered,
        Ok(answer) => Outcome::Failed(format!("{}: {}", answer.status, answer.text())),
        Err(broken) => Outcome::Failed(broken.to_string()),
    }
}

async fn streamed(client: &Client, document: &str, question: &str) -> Outcome {
    let stream = match client.open("/v1/chat/completions", &streamed_chat(document, question, 40)).await {
        Ok(stream) if stream.status == 200 => stream,
        Ok(stream) => return Outcome::Failed(format!("status {}", stream.status)),
        Err(broken) => return Outcome::Failed(broken.to_string()),
    };
    match stream.rest().await {
        Ok(text) if text.starts_with("data: {\"error\"") => Outcome::Failed(text),
        Ok(text) if text.contains("\"error\"") => {
            assert!(text.ends_with("data: [DONE]\n\n"), "a cut stream ends as clients expect: {text}");
            Outcome::CutInTheBody
        }
        Ok(_) => Outcome::Answered,
        Err(broken) => Outcome::Failed(broken.to_string()),
    }
}
