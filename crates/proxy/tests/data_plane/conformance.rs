//! What HTTP/2 asks of a server, frame by frame: RFC 9113 and RFC 7541, section by section.

mod cases;

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use self::cases::{Case, Expected};
use crate::frames::{
    ACK, Connection, DATA, END_HEADERS, END_STREAM, Frame, GOAWAY, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS,
    fields, frame, settings, window_update,
};
use crate::origin::{Origin, Step, json};
use crate::router::Router;

const INITIAL_WINDOW_SIZE: u16 = 4;
/// `:status: 200` of the static table (RFC 7541, appendix A).
const STATUS_200: u8 = 0x88;
/// What the scripted instance answers.
const ANSWER: &str = "{\"an\":\"answer\"}";

/// How long what has to come may take.
const SILENCE: Duration = Duration::from_secs(5);

async fn router() -> (Origin, Router) {
    let origin = Origin::answering(&json(200, ANSWER)).await;
    let router = Router::before(&[&origin], "");
    (origin, router)
}

fn is_ack_of(frame: &Frame, ping: &[u8]) -> bool {
    (frame.kind, frame.flags) == (PING, ACK) && frame.payload == ping
}

/// What came of a case; `Err` with what was seen when it is not as it has to be.
async fn outcome(router: &Router, case: &Case) -> Result<(), String> {
    const FENCE: &[u8; 8] = b"the end?";
    let mut connection = Connection::to(router.address).await;
    connection.send(&case.sent).await;
    connection.send(frame(PING, 0, 0, FENCE)).await;
    let mut seen = Vec::new();
    loop {
        let Ok(next) = tokio::time::timeout(SILENCE, connection.next()).await else {
            return Err(format!("{seen:?}, then nothing"));
        };
        let ended = next.is_none();
        if let Some(frame) = &next {
            seen.push(frame.clone());
        }
        let told = |kind: u8, codes: &[u32]| {
            next.as_ref()
                .is_some_and(|frame| frame.kind == kind && frame.error().is_some_and(|code| codes.contains(&code)))
        };
        let fails = |stream: u32| {
            let is_failure = |frame: &Frame| frame.error().is_some_and(|code| code != 0);
            next.as_ref().is_some_and(|frame| is_failure(frame) && [0, stream].contains(&frame.stream))
        };
        let done = match case.expected {
            Expected::Ignored if next.as_ref().is_some_and(|frame| is_ack_of(frame, FENCE)) => return Ok(()),
            Expected::Served(stream) => {
                let whole = |frame: &Frame| frame.stream == stream && frame.flags & END_STREAM != 0;
                let served = |frame: &Frame| {
                    (frame.kind, frame.stream) == (HEADERS, stream) && frame.payload.first() == Some(&STATUS_200)
                };
                next.as_ref().is_some_and(whole) && seen.iter().any(served)
            }
            // A connection error is the stricter answer, and allowed (section 5.4.2).
            Expected::Stream(codes) => told(RST_STREAM, codes) || told(GOAWAY, codes),
            Expected::Connection(codes) => told(GOAWAY, codes),
            Expected::Closed => ended,
            Expected::Ignored => false,
        };
        if done {
            return Ok(());
        }
        let hopeless = match case.expected {
            Expected::Ignored => fails(1),
            Expected::Served(stream) => fails(stream),
            // The fence is behind everything: an error that was to come has come.
            Expected::Connection(_) => next.as_ref().is_some_and(|frame| is_ack_of(frame, FENCE)),
            Expected::Stream(_) => {
                next.as_ref().is_some_and(|frame| frame.kind == HEADERS && frame.flags & END_STREAM != 0)
            }
            Expected::Closed => false,
        };
        if hopeless || ended {
            return Err(format!("{seen:?}{}", if ended { ", then the end" } else { "" }));
        }
    }
}

#[tokio::test]
async fn what_http2_demands_of_a_server_holds_section_by_section() {
    let (_origin, router) = router().await;
    let (cases, mut wrong) = (cases::all(), String::new());
    for case in &cases {
        let (outcome, is_known) = (outcome(&router, case).await, cases::MISSED.contains(&(case.section, case.what)));
        match outcome {
            Ok(()) if is_known => {
                let _ = writeln!(wrong, "{} {} is missed no more: take it off the list", case.section, case.what);
            }
            Err(seen) if !is_known => {
                let _ = writeln!(wrong, "{} {}: wanted {:?}, saw {seen}", case.section, case.what, case.expected);
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "of {}:\n{wrong}", cases.len());
    assert_eq!(cases.len(), 126);
    // Nothing of all that is left.
    router.idle().await;
}

fn chat() -> Vec<u8> {
    cases::chat_head()
}

#[tokio::test]
async fn answers_keep_to_the_windows_that_their_clients_gave() {
    let (_origin, router) = router().await;
    // Section 6.9.2: one byte for each stream, from the beginning.
    let mut connection = Connection::begun(router.address, &[(INITIAL_WINDOW_SIZE, 1)]).await;
    connection.send(frame(HEADERS, END_HEADERS, 1, &chat())).await;
    connection.send(frame(DATA, END_STREAM, 1, b"{\"messages\":[]}")).await;
    assert_eq!(data(&mut connection, 1).await, &ANSWER[..1]);
    connection.send(window_update(1, 2)).await;
    assert_eq!(data(&mut connection, 1).await, &ANSWER[1..3]);
    // A new value changes the windows of streams that are open, too: by two bytes.
    connection.send(settings(&[(INITIAL_WINDOW_SIZE, 3)])).await;
    assert_eq!(data(&mut connection, 1).await, &ANSWER[3..5]);
    // A smaller one makes them negative: three bytes more than that are sent when there is room again, not before.
    connection.send(settings(&[(INITIAL_WINDOW_SIZE, 0)])).await;
    connection.send(window_update(1, 3)).await;
    connection.send(frame(PING, 0, 0, b"no data?")).await;
    while let frame = connection.next().await.expect("a frame")
        && !is_ack_of(&frame, b"no data?")
    {
        assert_ne!(frame.kind, DATA, "beyond its window");
    }
    connection.send(window_update(1, 100)).await;
    assert_eq!(data(&mut connection, 1).await, &ANSWER[5..]);
}

/// The next data of a stream.
async fn data(connection: &mut Connection, stream: u32) -> String {
    loop {
        let frame = connection.next().await.expect("data");
        assert_eq!(frame.error(), None, "{frame:?}");
        if (frame.kind, frame.stream) == (DATA, stream) {
            return String::from_utf8(frame.payload).unwrap();
        }
    }
}

#[tokio::test]
async fn settings_are_sent_first_and_acknowledged_and_pings_answered_in_order() {
    let (_origin, router) = router().await;
    let mut connection = Connection::begun(router.address, &[]).await;
    // An acknowledgement is not acknowledged.
    connection.send(frame(PING, ACK, 0, b"nobody's")).await;
    connection.send(frame(PING, 0, 0, b"a ping!!")).await;
    let first = connection.next().await.expect("settings");
    assert_eq!((first.kind, first.flags, first.stream), (SETTINGS, 0, 0));
    let mut kinds = Vec::new();
    loop {
        let next = connection.next().await.expect("an answer");
        kinds.push((next.kind, next.flags));
        if next.kind == PING {
            assert!(is_ack_of(&next, b"a ping!!"), "{next:?}");
            break;
        }
    }
    assert!(kinds.contains(&(SETTINGS, ACK)), "{kinds:?}");
}

#[tokio::test]
async fn more_streams_than_are_allowed_are_refused_and_the_others_served() {
    let (origin, router) = {
        let origin = Origin::start(|_| vec![Step::Hang]).await;
        let router = Router::before(&[&origin], "");
        (origin, router)
    };
    let mut connection = Connection::begun(router.address, &[]).await;
    // What the router allows, it says first (section 5.1.2).
    let said = connection.next().await.expect("settings").payload;
    let most = said.chunks(6).find(|value| value[..2] == [0, 3]).expect("the most streams");
    let most = u32::from_be_bytes(most[2..].try_into().unwrap());
    for number in 0..=most {
        let stream = 2 * number + 1;
        connection.send(frame(HEADERS, END_HEADERS, stream, &chat())).await;
        connection.send(frame(DATA, END_STREAM, stream, b"{\"messages\":[]}")).await;
    }
    let refused = loop {
        let next = connection.next().await.expect("a refusal");
        if next.error().is_some() {
            break next;
        }
    };
    assert_eq!((refused.kind, refused.stream), (RST_STREAM, 2 * most + 1));
    assert!(matches!(refused.error(), Some(1 | 7)), "{refused:?}");
    origin.asked(most as usize).await;
    drop(connection);
    router.idle().await;
}

#[tokio::test]
async fn one_port_serves_both_protocols_told_apart_by_the_first_bytes() {
    let (_origin, router) = router().await;
    let mut connection = Connection::to(router.address).await;
    // Byte by byte, as slow networks bring it.
    for byte in PREFACE {
        connection.send([*byte]).await;
    }
    connection.send(settings(&[])).await;
    let request = fields(&[(":method", "GET"), (":scheme", "http"), (":path", "/health"), (":authority", "router")]);
    connection.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, &request)).await;
    loop {
        let next = connection.next().await.expect("an answer");
        if next.kind == HEADERS {
            assert_eq!(next.payload[0], STATUS_200);
            break;
        }
    }
    assert_eq!(router.ask(crate::client::get("/health")).await.status, 200);
    // What begins like the preface and is none is refused as HTTP/1.
    assert_eq!(router.ask("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n").await.status, 400);
}

#[tokio::test]
async fn a_router_that_stops_says_goaway_and_finishes_what_is_under_way() {
    let leave = Arc::new(tokio::sync::Notify::new());
    let origin = {
        let leave = Arc::clone(&leave);
        Origin::start(move |_| vec![Step::Wait(Arc::clone(&leave)), Step::Send(json(200, ANSWER).into_bytes())]).await
    };
    let mut router = Router::before(&[&origin], "");
    let mut connection = Connection::begun(router.address, &[]).await;
    connection.send(frame(HEADERS, END_HEADERS, 1, &chat())).await;
    connection.send(frame(DATA, END_STREAM, 1, b"{\"messages\":[]}")).await;
    origin.asked(1).await;
    let plane = router.plane.take().unwrap();
    let draining = tokio::spawn(async move { plane.drain(Duration::from_secs(10)).await });
    loop {
        let next = connection.next().await.expect("goaway");
        match (next.kind, next.flags) {
            (GOAWAY, _) => {
                assert_eq!(next.error(), Some(0), "no error");
                break;
            }
            (PING, 0) => connection.send(frame(PING, ACK, 0, &next.payload)).await,
            _ => assert_eq!(next.error(), None, "{next:?}"),
        }
    }
    leave.notify_one();
    let mut answer = Vec::new();
    while let Some(next) = connection.next().await {
        match next.kind {
            DATA => answer.extend(next.payload),
            PING if next.flags == 0 => connection.send(frame(PING, ACK, 0, &next.payload)).await,
            _ => assert!(next.error().is_none_or(|error| error == 0), "{next:?}"),
        }
    }
    assert_eq!(answer, ANSWER.as_bytes());
    assert_eq!(draining.await.unwrap(), isotherm_proxy::Drained::Completely);
}
