//! What RFC 9110 and RFC 9112 forbid, demand, or leave to whoever receives it: message by message, raw on the wire, each
//! with another request behind it.
//!
//! A message that stands in the list of [Http11Probe](https://github.com/MDA2AV/Http11Probe) has the name it has there;
//! the bytes are from the RFCs' text. Every other one is called by its section.

mod answers;
mod chunks;
mod codings;
mod fields;
mod lengths;
mod lines;
mod list;
mod malformed;
mod pipelines;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::PATIENCE;
use crate::origin::{Origin, Step, json};
use crate::router::Router;

/// Served whatever its method and its body, by an instance that tells which target it was asked for.
const PATHS: &str = "allow_paths: [/free]\n";
/// Stands behind every message, and is to be answered by its own answer or not at all.
const BEHIND: &str = "GET /free?behind HTTP/1.1\r\nhost: r\r\nconnection: close\r\n\r\n";
/// Stands within messages, and is no request.
const SMUGGLED: &str = "GET /free?smuggled HTTP/1.1\r\nhost: r\r\n\r\n";

/// One message.
struct Case {
    /// Its names in the list, one space between two, or the section that it is about.
    name: &'static str,
    message: Vec<u8>,
    verdict: Verdict,
    /// Whether the list warns of this verdict: it is allowed, but stricter ones are, too.
    warned: bool,
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy)]
enum Verdict {
    /// It is refused, and nothing behind it is read.
    Refused(u16),
    /// The router answers it, and then what follows.
    Answered(u16),
    /// It is passed on with this body, and then what follows.
    Served(&'static str),
    /// It is passed on with this body, and the connection ends.
    ServedLast(&'static str),
    /// It is passed on, answered without content, and then what follows is answered.
    NoContent,
    /// It is passed on, and what was left over is no request but spoils the one behind it, which is refused.
    Spoils,
    /// The router answers it, and then what follows, unless the answer is there before the body: then the connection ends.
    AnsweredEarly(u16),
    /// It has no end: its client's leaving ends it, nobody is asked.
    Endless,
}

use Verdict::{Answered, AnsweredEarly, Endless, NoContent, Refused, Served, ServedLast, Spoils};

fn case(name: &'static str, message: impl Into<Vec<u8>>, verdict: Verdict) -> Case {
    Case { name, message: message.into(), verdict, warned: false }
}

fn warned(name: &'static str, message: impl Into<Vec<u8>>, verdict: Verdict) -> Case {
    Case { warned: true, ..case(name, message, verdict) }
}

/// A request line, and a host.
fn line(line: &str) -> String {
    format!("{line}\r\nhost: r\r\n\r\n")
}

/// A GET with these further lines.
fn get(lines: &str) -> String {
    format!("GET /free HTTP/1.1\r\nhost: r\r\n{lines}\r\n")
}

/// A POST with these further lines, and what follows its head.
fn post(lines: &str, body: &str) -> String {
    format!("POST /free HTTP/1.1\r\nhost: r\r\n{lines}\r\n{body}")
}

/// How the bytes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The message and what follows, at once.
    Together,
    /// What follows once there is an answer to the message, or its connection has ended.
    InTurn,
    /// In many small pieces.
    InPieces,
}

/// All that comes back until the connection's end.
async fn exchange(router: &Router, case: &Case, way: Way) -> String {
    let mut stream = TcpStream::connect(router.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut read = Vec::new();
    let is_endless = matches!(case.verdict, Endless);
    let behind = if is_endless { &b""[..] } else { BEHIND.as_bytes() };
    let conversation = async {
        // Refused early, the rest may not be taken any more.
        match way {
            Way::Together => {
                let _ = stream.write_all(&[&case.message, behind].concat()).await;
            }
            Way::InTurn => {
                let _ = stream.write_all(&case.message).await;
                if !is_endless {
                    let _ = stream.read_buf(&mut read).await;
                }
                let _ = stream.write_all(behind).await;
            }
            Way::InPieces => {
                let all = [&case.message, behind].concat();
                for piece in all.chunks(all.len() / 100 + 1) {
                    let _ = stream.write_all(piece).await;
                    tokio::task::yield_now().await;
                }
            }
        }
        if is_endless {
            let _ = stream.shutdown().await;
        }
        while stream.read_buf(&mut read).await.is_ok_and(|length| length > 0) {}
    };
    tokio::time::timeout(PATIENCE, conversation).await.unwrap_or_else(|_| panic!("{} ({way:?}) has no end", case.name));
    String::from_utf8_lossy(&read).into_owned()
}

/// An answer: its status, its head, and how its body begins.
struct Answer<'t> {
    status: u16,
    head: &'t str,
    body: &'t str,
}

fn answers(text: &str) -> Vec<Answer<'_>> {
    text.split("HTTP/1.")
        .filter_map(|text| {
            let status = text.get(2..5)?.parse().ok()?;
            let (head, body) = text.split_once("\r\n\r\n")?;
            Some(Answer { status, head, body })
        })
        .collect()
}

/// What is wrong with what came of a message, if anything is.
fn fault(case: &Case, text: &str, seen: &[(String, Vec<u8>)]) -> Option<String> {
    let mut answers = answers(text);
    let may_go_on = [&b"100-continue"[..], b" HTTP/1.1\r\n"]
        .iter()
        .all(|part| case.message.windows(part.len()).any(|window| window == *part));
    answers.retain(|answer| answer.status != 100 || !may_go_on);
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    let own = |seen: &(String, Vec<u8>), body: &str| !seen.0.contains("?behind") && seen.1 == body.as_bytes();
    let behind = |seen: &(String, Vec<u8>)| seen.0 == "GET /free?behind HTTP/1.1" && seen.1.is_empty();
    let told_behind = || answers.last().is_some_and(|answer| answer.body.starts_with("{\"target\":\"/free?behind\"}"));
    let in_words =
        |answer: &Answer<'_>| answer.body.starts_with(r#"{"error":{"#) && answer.head.contains("application/json");
    let is_right = match case.verdict {
        Refused(status) => statuses == [status] && seen.is_empty() && in_words(&answers[0]),
        AnsweredEarly(status) if statuses == [status] => seen.is_empty(),
        Answered(status) | AnsweredEarly(status) => {
            statuses == [status, 200] && told_behind() && matches!(seen, [last] if behind(last))
        }
        Served(body) => {
            statuses == [200, 200] && told_behind() && matches!(seen, [first, last] if own(first, body) && behind(last))
        }
        ServedLast(body) => statuses == [200] && matches!(seen, [only] if own(only, body)),
        NoContent => {
            statuses == [204, 200] && told_behind() && matches!(seen, [first, last] if own(first, "") && behind(last))
        }
        Spoils => matches!(statuses[..], [200, 400..=499]) && matches!(seen, [only] if own(only, "")),
        Endless => statuses.iter().all(|status| (400..500).contains(status)) && seen.is_empty(),
    };
    let is_sound = answers.iter().all(|answer| {
        let has = |name: &str| answer.head.contains(&format!("\r\n{name}: "));
        let date = answer.head.split("\r\ndate: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        let lengths = answer.head.matches("\r\ncontent-length: ").count();
        date.is_some_and(is_date)
            && (has("allow") == (answer.status == 405) || is_options(case))
            && (answer.status == 204) == (lengths == 0)
            && !answer.body.contains("smuggled")
    });
    (!is_right || !is_sound)
        .then(|| format!("{}: {:?} → {text:?}, seen {seen:?}", case.name, String::from_utf8_lossy(&case.message)))
}

fn is_options(case: &Case) -> bool {
    case.message.starts_with(b"OPTIONS *")
}

/// Whether a date is in the form of RFC 9110, section 5.6.7.
fn is_date(text: &str) -> bool {
    let form = "Sun, 06 Nov 1994 08:49:37 GMT";
    let same = |(given, form): (char, char)| match form {
        '0'..='9' => given.is_ascii_digit(),
        'A'..='Z' | 'a'..='z' => given.is_ascii_alphabetic(),
        _ => given == form,
    };
    text.len() == form.len() && text.ends_with(" GMT") && text.chars().zip(form.chars()).all(same)
}

/// Sends each message in each way.
async fn all_have_their_verdict(cases: Vec<Case>) {
    let origin = Origin::start(|seen| {
        let target = seen.line.split(' ').nth(1).unwrap_or_default().to_owned();
        let answer = match target.as_str() {
            "/free?204" => "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n".to_owned(),
            _ => json(200, &format!("{{\"target\":\"{target}\"}}")),
        };
        vec![Step::Send(answer.into_bytes())]
    })
    .await;
    let router = Router::before(&[&origin], PATHS);
    let mut faults = Vec::new();
    for case in &cases {
        for way in [Way::Together, Way::InTurn, Way::InPieces] {
            let before = origin.seen().len();
            let text = exchange(&router, case, way).await;
            let seen = origin.seen().split_off(before);
            let plain = seen.iter().all(|seen| {
                let length = seen.header("content-length").map_or(0, |length| length.parse().unwrap());
                let is_plain = |(name, value): &(String, String)| {
                    !name.contains('_')
                        && !value.contains("forged")
                        && !matches!(name.as_str(), "transfer-encoding" | "upgrade" | "expect")
                };
                length == seen.body.len() && seen.headers.iter().all(is_plain)
            });
            let lines: Vec<_> = seen.into_iter().map(|seen| (seen.line, seen.body)).collect();
            faults.extend(fault(case, &text, &lines).map(|fault| format!("{way:?} {fault}")));
            if !plain {
                faults.push(format!("{way:?} {}: not plain", case.name));
            }
        }
    }
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), cases.len(), faults.join("\n"));
}
