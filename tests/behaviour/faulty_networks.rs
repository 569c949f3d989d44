//! What networks do to streams between engines and the router, and what clients see of it: never an end that looks
//! complete and is not.

use std::time::Duration;

use isotherm_tests::{Client, Engines, Fault, FaultProxy, Metrics, Running, eventually, streamed_chat};

/// Waits for nothing longer than a second.
const IMPATIENT: &str = "timeouts: { first_byte: 1s, idle: 1s }";

/// One engine behind a network, and a router in front of it.
struct Network {
    _engines: Engines,
    proxy: FaultProxy,
    router: Running,
    _folder: tempfile::TempDir,
}

impl Network {
    async fn before(timeouts: &str) -> Network {
        let engines = Engines::start(1, &["--speed", "200"]);
        let proxy = FaultProxy::before(&engines.urls()[0]).await;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("isotherm.yaml");
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\n\
             {timeouts}\n\
             endpoints:\n  - name: chat\n    variants:\n      - name: AllTraffic\n        instances:\n          \
             - {{ id: a, url: \"{}\" }}\n",
            proxy.url()
        );
        std::fs::write(&file, text).expect("written");
        let router = Running::start(&["serve", "--config", &file.display().to_string()]);
        Network { _engines: engines, proxy, router, _folder: folder }
    }

    /// The status and the text of one stream of that many tokens; `None` where the connection broke instead.
    async fn stream(&self, tokens: u32) -> Option<(u16, String)> {
        let body = streamed_chat("A beginning.", "A question?", tokens);
        let stream = Client::new(self.router.url()).open("/v1/chat/completions", &body).await.ok()?;
        let status = stream.status.as_u16();
        Some((status, stream.rest().await.ok()?))
    }

    async fn is_idle(&self) {
        eventually("nothing is in flight", Duration::from_secs(10), async || {
            (Metrics::read(self.router.admin()).await.in_flight() == 0.0).then_some(())
        })
        .await;
    }
}

/// The text that a stream generated, and whether it says that it is whole.
fn read(stream: &str) -> (String, bool) {
    let mut text = String::new();
    let mut finished = false;
    for data in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let Ok(event) = serde_json::from_str::<serde_json::Value>(data) else { continue };
        let choice = &event["choices"][0];
        text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        finished |= choice["finish_reason"].is_string();
    }
    (text, finished)
}

#[tokio::test]
async fn a_stream_is_the_same_however_the_network_cuts_and_delays_it() {
    let network = Network::before("").await;
    let (status, whole) = network.stream(30).await.expect("a stream");
    assert_eq!((status, read(&whole).1), (200, true));
    for fault in [Fault::Slice(1), Fault::Slice(7), Fault::Slice(1_000), Fault::Delay(Duration::from_millis(3))] {
        network.proxy.set(fault);
        let (status, cut) = network.stream(30).await.expect("a stream");
        assert_eq!((status, read(&cut)), (200, read(&whole)), "{fault:?}");
        assert!(cut.ends_with("data: [DONE]\n\n"), "{fault:?}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_says_so_wherever_it_breaks() {
    let network = Network::before(IMPATIENT).await;
    // Probes and readings of the engine's figures pass there too: without them it is least.
    let mut length = u64::MAX;
    for _ in 0..5 {
        let before = network.proxy.taken();
        network.stream(30).await.expect("a stream");
        length = length.min(network.proxy.taken() - before);
    }
    for tenth in 1..10 {
        let position = length * tenth / 10;
        for fault in [Fault::Truncate(position), Fault::Reset(position), Fault::Stall(position)] {
            network.proxy.set(fault);
            let (status, text) = network.stream(30).await.expect("an answer that says what happened");
            match status {
                // It broke before its first event.
                502 | 504 => assert!(text.contains(r#""error""#), "{fault:?}: {text}"),
                // Reset, a connection may lose what came before; then it is told as one that broke at once.
                200 => {
                    assert!(!read(&text).1, "{fault:?}: looks finished: {text}");
                    assert!(text.contains(r#"data: {"error""#), "{fault:?}: {text}");
                    assert!(text.ends_with("data: [DONE]\n\n"), "{fault:?}: {text}");
                }
                other => panic!("{fault:?}: status {other}: {text}"),
            }
        }
    }
    network.proxy.set(Fault::None);
    network.is_idle().await;
}

#[tokio::test]
async fn a_flipped_bit_anywhere_leaves_the_router_whole() {
    let network = Network::before(IMPATIENT).await;
    for position in (0..4_000).step_by(97) {
        network.proxy.set(Fault::Corrupt(position));
        // Whatever it does to this answer, it comes to an end.
        let _ = tokio::time::timeout(Duration::from_secs(10), network.stream(10)).await.expect("an end");
    }
    network.proxy.set(Fault::None);
    eventually("it serves as before", Duration::from_secs(30), async || {
        let answer = network.stream(10).await;
        answer.filter(|(status, text)| *status == 200 && read(text).1).map(drop)
    })
    .await;
    network.is_idle().await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_holds_the_engine_back_and_little_memory() {
    let network = Network::before(IMPATIENT).await;
    let body = streamed_chat("A beginning.", "A question?", 30_000);
    let stream = Client::new(network.router.url()).open("/v1/chat/completions", &body).await.expect("a stream");
    // It reads nothing: what is under way fills the sockets' buffers, and then the engine waits.
    let mut taken = 0;
    eventually("the engine is held back", Duration::from_secs(30), async || {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = network.proxy.taken();
        let stands = now == taken;
        taken = now;
        stands.then_some(())
    })
    .await;
    drop(stream);
    network.is_idle().await;
}
