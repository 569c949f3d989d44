//! A process that has used up its descriptors.

use std::time::Duration;

use isotherm_tests::{Client, Engines, chat, eventually};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tokio::net::TcpStream;

use crate::serve;

#[tokio::test]
async fn without_descriptors_clients_wait_and_are_served_as_soon_as_there_are_some() {
    let engines = Engines::start(1, &["--speed", "200"]);
    let router = serve(&engines, &[]);
    let client = Client::new(router.url());
    let _ = client.post("/v1/chat/completions", &chat("A", "question?")).await.ok();
    let process = i32::try_from(router.process_id()).ok().and_then(Pid::from_raw);
    let open = std::fs::read_dir(format!("/proc/{}/fd", router.process_id())).expect("its descriptors").count() as u64;
    let limit = Rlimit { current: Some(open + 8), maximum: Some(open + 8) };
    prlimit(process, Resource::Nofile, limit).expect("a limit");
    // They take all that there is, and say nothing.
    let mut idle = Vec::new();
    for _ in 0..40 {
        idle.push(TcpStream::connect(router.url().trim_start_matches("http://")).await.expect("a connection"));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(std::fs::exists(format!("/proc/{}", router.process_id())).expect("an answer"), "it lives");
    drop(idle);
    eventually("it serves again", Duration::from_secs(20), async || {
        let answer = client.try_post("/v1/chat/completions", &chat("A", "question?")).await.ok()?;
        (answer.status == 200).then_some(())
    })
    .await;
}
