//! More requests than there is room for: who waits, who goes first, and who is told to come back later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::client::{Client, chat, post};
use crate::identity::keys;
use crate::origin::{Origin, Step, json};
use crate::router::Router;
use crate::stopwatch::Stopwatch;

/// An instance that takes one request at a time and answers when it is told to.
struct OneAtATime {
    origin: Origin,
    router: Router,
    leave: Arc<Notify>,
}

impl OneAtATime {
    async fn new(top: &str) -> OneAtATime {
        let leave = Arc::new(Notify::new());
        let steps = vec![Step::Wait(Arc::clone(&leave)), Step::Send(json(200, "{}").into_bytes())];
        let origin = Origin::start(move |_| steps.clone()).await;
        let instances = format!("        instances: [{{ id: a, url: \"{}\", max_in_flight: 1 }}]\n", origin.url());
        let router = Router::with_variant(&instances, top);
        OneAtATime { origin, router, leave }
    }

    /// Sends a request and waits until it runs.
    async fn busy(&self) -> Client {
        let client = self.ask(chat("first")).await;
        self.origin.asked(1).await;
        client
    }

    async fn ask(&self, request: String) -> Client {
        let mut client = self.router.connect().await;
        client.send(request).await;
        client
    }

    /// Sends requests that wait, one after the other.
    async fn queue(&self, requests: Vec<String>) -> Vec<Client> {
        let before = self.waiting();
        let mut clients = Vec::new();
        for request in requests {
            clients.push(self.ask(request).await);
            self.until_waiting(before + clients.len() as f64).await;
        }
        clients
    }

    fn waiting(&self) -> f64 {
        self.router.metric("isotherm_waiting_requests", &[])
    }

    async fn until_waiting(&self, count: f64) {
        self.router.counts("isotherm_waiting_requests", &[], count).await;
    }

    /// Lets all that wait be answered, and tells in which order they were sent on.
    async fn order(&self, count: usize) -> Vec<String> {
        for answered in 1..=count + 1 {
            self.origin.asked(answered).await;
            self.leave.notify_one();
        }
        let text = |body: &[u8]| {
            let body = String::from_utf8_lossy(body).into_owned();
            body.split_once(r#""content":""#).unwrap().1.split('"').next().unwrap().to_owned()
        };
        self.origin.seen()[1..].iter().map(|seen| text(&seen.body)).collect()
    }
}

fn prioritised(text: &str, priority: &str) -> String {
    post(
        "/v1/chat/completions",
        &format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}],"priority":{priority}}}"#),
    )
}

fn with_header(request: &str, header: &str) -> String {
    request.replacen("host: router", &format!("host: router\r\n{header}"), 1)
}

#[tokio::test]
async fn a_lower_priority_goes_first_and_nonsense_is_the_middle() {
    let one = OneAtATime::new("").await;
    let _busy = one.busy().await;
    let requests = [("late", "7"), ("plain", "null"), ("odd", "\"high\""), ("early", "-3")];
    let _clients = one.queue(requests.map(|(text, priority)| prioritised(text, priority)).to_vec()).await;
    assert_eq!(one.order(4).await, ["early", "plain", "odd", "late"]);
}

#[tokio::test]
async fn tenants_get_room_in_turn() {
    use sha2::{Digest, Sha256};
    let hash = |key: &str| Sha256::digest(key).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let lines = format!("a sha256:{} tenant=greedy\nb sha256:{} tenant=modest\n", hash("sk-a"), hash("sk-b"));
    let (_file, top) = keys(&lines);
    let one = OneAtATime::new(&top).await;
    let of = |key: &str, text: &str| with_header(&chat(text), &format!("x-api-key: {key}"));
    let _busy = one.ask(of("sk-a", "first")).await;
    one.origin.asked(1).await;
    let requests = vec![of("sk-a", "a1"), of("sk-a", "a2"), of("sk-a", "a3"), of("sk-b", "b1"), of("sk-b", "b2")];
    let _clients = one.queue(requests).await;
    assert_eq!(one.order(5).await, ["a1", "b1", "a2", "b2", "a3"]);
}

#[tokio::test]
async fn a_request_whose_deadline_passes_is_shed_then_and_not_sent() {
    let one = OneAtATime::new("").await;
    let _busy = one.busy().await;
    let (asked, stopwatch) = (Instant::now(), Stopwatch::start());
    let mut client = one.ask(with_header(&chat("soon"), "x-isotherm-deadline-ms: 150")).await;
    let answer = client.answer().await;
    assert!(asked.elapsed() >= Duration::from_millis(150), "{:?}", asked.elapsed());
    assert!(stopwatch.elapsed() < Duration::from_secs(1), "{:?}", stopwatch.elapsed());
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    assert!(answer.text().contains("150ms"), "{}", answer.text());
    one.router.counts("isotherm_shed_requests_total", &["deadline"], 1.0).await;
    assert_eq!(one.origin.seen().len(), 1);
    assert_eq!(one.waiting(), 0.0);
    let answer = one.router.ask(with_header(&chat("x"), "x-isotherm-deadline-ms: soon")).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("whole number of milliseconds"), "{}", answer.text());
}

#[tokio::test]
async fn the_bytes_that_wait_are_bounded_and_who_stands_last_is_shed_at_once() {
    let one = OneAtATime::new("limits: { queue: { max_bytes: 4KiB } }\n").await;
    let _busy = one.busy().await;
    let mut large = one.queue(vec![prioritised(&"x".repeat(3_000), "1")]).await;
    let mut took = Vec::new();
    for _ in 0..20 {
        let asked = Instant::now();
        let shed = one.router.ask(prioritised(&"y".repeat(3_000), "1")).await;
        assert_eq!((shed.status, shed.header("retry-after")), (429, Some("1")), "{}", shed.text());
        took.push(asked.elapsed());
    }
    took.sort_unstable();
    assert!(took[10] < Duration::from_millis(10), "{took:?}");
    // One that goes before it takes its place.
    let _urgent = one.ask(prioritised(&"z".repeat(3_000), "0")).await;
    assert_eq!(large[0].answer().await.status, 429);
    one.until_waiting(1.0).await;
    assert_eq!(one.order(1).await[0].len(), 3_000);
}

#[tokio::test]
async fn a_flood_of_ten_times_what_fits_is_answered_or_shed_and_leaves_nothing() {
    let answer = vec![Step::Pause(Duration::from_millis(5)), Step::Send(json(200, "{}").into_bytes())];
    let origin = Origin::start(move |_| answer.clone()).await;
    let instances = format!("        instances: [{{ id: a, url: \"{}\", max_in_flight: 4 }}]\n", origin.url());
    let top = "limits: { queue: { max_waiting: 16, timeout: 30s } }\n";
    let router = Arc::new(Router::with_variant(&instances, top));
    let begun = Stopwatch::start();
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..200 {
        let router = Arc::clone(&router);
        clients.spawn(async move { router.ask(chat(&number.to_string())).await.status });
    }
    let statuses = clients.join_all().await;
    let count = |status| statuses.iter().filter(|&&one| one == status).count();
    assert_eq!(count(200) + count(429), 200, "{statuses:?}");
    assert!(count(200) >= 20, "those that fit and those that may wait are served: {}", count(200));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(origin.seen().len(), count(200));
    router.idle().await;
    router.counts("isotherm_waiting_requests", &[], 0.0).await;
}
