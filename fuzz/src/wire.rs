//! Any bytes as requests, answers, streams and frames.

use isotherm_wire::api::Api;
use isotherm_wire::aws::{Asked, Protocol};
use isotherm_wire::eventstream::{decode, payload_parts};
use isotherm_wire::guard::{self, Guards};
use isotherm_wire::request::{Prefix, PromptSink, cache_salt, canonical, describe, include_usage, render};
use isotherm_wire::response;
use isotherm_wire::sagemaker::{AsyncInvocation, Invocation, Operation, headers_for_container};
use isotherm_wire::sigv4::{BearerToken, Claim};
use isotherm_wire::sse::{FirstEvent, Scanner, UsageFilter};
use isotherm_wire::usage::Usage;
use serde_json::Value;

/// Takes a prompt and keeps nothing.
struct Nowhere;

impl PromptSink for Nowhere {
    fn prompt(&mut self, _: &[u8]) {}

    fn media(&mut self, _: &[u8]) {}
}

/// A request body: no panic, prefixes are exact at every length, and what `serde_json` reads is read the same.
pub fn check_describe(body: &[u8]) {
    let document = serde_json::from_slice::<Value>(body).ok();
    for api in Api::ALL {
        let mut text = String::new();
        let mut whole = |piece: &str| {
            text.push_str(piece);
            true
        };
        let Ok(described) = describe(body, api, &mut whole) else {
            assert!(!document.as_ref().is_some_and(Value::is_object), "an object was refused");
            continue;
        };
        assert_eq!(render(body, api, &mut Nowhere).as_ref(), Ok(&described));
        if let Some(document) = document.as_ref().filter(|document| document.is_object()) {
            assert_eq!(described.model.as_deref(), document["model"].as_str());
            assert_eq!(described.stream, document["stream"] == true);
            assert_eq!(described.include_usage, document["stream_options"]["include_usage"] == true);
        }
        for limit in [0, 1, 2, 3, 17, 4096, 5000] {
            let mut bytes = Vec::new();
            let mut forward = |piece: &[u8]| bytes.extend_from_slice(piece);
            let mut prefix = Prefix::new(limit, &mut forward);
            let again = describe(body, api, &mut prefix);
            assert_eq!(again.as_ref(), Ok(&described));
            assert_eq!(prefix.continued(), text.chars().nth(limit).is_some());
            let expected: String = text.chars().take(limit).collect();
            assert_eq!(bytes, expected.as_bytes());
        }
    }
}

/// A request body that the router may add to: what is added is all that changes, and what is checked stays as it is.
pub fn check_changes(body: &[u8]) {
    let _ = guard::check(body, &Guards { max_tokens: Some(9), choices: Some(1), ..Guards::default() });
    let form = |body: &[u8]| {
        let mut form = Vec::new();
        let read = canonical(body, &mut |piece: &[u8]| {
            form.extend_from_slice(piece);
            true
        });
        read.map(|()| form)
    };
    assert_eq!(form(body), form(body));
    let document = serde_json::from_slice::<Value>(body).ok();
    for api in Api::ALL {
        let splices =
            [("cache_salt", cache_salt(body, api, b"secret", "tenant")), ("stream_options", include_usage(body, api))];
        for (field, splice) in splices {
            let Ok(Some(splice)) = splice else { continue };
            let changed = splice.apply(body);
            let Some(document) = &document else { continue };
            let mut now: Value = serde_json::from_slice(&changed).expect("it is JSON as it was");
            assert!(!now[field].is_null(), "{field} is there");
            let mut before = document.clone();
            for document in [&mut now, &mut before] {
                document.as_object_mut().expect("an object").remove(field);
            }
            assert_eq!(now, before, "{field} is all that changed");
        }
    }
}

/// An event stream: no panic, and neither what is told nor what passes depends on the chunking.
pub fn check_event_stream(stream: &[u8]) {
    let passed = filtered(&[stream]);
    assert_eq!(filtered(&stream.chunks(1).collect::<Vec<_>>()), passed);
    assert_eq!(filtered(&stream.chunks(7).collect::<Vec<_>>()), passed);
    assert!(passed.len() <= stream.len());
    let whole = told(&[stream]);
    assert_eq!(told(&stream.chunks(1).collect::<Vec<_>>()), whole);
    assert_eq!(told(&stream.chunks(7).collect::<Vec<_>>()), whole);
    let (head, tail) = stream.split_at(stream.len() / 2);
    assert_eq!(told(&[head, tail]), whole);
}

fn filtered(chunks: &[&[u8]]) -> Vec<u8> {
    let (mut filter, mut passed) = (UsageFilter::new(), Vec::new());
    chunks.iter().for_each(|chunk| filter.filter(chunk, &mut passed));
    filter.end(&mut passed);
    passed
}

fn told(chunks: &[&[u8]]) -> String {
    let mut scanner = Scanner::new();
    let mut told = String::new();
    for chunk in chunks {
        scanner.scan(chunk);
    }
    for ended in [false, true] {
        if ended {
            scanner.end();
        }
        if let FirstEvent::Error(error) = scanner.first_event() {
            assert!((400..600).contains(&error.status));
        }
        told += &format!(
            "{:?} {} {} {} {:?} {:?}\n",
            scanner.first_event(),
            scanner.first_token_seen(),
            scanner.done_seen(),
            scanner.between_events(),
            scanner.usage(),
            scanner.response_id(),
        );
    }
    told
}

/// A response body: no panic, what is told does not depend on the pieces, and what is JSON is read as when it is whole.
pub fn check_response(body: &[u8]) {
    let scanned = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut scanner = response::Scanner::new();
        pieces.for_each(|piece| scanner.scan(piece));
        (scanner.usage(), scanner.id().map(str::to_owned))
    };
    let whole = scanned(&mut std::iter::once(body));
    assert_eq!(scanned(&mut body.chunks(1)), whole);
    assert_eq!(scanned(&mut body.chunks(7)), whole);
    if let Ok(document @ Value::Object(_)) = serde_json::from_slice::<Value>(body)
        && is_plain(body)
    {
        assert_eq!(whole.0, Usage::from_json(body));
        assert_eq!(whole.1.as_deref(), document["id"].as_str());
    }
}

/// Has no escaped or repeated keys and nothing long, all of which a watched body is not read for.
fn is_plain(body: &[u8]) -> bool {
    let count = |word: &[u8]| body.windows(word.len()).filter(|window| *window == word).count();
    body.len() < 8_000 && !body.contains(&b'\\') && [&b"\"id\""[..], b"\"usage\""].iter().all(|key| count(key) < 2)
}

/// Frames of an AWS event stream: no panic, and one that tells what the router tells of a part is written as the router
/// writes it.
pub fn check_frames(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((frame, length))) = decode(rest) {
        let mut again = Vec::new();
        payload_parts(frame.payload, &mut again);
        if let Ok(Some((part, _))) = decode(&again)
            && part.headers == frame.headers
        {
            assert_eq!(again, rest[..length]);
        }
        rest = &rest[length..];
    }
}

/// A request that may be signed: a line with method and target, lines of headers, an empty line, the body. No panic, and
/// nobody's secret is the empty one; what is in a header or in the query is read as a bearer token, too.
pub fn check_signed(bytes: &[u8]) {
    let _ = BearerToken::parse(bytes);
    let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
    let (head, body) = (&bytes[..end], bytes.get(end + 2..).unwrap_or_default());
    let mut lines = head.split(|byte| *byte == b'\n');
    let mut first = lines.next().unwrap_or_default().splitn(2, |byte| *byte == b' ');
    let mut request = http::Request::builder().method(first.next().unwrap_or_default());
    request = request.uri(first.next().unwrap_or_default());
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        request = request.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    let Ok(request) = request.body(()) else { return };
    let (head, ()) = request.into_parts();
    for value in head.headers.values() {
        let _ = BearerToken::parse(value.as_bytes());
    }
    let _ = (Protocol::of(&head), Asked::of(&head, body).service.signing_name());
    let _ = AsyncInvocation::parse(&head.headers);
    for operation in
        [Operation::InvokeEndpoint, Operation::InvokeEndpointWithResponseStream, Operation::InvokeEndpointAsync]
    {
        let _ = Invocation::parse(&head.headers, operation);
        assert!(headers_for_container(&head.headers, operation).len() <= head.headers.len() + 8);
    }
    if let Ok(Some(claim)) = Claim::of(&head) {
        assert!(claim.verify(&head, body, "").is_err());
        assert!(claim.check_service("").is_err() || claim.service().is_empty());
        let _ = claim.check_time(std::time::SystemTime::UNIX_EPOCH);
    }
}
