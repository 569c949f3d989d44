//! One process takes over from another on a socket that outlives both: no client is refused or reset.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use isotherm_tests::{Client, Engines, Running, chat, streamed_chat};
use tokio::task::JoinSet;

/// At least so often, and as often as it takes until so many connections were made.
const SWAPS: usize = 3;
const CONNECTIONS: u32 = 10_000;

// Clients go on while the test waits for a process to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_follow_each_other_on_one_socket_refuse_nobody() {
    let engines = Engines::start(2, &["--speed", "100"]);
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut arguments: Vec<String> = ["serve", "--port", "0", "--admin-port", "0"].map(str::to_owned).into();
    arguments.extend(engines.instance_flags());
    let mut serving = Running::start_on(&socket, &arguments);
    let url = serving.url().to_owned();
    assert_eq!(url, format!("http://{}", socket.local_addr().expect("an address")));

    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let mut users = JoinSet::new();
    for user in 0..8u32 {
        let (client, stop, answered) = (Client::new(&url), Arc::clone(&stop), Arc::clone(&answered));
        users.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let question = format!("Question of {user}?");
                if user.is_multiple_of(2) {
                    let answer = client.post("/v1/chat/completions", &chat("A", &question)).await;
                    assert_eq!(answer.status, 200, "{}", answer.text());
                } else {
                    let body = streamed_chat("A", &question, 20);
                    let stream = client.open("/v1/chat/completions", &body).await.expect("a connection");
                    assert_eq!(stream.status, 200);
                    let text = stream.rest().await.expect("a whole stream");
                    assert!(text.ends_with("data: [DONE]\n\n") && !text.contains("\"error\""), "{text}");
                }
                answered.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let knocked = Arc::new(AtomicU32::new(0));
    for _ in 0..4 {
        let (client, stop, knocked) = (Client::new(&url), Arc::clone(&stop), Arc::clone(&knocked));
        users.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(client.get("/health").await.status, 200);
                knocked.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let mut swaps = 0;
    while swaps < SWAPS || knocked.load(Ordering::Relaxed) < CONNECTIONS {
        swaps += 1;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let next = Running::start_on(&socket, &arguments);
        serving.interrupt();
        let ended = serving.wait(Duration::from_secs(20));
        assert!(ended.success(), "{}", serving.output());
        serving = next;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::Relaxed);
    users.join_all().await;
    assert!(answered.load(Ordering::Relaxed) > 100, "too little load: {}", answered.load(Ordering::Relaxed));
}

#[test]
fn a_socket_that_listens_elsewhere_than_configured_is_refused() {
    let socket = TcpListener::bind("127.0.0.2:0").expect("a free port");
    let arguments = ["serve", "--port", "0", "--admin-port", "0", "--instance", "http://127.0.0.1:1"];
    let refused = std::panic::catch_unwind(|| Running::start_on(&socket, &arguments)).expect_err("it started");
    let words = refused.downcast_ref::<String>().map(String::as_str).unwrap_or_default();
    assert!(words.contains("make them the same"), "{words}");
}
