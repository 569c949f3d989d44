//! Stopping: nothing new, what is under way finishes, and what does not is told so.

use std::sync::Arc;
use std::time::Duration;

use isotherm_proxy::Drained;
use tokio::sync::Notify;

use crate::client::{Client, chat, get, until};
use crate::origin::{END, EVENTS, Origin, Step, chunk, json};
use crate::router::Router;
use crate::stopwatch::Stopwatch;

const EVENT: &str = "data: {\"choices\":[]}\n\n";

async fn streaming(leave: &Arc<Notify>) -> Origin {
    let leave = Arc::clone(leave);
    Origin::start(move |_| {
        vec![
            Step::Send((EVENTS.to_owned() + &chunk(EVENT)).into_bytes()),
            Step::Wait(Arc::clone(&leave)),
            Step::Send((chunk("data: [DONE]\n\n") + END).into_bytes()),
        ]
    })
    .await
}

fn drain(router: &mut Router, grace: Duration) -> tokio::task::JoinHandle<Drained> {
    let plane = router.plane.take().unwrap();
    tokio::spawn(async move { plane.drain(grace).await })
}

#[tokio::test]
async fn streams_in_flight_finish_and_nothing_new_is_accepted() {
    let leave = Arc::new(Notify::new());
    let origin = streaming(&leave).await;
    let mut router = Router::before(&[&origin], "");
    let mut idle = router.connect().await;
    idle.send(get("/health")).await;
    assert_eq!(idle.answer().await.status, 200);
    let mut client = router.connect().await;
    client.send(chat("x")).await;
    client.until(EVENT).await;
    let draining = drain(&mut router, Duration::from_secs(10));
    assert!(idle.ends().await, "an idle connection is closed");
    until("nobody is let in", || std::net::TcpStream::connect(router.address).is_err()).await;
    assert!(!draining.is_finished());
    leave.notify_one();
    let answer = client.answer().await;
    assert_eq!((answer.complete, answer.text()), (true, EVENT.to_owned() + "data: [DONE]\n\n"));
    assert!(client.ends().await);
    assert_eq!(draining.await.unwrap(), Drained::Completely);
}

#[tokio::test]
async fn what_has_not_finished_after_the_grace_is_told_so() {
    let leave = Arc::new(Notify::new());
    let origin = streaming(&leave).await;
    let hanging = Origin::start(|_| vec![Step::Hang]).await;
    let mut router = Router::before(&[&origin], "");
    let mut other = Router::before(&[&hanging], "");
    let mut stream = router.connect().await;
    stream.send(chat("x")).await;
    stream.until(EVENT).await;
    let mut waiting = other.connect().await;
    waiting.send(chat("x")).await;
    hanging.asked(1).await;
    let started = Stopwatch::start();
    let draining = [drain(&mut router, Duration::from_millis(100)), drain(&mut other, Duration::from_millis(100))];
    let answer = stream.answer().await;
    let text = answer.text();
    assert!(answer.complete && text.contains("being stopped") && text.ends_with("data: [DONE]\n\n"), "{text}");
    let answer = waiting.answer().await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    for draining in draining {
        assert_eq!(draining.await.unwrap(), Drained::Truncating);
    }
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    origin.left().await;
    hanging.left().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_cannot_hold_up_the_end() {
    let flood = chunk(&format!("data: {}\n\n", "x".repeat(64 * 1024)));
    let steps: Vec<Step> = std::iter::once(Step::Send(EVENTS.into()))
        .chain((0..1_000).map(|_| Step::Send(flood.clone().into_bytes())))
        .collect();
    let origin = Origin::start(move |_| steps.clone()).await;
    let mut router = Router::before(&[&origin], "");
    let mut client = router.connect().await;
    client.send(chat("x")).await;
    client.until("data: ").await;
    let started = Stopwatch::start();
    assert_eq!(drain(&mut router, Duration::from_millis(50)).await.unwrap(), Drained::Truncating);
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    drop(client);
}

#[tokio::test]
async fn a_connection_that_was_just_accepted_is_still_served() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let mut router = Router::before(&[&origin], "");
    let mut client = router.connect().await;
    let draining = drain(&mut router, Duration::from_secs(5));
    tokio::time::sleep(Duration::from_millis(30)).await;
    client.send(chat("x")).await;
    assert_eq!(client.answer().await.status, 200);
    assert!(client.ends().await);
    assert_eq!(draining.await.unwrap(), Drained::Completely);
}

#[tokio::test]
async fn draining_loses_no_request() {
    let steps = vec![Step::Pause(Duration::from_millis(5)), Step::Send(json(200, "{}").into_bytes())];
    let origin = Origin::start(move |_| steps.clone()).await;
    let mut router = Router::before(&[&origin], "");
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..60u64 {
        let address = router.address;
        asking.spawn(async move {
            tokio::time::sleep(Duration::from_micros(number * 500)).await;
            // Refused is not accepted: whoever is let in is served.
            let Ok(stream) = tokio::net::TcpStream::connect(address).await else { return true };
            drop(stream);
            let Ok(stream) = tokio::net::TcpStream::connect(address).await else { return true };
            let mut client = Client::over(stream);
            client.send(chat(&number.to_string())).await;
            client.answer().await.status == 200
        });
    }
    tokio::time::sleep(Duration::from_millis(12)).await;
    let draining = drain(&mut router, Duration::from_secs(5));
    while let Some(served) = asking.join_next().await {
        assert!(served.unwrap());
    }
    assert_eq!(draining.await.unwrap(), Drained::Completely);
}

#[tokio::test]
async fn dropping_the_data_plane_ends_everything_at_once() {
    let hanging = Origin::start(|_| vec![Step::Hang]).await;
    let mut router = Router::before(&[&hanging], "");
    let mut client = router.connect().await;
    client.send(chat("x")).await;
    hanging.asked(1).await;
    drop(router.plane.take());
    assert!(client.ends().await);
    hanging.left().await;
    router.idle().await;
}
