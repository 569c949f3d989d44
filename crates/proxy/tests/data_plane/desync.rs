//! Requests that two parties could read differently, raw on the wire: no instance may see more requests than clients
//! were answered, nor anything that is not framed plainly.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::PATIENCE;
use crate::origin::{Origin, Seen, json};
use crate::router::Router;
use crate::stopwatch::Stopwatch;

/// How long a connection may be silent before it counts as kept.
const SILENCE: Duration = Duration::from_secs(1);

const PATHS: &str = "allow_paths: [/foo/bar, /test.html, /endpoint_a, /v1/audio/speech]\n";

/// Compliant requests that are refused all the same.
const REFUSED_THOUGH_COMPLIANT: [&str; 3] = [
    // Its target is empty, which no request line has (RFC 9112, section 3).
    "Empty URI",
    // Its target has a fragment, which none has (section 3.2).
    "Compliant URL",
    // A body in further codings would have to be decoded, or passed on to engines that do not know them.
    "Transfer-Encoding",
];

/// What came back on one connection.
#[derive(Debug)]
struct Exchange {
    statuses: Vec<u16>,
    text: String,
    closed: bool,
}

async fn exchange(router: &Router, bytes: Vec<u8>) -> Exchange {
    let mut stream = TcpStream::connect(router.address).await.unwrap();
    // Refused early, the rest may not be taken any more.
    let _ = stream.write_all(&bytes).await;
    let mut read = Vec::new();
    let mut silent = Stopwatch::start();
    let closed = loop {
        match tokio::time::timeout(SILENCE / 20, stream.read_buf(&mut read)).await {
            Ok(Ok(0) | Err(_)) => break true,
            Ok(Ok(_)) => silent = Stopwatch::start(),
            Err(_) if silent.elapsed() < SILENCE => {}
            Err(_) => break false,
        }
    };
    let text = String::from_utf8_lossy(&read).into_owned();
    let statuses = text.split("HTTP/1.1 ").skip(1).filter_map(|rest| rest.get(..3)?.parse().ok()).collect();
    Exchange { statuses, text, closed }
}

impl Exchange {
    fn is_refused(&self) -> bool {
        matches!(self.statuses[..], [400..=499]) && self.closed
    }

    fn accepted(&self) -> usize {
        self.statuses.iter().filter(|&&status| status == 200).count()
    }
}

/// One request of the corpus.
#[derive(Debug)]
struct Case {
    name: String,
    tier: String,
    head: Vec<u8>,
    /// What follows the head.
    payload: Vec<u8>,
    headers: Vec<(String, String)>,
}

impl Case {
    fn read(index: usize, case: &Value) -> Case {
        let text = |key: &str| case[key].as_str().unwrap().to_owned();
        let pair = |pair: &Value| (pair[0].as_str().unwrap().to_owned(), pair[1].as_str().unwrap().to_owned());
        let headers: Vec<_> = case["headers"].as_array().unwrap().iter().map(pair).collect();
        let version = text("version");
        let mut head = bytes(&format!("{} {}", text("method"), text("uri")));
        if !version.is_empty() {
            head.extend(bytes(&format!(" {version}")));
        }
        head.extend(format!("\r\nx-case: {index}\r\n").bytes());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.extend(b"host: router\r\n");
        }
        for (name, value) in &headers {
            head.extend(bytes(name));
            head.extend(b": ");
            head.extend(bytes(value));
            head.extend(b"\r\n");
        }
        head.extend(b"\r\n");
        let behind = format!("GET /foo/bar?behind HTTP/1.1\r\nhost: router\r\nx-case: {index}\r\n\r\n");
        let payload = match plain_length(&headers) {
            Some(length) => format!("{}{behind}", "x".repeat(length)),
            None => format!("0\r\n\r\n{behind}"),
        };
        Case { name: text("name"), tier: text("tier"), head, payload: payload.into_bytes(), headers }
    }

    /// Whether it is refused although it is compliant.
    fn is_refused_all_the_same(&self) -> bool {
        let [empty, fragment, coded] = REFUSED_THOUGH_COMPLIANT;
        let is_coded =
            |(name, value): &(String, String)| name == coded && !value.trim().eq_ignore_ascii_case("chunked");
        [empty, fragment].contains(&self.name.as_str()) || self.headers.iter().any(is_coded)
    }
}

/// The length of a body that only a plain Content-Length frames; 0 where nothing frames one.
fn plain_length(headers: &[(String, String)]) -> Option<usize> {
    let framing: Vec<_> = headers
        .iter()
        .filter(|(name, _)| ["length", "transfer"].iter().any(|word| name.to_ascii_lowercase().contains(word)))
        .collect();
    match framing[..] {
        [] => Some(0),
        [(name, value)] if name.eq_ignore_ascii_case("content-length") => value.trim_matches([' ', '\t']).parse().ok(),
        _ => None,
    }
}

/// See the corpus's README.
fn bytes(text: &str) -> Vec<u8> {
    match text.chars().map(|character| u8::try_from(u32::from(character))).collect::<Result<Vec<u8>, _>>() {
        Ok(bytes) => bytes,
        Err(_) => text.as_bytes().to_vec(),
    }
}

#[tokio::test]
async fn the_desync_corpus_brings_nothing_behind_anybodys_back() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = std::sync::Arc::new(Router::before(&[&origin], PATHS));
    let corpus: Vec<Value> = serde_json::from_str(include_str!("../corpora/desync.json")).unwrap();
    let cases = corpus.iter().enumerate().map(|(index, case)| (index, Case::read(index, case)));
    let mut running = tokio::task::JoinSet::new();
    for (index, case) in cases {
        let router = std::sync::Arc::clone(&router);
        running.spawn(async move {
            let sent = [case.head.clone(), case.payload.clone()].concat();
            let exchange = tokio::time::timeout(PATIENCE, exchange(&router, sent)).await.expect("no end");
            (index, case, exchange)
        });
    }
    let mut wrong = Vec::new();
    let mut tiers: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let done = running.join_all().await;
    let seen = origin.seen();
    for (index, case, exchange) in done {
        let seen: Vec<&Seen> = seen.iter().filter(|seen| seen.header("x-case") == Some(index.to_string())).collect();
        let plain = seen.iter().all(|seen| seen.header("transfer-encoding").is_none());
        let refused = exchange.is_refused();
        let as_it_should = match case.tier.as_str() {
            "Severe" => refused && seen.is_empty(),
            "Ambiguous" | "Acceptable" => refused || seen.len() == exchange.accepted(),
            _ if case.is_refused_all_the_same() => refused,
            // Where nothing is served at its path, what follows it is answered for itself.
            _ => exchange.accepted() > 0 && seen.len() == exchange.accepted(),
        };
        if !(as_it_should && plain) {
            let head = String::from_utf8_lossy(&case.head).into_owned();
            wrong.push(format!("{} ({}): {head:?} → {exchange:?}, {} upstream", case.name, case.tier, seen.len()));
        }
        tiers.entry(case.tier).or_default()[usize::from(refused)] += 1;
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), corpus.len(), wrong.join("\n"));
    // [passed on, refused]: what is refused and what is not changes only on purpose.
    let tiers: Vec<(&str, [usize; 2])> = tiers.iter().map(|(tier, counts)| (tier.as_str(), *counts)).collect();
    assert_eq!(tiers, [("Acceptable", [2, 13]), ("Ambiguous", [16, 42]), ("Compliant", [19, 9]), ("Severe", [0, 58])]);
}

#[tokio::test]
async fn nothing_is_tunnelled_and_nothing_left_over_becomes_a_request() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], PATHS);
    let behind = "POST /foo/bar?behind HTTP/1.1\r\nhost: r\r\ncontent-length: 2\r\n\r\n{}";
    // An upgrade is not passed on, so that the instance goes on reading requests (CVE-2026-2833).
    let upgrade = format!("GET /foo/bar HTTP/1.1\r\nhost: r\r\nconnection: upgrade\r\nupgrade: foo\r\n\r\n{behind}");
    let answers = exchange(&router, upgrade.into_bytes()).await;
    assert_eq!(answers.statuses, [200, 200]);
    let seen = origin.seen();
    assert!(seen.iter().all(|seen| seen.header("upgrade").is_none() && seen.header("connection").is_none()));
    // A body that was refused unread is no request either (CVE-2025-4366).
    let refused = format!("POST /nowhere HTTP/1.1\r\nhost: r\r\ncontent-length: {}\r\n\r\n{behind}", behind.len());
    let answers = exchange(&router, refused.into_bytes()).await;
    assert_eq!(answers.statuses[0], 404);
    // A body in chunks that also has a length: the end is that of the chunks, and the connection's.
    for headers in
        ["content-length: 5\r\ntransfer-encoding: chunked", "transfer-encoding: chunked\r\ncontent-length: 5"]
    {
        let both = format!("POST /foo/bar?both HTTP/1.1\r\nhost: r\r\n{headers}\r\n\r\n0\r\n\r\n{behind}");
        let answers = exchange(&router, both.into_bytes()).await;
        assert_eq!((answers.statuses.as_slice(), answers.closed), (&[200][..], true));
        assert!(answers.text.contains("connection: close"), "{}", answers.text);
    }
    let lines: Vec<String> = origin.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(lines.iter().filter(|line| line.contains("?behind")).count(), 1, "{lines:?}");
}

#[tokio::test]
async fn answers_that_could_be_read_in_two_ways_are_502_and_poison_no_connection() {
    let malformed = [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx y: z\r\n\r\n",
        "HTTP/1.1 20 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: foo\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "SSH-2.0-OpenSSH_9.6\r\n",
    ];
    for answer in malformed {
        let origin = Origin::answering(answer).await;
        let router = Router::before(&[&origin], "");
        let told = router.ask(crate::client::chat("x")).await;
        assert_eq!(told.status, 502, "{answer:?}: {}", told.text());
        assert_eq!(told.header("x-should-retry"), Some("false"), "{answer:?}");
        assert!(told.text().contains(r#""type":"#), "{answer:?}: {}", told.text());
        router.ask(crate::client::chat("y")).await;
        assert_eq!(origin.connections(), origin.seen().len(), "{answer:?}: its connection was used again");
    }
    // What stands behind an answer answers nobody.
    let forged = json(200, "forged");
    let origin = Origin::answering(&(json(200, "{}") + &forged)).await;
    let router = Router::before(&[&origin], "");
    for _ in 0..3 {
        assert_eq!(router.ask(crate::client::chat("x")).await.text(), "{}");
    }
    assert_eq!(origin.connections(), 3);
}
