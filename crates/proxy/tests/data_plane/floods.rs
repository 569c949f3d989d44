//! Clients that want to cost more than they pay: what they can take is bounded, and nobody else notices.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{PATIENCE, get};
use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame,
};
use crate::origin::{Origin, json};
use crate::router::Router;
use crate::stopwatch::Stopwatch;

/// `GET /` over http, by the static table alone (RFC 7541, appendix A).
const REQUEST: [u8; 3] = [0x82, 0x84, 0x86];

/// What a flood sends, piece by piece.
type Flood = Box<dyn Fn(u32) -> Vec<u8> + Send>;

/// Sends the pieces as fast as they are taken, and reads nothing but the end. Whether the router ended it before the
/// last piece.
async fn is_ended(router: &Router, flood: &Flood, pieces: u32) -> bool {
    let mut stream = TcpStream::connect(router.address).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let sending = async {
        for piece in 0..pieces {
            if writer.write_all(&flood(piece)).await.is_err() {
                return true;
            }
        }
        false
    };
    let reading = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(1..) = reader.read(&mut buffer).await {}
        true
    };
    tokio::select! { ended = sending => ended, ended = reading => ended }
}

/// The slowest of some answers to somebody else meanwhile.
async fn slowest_answer(router: &Router) -> Duration {
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let asked = Stopwatch::start();
        assert_eq!(router.ask(get("/health")).await.status, 200);
        slowest = slowest.max(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    slowest
}

async fn survives(name: &str, pieces: u32, must_end: bool, flood: Flood) {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let flooding = tokio::time::timeout(PATIENCE, is_ended(&router, &flood, pieces));
    let (ended, slowest) = tokio::join!(flooding, slowest_answer(&router));
    assert!(slowest < Duration::from_secs(1), "{name}: others waited for {slowest:?}");
    if must_end {
        assert!(ended.expect("an end"), "{name}: the connection goes on");
    }
    router.counts("isotherm_client_connections", &[], 0.0).await;
}

#[tokio::test]
async fn streams_that_are_reset_at_once_end_their_connection() {
    // CVE-2023-44487.
    let flood = |piece: u32| {
        let stream = 2 * piece + 1;
        let reset = frame(RST_STREAM, 0, stream, &8u32.to_be_bytes());
        [frame(HEADERS, END_HEADERS | END_STREAM, stream, &REQUEST), reset].concat()
    };
    survives("rapid reset", 100_000, true, Box::new(flood)).await;
}

#[tokio::test]
async fn streams_that_their_client_makes_the_router_reset_end_their_connection() {
    // CVE-2025-8671: it is the server that resets each, for an error of the client's.
    let with = |errors: fn(u32) -> Vec<u8>| {
        move |piece: u32| {
            let stream = 2 * piece + 1;
            [frame(HEADERS, END_HEADERS | END_STREAM, stream, &REQUEST), errors(stream)].concat()
        }
    };
    let no_room: fn(u32) -> Vec<u8> = |stream| frame(WINDOW_UPDATE, 0, stream, &[0; 4]);
    let too_much_room: fn(u32) -> Vec<u8> = |stream| frame(WINDOW_UPDATE, 0, stream, &0x7fff_ffff_u32.to_be_bytes());
    let behind_the_end: fn(u32) -> Vec<u8> = |stream| frame(DATA, 0, stream, b"x");
    survives("no room", 100_000, true, Box::new(with(no_room))).await;
    survives("too much room", 100_000, true, Box::new(with(too_much_room))).await;
    survives("data behind the end", 100_000, true, Box::new(with(behind_the_end))).await;
}

#[tokio::test]
async fn headers_that_go_on_for_ever_end_their_connection() {
    // CVE-2024-27316: literal fields of 4 KiB, never the last.
    let field = [&[0x00, 0x01, b'x', 0x7f, 0x81, 0x1e][..], &[b'y'; 4_096][..]].concat();
    let flood = move |piece: u32| match piece {
        0 => frame(HEADERS, 0, 1, &REQUEST),
        _ => frame(CONTINUATION, 0, 1, &field),
    };
    survives("continuation", 20_000, true, Box::new(flood)).await;
}

#[tokio::test]
async fn pings_and_settings_that_never_stop_hold_nobody_up() {
    // Answers that nobody reads must not pile up without a bound, either.
    survives("ping", 100_000, false, Box::new(|_| frame(PING, 0, 0, &[0; 8]))).await;
    survives("settings", 100_000, false, Box::new(|_| frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]))).await;
}

#[tokio::test]
async fn hundreds_of_connections_that_hardly_say_anything_are_closed_and_hold_nobody_up() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "timeouts: { client_header: 500ms }\n");
    let begun = ["", "P", "POST /v1/chat/completions HTTP/1.1\r\nhost: r\r\nx: y\r\n", "PRI * HTTP/2.0\r\n"];
    let mut slow = Vec::new();
    for number in 0..400 {
        let mut stream = TcpStream::connect(router.address).await.unwrap();
        stream.write_all(begun[number % begun.len()].as_bytes()).await.unwrap();
        slow.push(stream);
    }
    let slowest = slowest_answer(&router).await;
    assert!(slowest < Duration::from_secs(1), "others waited for {slowest:?}");
    let waiting = Stopwatch::start();
    for stream in &mut slow {
        let mut rest = Vec::new();
        let end = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "a connection stays");
    }
    assert!(waiting.elapsed() < Duration::from_secs(3), "{:?}", waiting.elapsed());
    assert!(origin.seen().is_empty());
}
