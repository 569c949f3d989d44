//! The retry rules, each with the number of times that instances are asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use isotherm_core::Availability;
use tokio::sync::Notify;

use crate::client::{Answer, chat};
use crate::origin::{END, EVENTS, Origin, Seen, Step, chunk, json, nobody};
use crate::router::Router;

/// Two instances; whichever is asked first plays `first`, every later request is answered by `later`.
struct Pair {
    origins: [Origin; 2],
    router: Router,
}

impl Pair {
    async fn new(first: Vec<Step>, later: Vec<Step>, top: &str) -> Pair {
        let asked = Arc::new(AtomicUsize::new(0));
        let script = move |_: &Seen| match asked.fetch_add(1, Ordering::SeqCst) {
            0 => first.clone(),
            _ => later.clone(),
        };
        let script = Arc::new(script);
        let (one, other) = (Arc::clone(&script), script);
        let origins = [Origin::start(move |seen| one(seen)).await, Origin::start(move |seen| other(seen)).await];
        let router = Router::before(&[&origins[0], &origins[1]], top);
        Pair { origins, router }
    }

    async fn ask(&self) -> Answer {
        let answer = self.router.ask(chat("x")).await;
        self.router.idle().await;
        answer
    }

    /// How often each was asked, the one that was asked more first.
    fn asked(&self) -> [usize; 2] {
        let mut asked = [self.origins[0].seen().len(), self.origins[1].seen().len()];
        asked.sort_unstable_by(|a, b| b.cmp(a));
        asked
    }
}

fn send(text: &str) -> Vec<Step> {
    vec![Step::Send(text.as_bytes().to_vec())]
}

fn send_and_close(text: &str) -> Vec<Step> {
    vec![Step::Send(text.as_bytes().to_vec()), Step::Close]
}

#[tokio::test]
async fn a_refused_connection_goes_to_the_next_in_order_and_needs_no_budget() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let dead: Vec<String> = (0..3).map(|_| format!("http://{}", nobody())).collect();
    let router = Router::before_urls(&[&dead[..], &[origin.url()]].concat(), "");
    for text in 0..8 {
        let answer = router.ask(chat(&format!("{text}"))).await;
        assert_eq!((answer.status, answer.header("x-isotherm-instance")), (200, Some("d")));
    }
    assert_eq!(origin.seen().len(), 8);
    // Down at once: each was tried at most once.
    assert!(router.metric("isotherm_retries_total", &["connect"]) <= 3.0);
    let down = ["a", "b", "c"].into_iter().filter(|id| router.availability(id) == Availability::Down).count();
    assert!(down >= 1);
    assert_eq!(router.metric("isotherm_retries_total", &["resend"]), 0.0);
}

#[tokio::test]
async fn a_retry_says_so() {
    let pair = Pair::new(send(&json(503, "{}")), send(&json(200, "{}")), "").await;
    let answer = pair.ask().await;
    assert_eq!((answer.status, answer.header("x-isotherm-reason")), (200, Some("retry")));
    assert_ne!(answer.header("x-isotherm-instance"), answer.header("x-isotherm-home"));
}

#[tokio::test]
async fn server_errors_and_429_are_resent_once() {
    for status in [500, 502, 503, 429] {
        let pair = Pair::new(send(&json(status, "{}")), send(&json(200, "{\"ok\":1}")), "").await;
        let answer = pair.ask().await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "{\"ok\":1}"), "{status}");
        assert_eq!(pair.asked(), [1, 1], "{status}");
    }
}

#[tokio::test]
async fn when_the_resend_fails_too_its_answer_is_passed_on_unchanged() {
    let pair = Pair::new(send(&json(500, "first")), send(&json(503, "second")), "").await;
    let answer = pair.ask().await;
    assert_eq!((answer.status, answer.text().as_str()), (503, "second"));
    assert_eq!(pair.asked(), [1, 1]);
}

#[tokio::test]
async fn without_another_instance_the_failed_answer_is_passed_on() {
    let origin = Origin::answering(&json(500, "only")).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(chat("x")).await;
    assert_eq!((answer.status, answer.text().as_str()), (500, "only"));
    assert_eq!(origin.seen().len(), 1);
}

#[tokio::test]
async fn other_client_errors_are_never_resent() {
    for status in [400, 401, 404, 409, 422] {
        let pair = Pair::new(send(&json(status, "no")), send(&json(200, "{}")), "").await;
        assert_eq!(pair.ask().await.status, status);
        assert_eq!(pair.asked(), [1, 0]);
    }
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_body_is_resent_once() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n";
    for broken in ["", "HTTP/1.1 20", head, EVENTS, &(EVENTS.to_owned() + &chunk(": comment\n\n"))] {
        let pair = Pair::new(send_and_close(broken), send(&json(200, "{}")), "").await;
        assert_eq!(pair.ask().await.status, 200, "{broken:?}");
        assert_eq!(pair.asked(), [1, 1], "{broken:?}");
    }
}

#[tokio::test]
async fn when_that_breaks_again_the_client_is_told_not_to_try_by_itself() {
    let pair = Pair::new(vec![Step::Close], vec![Step::Close], "").await;
    let answer = pair.ask().await;
    assert_eq!((answer.status, answer.header("x-should-retry")), (502, Some("false")));
    assert!(answer.text().contains(r#""code":"bad_gateway""#), "{}", answer.text());
    assert_eq!(pair.asked(), [1, 1]);
}

#[tokio::test]
async fn a_first_byte_that_does_not_come_is_504_and_never_resent() {
    for begun in ["", EVENTS] {
        let steps = vec![Step::Send(begun.as_bytes().to_vec()), Step::Hang];
        let pair = Pair::new(steps, send(&json(200, "{}")), "timeouts: { first_byte: 100ms }\n").await;
        let answer = pair.ask().await;
        assert_eq!((answer.status, answer.header("x-should-retry")), (504, Some("false")));
        assert_eq!(pair.asked(), [1, 0]);
        let hung = if pair.origins[0].seen().is_empty() { &pair.origins[1] } else { &pair.origins[0] };
        hung.left().await;
    }
}

#[tokio::test]
async fn the_total_time_out_is_504_and_never_resent() {
    let pair = Pair::new(vec![Step::Hang], send(&json(200, "{}")), "timeouts: { total: 1s }\n").await;
    assert_eq!(pair.ask().await.status, 504);
    assert_eq!(pair.asked(), [1, 0]);
}

#[tokio::test]
async fn after_the_first_byte_nothing_is_resent() {
    let event = "data: {\"choices\":[]}\n\n";
    let begun = EVENTS.to_owned() + &chunk(event);
    let pair = Pair::new(send_and_close(&begun), send(&json(200, "{}")), "").await;
    let answer = pair.ask().await;
    assert_eq!((answer.status, answer.complete, answer.header("x-should-retry")), (200, true, None));
    assert_eq!(pair.asked(), [1, 0]);
    pair.router.counts("isotherm_upstream_errors_total", &["truncated"], 1.0).await;
    // The client is told that it broke off; nothing is made up about how it ended or what it cost.
    let text = answer.text();
    let rest = text.strip_prefix(event).unwrap();
    assert!(rest.starts_with("data: {\"error\":{") && rest.ends_with("}}\n\ndata: [DONE]\n\n"), "{rest}");
    assert!(!rest.contains("finish_reason") && !rest.contains("usage") && !rest.contains("choices"), "{rest}");
}

#[tokio::test]
async fn an_error_event_of_both_is_told_as_the_second_ones_status() {
    let stream = |code: u16| {
        let event = format!("data: {{\"error\":{{\"message\":\"{code}\",\"code\":{code}}}}}\n\n");
        EVENTS.to_owned() + &chunk(&event) + &chunk("data: [DONE]\n\n") + END
    };
    let pair = Pair::new(send(&stream(500)), send(&stream(503)), "").await;
    let answer = pair.ask().await;
    assert_eq!((answer.status, answer.header("content-type")), (503, Some("application/json")));
    assert_eq!(answer.text(), r#"{"error":{"message":"503","code":503}}"#);
    assert_eq!(pair.asked(), [1, 1]);
}

#[tokio::test]
async fn how_long_an_instance_wants_to_be_left_alone_is_told_to_the_client() {
    let busy = json(429, "{}").replacen("\r\n", "\r\nretry-after: 7\r\nretry-after-ms: 6500\r\n", 1);
    let pair = Pair::new(send(&busy), send(&busy), "").await;
    let answer = pair.ask().await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("7")));
    assert_eq!(answer.header("retry-after-ms"), Some("6500"));
    assert_eq!(pair.asked(), [1, 1]);
}

#[tokio::test]
async fn what_comes_after_the_clients_deadline_is_not_resent() {
    // Early enough to be placed within either, however busy the machine is.
    let late = vec![Step::Pause(Duration::from_millis(1_100)), Step::Send(json(503, "late").into_bytes())];
    for (deadline, asked) in [("1000", [1, 0]), ("60000", [1, 1])] {
        let pair = Pair::new(late.clone(), send(&json(200, "{}")), "").await;
        let request = chat("x").replacen("host:", &format!("x-isotherm-deadline-ms: {deadline}\r\nhost:"), 1);
        let answer = pair.router.ask(request).await;
        assert_eq!(answer.status, if deadline == "1000" { 503 } else { 200 });
        assert_eq!(pair.asked(), asked, "within {deadline} ms");
    }
}

#[tokio::test]
async fn a_body_that_was_taken_in_part_is_sent_again_whole() {
    // Each reads a part of the first body that any of them gets, and breaks off.
    let broken = Arc::new(AtomicUsize::new(0));
    let whole = Arc::new(Mutex::new(Vec::new()));
    let mut urls = Vec::new();
    for _ in 0..2 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        urls.push(format!("http://{}", listener.local_addr().unwrap()));
        let (broken, whole) = (Arc::clone(&broken), Arc::clone(&whole));
        tokio::spawn(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut read = vec![0; 100_000];
                stream.read_exact(&mut read).await.unwrap();
                if broken.fetch_add(1, Ordering::SeqCst) == 0 {
                    continue;
                }
                while !read.ends_with(b"the end\"}]}") {
                    stream.read_buf(&mut read).await.unwrap();
                }
                stream.write_all(json(200, "{}").as_bytes()).await.unwrap();
                *whole.lock().unwrap() = read;
            }
        });
    }
    let router = Router::before_urls(&urls, "");
    let request = chat(&("x".repeat(8 << 20) + "the end"));
    let answer = router.ask(&request).await;
    assert_eq!((answer.status, broken.load(Ordering::SeqCst)), (200, 2), "{}", answer.text());
    let body = request.split_once("\r\n\r\n").unwrap().1;
    assert!(whole.lock().unwrap().ends_with(body.as_bytes()));
}

#[tokio::test]
async fn what_is_no_http_is_502_and_not_resent() {
    let pair = Pair::new(send_and_close("SSH-2.0-OpenSSH_9.2\r\n\r\n"), send(&json(200, "{}")), "").await;
    assert_eq!(pair.ask().await.status, 502);
    assert_eq!(pair.asked(), [1, 0]);
}

#[tokio::test]
async fn an_error_as_first_event_becomes_its_status() {
    let event = r#"{"error":{"message":"too long","type":"BadRequestError","param":null,"code":400}}"#;
    let stream = EVENTS.to_owned() + &chunk(&format!("data: {event}\n\n")) + &chunk("data: [DONE]\n\n") + END;
    for steps in [send(&stream), vec![Step::Drip(stream.clone().into_bytes())]] {
        let pair = Pair::new(steps, send(&json(200, "{}")), "").await;
        let answer = pair.ask().await;
        assert_eq!((answer.status, answer.text().as_str()), (400, event));
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(pair.asked(), [1, 0]);
    }
}

#[tokio::test]
async fn a_server_error_as_first_event_is_resent() {
    let event =
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n";
    let stream = EVENTS.to_owned() + &chunk(": hold on\n\n") + &chunk(event);
    let pair = Pair::new(send(&stream), send(&json(200, "{}")), "").await;
    assert_eq!(pair.ask().await.status, 200);
    assert_eq!(pair.asked(), [1, 1]);
    pair.router.counts("isotherm_upstream_errors_total", &["error_event"], 1.0).await;
}

#[tokio::test]
async fn a_later_error_event_passes_as_it_is() {
    let events = "data: {\"choices\":[]}\n\ndata: {\"error\":{\"code\":500}}\n\ndata: [DONE]\n\n";
    let pair = Pair::new(send(&(EVENTS.to_owned() + &chunk(events) + END)), send(&json(200, "{}")), "").await;
    let answer = pair.ask().await;
    assert_eq!((answer.status, answer.text().as_str()), (200, events));
    assert_eq!(pair.asked(), [1, 0]);
}

#[tokio::test]
async fn a_reused_connection_that_was_just_closed_is_replaced_without_blame() {
    // Each connection carries one request; the second breaks without a byte, as when an engine closes an idle one.
    let origin = Origin::start(|seen| {
        static BEFORE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
        let mut before = BEFORE.lock().unwrap();
        if before.contains(&seen.connection) {
            return vec![Step::Close];
        }
        before.push(seen.connection);
        vec![Step::Send(json(200, "{}").into_bytes())]
    })
    .await;
    let router = Router::before(&[&origin], "");
    for _ in 0..6 {
        assert_eq!(router.ask(chat("x")).await.status, 200);
    }
    // The first on a fresh connection; then, by turns, one that breaks and a fresh one.
    assert_eq!((origin.seen().len(), origin.connections()), (11, 6));
    router.counts("isotherm_retries_total", &["reused_connection"], 5.0).await;
    assert_eq!(router.metric("isotherm_upstream_errors_total", &[]), 0.0);
    assert_eq!(router.availability("a"), Availability::Up);
}

#[tokio::test]
async fn a_reused_connection_closed_while_idle_is_not_used() {
    let leave = Arc::new(Notify::new());
    let steps = vec![Step::Send(json(200, "{}").into_bytes()), Step::Wait(Arc::clone(&leave)), Step::Close];
    let origin = Origin::start(move |_| steps.clone()).await;
    let router = Router::before(&[&origin], "");
    for number in 1..=3 {
        assert_eq!(router.ask(chat("x")).await.status, 200);
        router.idle().await;
        leave.notify_one();
        origin.closed(number).await;
    }
    assert_eq!((origin.seen().len(), origin.connections()), (3, 3));
    assert_eq!(router.metric("isotherm_retries_total", &["reused_connection"]), 0.0);
}

#[tokio::test]
async fn connections_are_reused_within_their_time_and_not_beyond() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    for _ in 0..5 {
        assert_eq!(router.ask(chat("x")).await.status, 200);
    }
    assert_eq!(origin.connections(), 1);
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "timeouts: { pool_idle: 50ms }\n");
    for connections in 1..=2 {
        assert_eq!(router.ask(chat("x")).await.status, 200);
        assert_eq!(origin.connections(), connections);
        tokio::time::sleep(Duration::from_millis(80)).await;
    }
}

#[tokio::test]
async fn resends_stop_when_their_budget_is_used_up() {
    let first = Origin::answering(&json(503, "{}")).await;
    let second = Origin::answering(&json(503, "{}")).await;
    let router = Router::before(&[&first, &second], "");
    let mut client = router.connect().await;
    let begun = Instant::now();
    for _ in 0..300 {
        client.send(chat("x")).await;
        assert_eq!(client.answer().await.status, 503);
    }
    let resent = first.seen().len() + second.seen().len() - 300;
    // 100 to begin with, one in five requests, ten a second.
    let most = 100 + 60 + 10 * (begun.elapsed().as_secs() as usize + 1);
    assert!((100..=most).contains(&resent), "{resent} of at most {most}");
    router.counts("isotherm_resends_refused_total", &[], 300.0 - resent as f64).await;
}

#[tokio::test]
async fn an_early_refusal_of_a_large_body_is_passed_on() {
    // The instance answers before it has read the body, and closes.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let instance = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 1_000];
        stream.read_exact(&mut head).await.unwrap();
        stream.write_all(json(413, "too large").as_bytes()).await.unwrap();
        // Reads nothing more, and closes nothing that was not read: that would be a reset, which takes the answer along.
        std::future::pending::<()>().await;
    });
    let router = Router::before_urls(&[url], "");
    let answer = router.ask(chat(&"x".repeat(12 << 20))).await;
    assert_eq!((answer.status, answer.text().as_str()), (413, "too large"));
    instance.abort();
}
