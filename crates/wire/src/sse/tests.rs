//! Streams of every API under every chunking.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Everything that a scanner tells.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    first: First,
    first_token_seen: bool,
    done_seen: bool,
    between_events: bool,
    usage: Option<Usage>,
    response_id: Option<String>,
}

fn told(scanner: &Scanner) -> Told {
    Told {
        first: scanner.first.clone(),
        first_token_seen: scanner.first_token_seen(),
        done_seen: scanner.done_seen(),
        between_events: scanner.between_events(),
        usage: scanner.usage(),
        response_id: scanner.response_id().map(str::to_owned),
    }
}

fn scanned<'c>(chunks: impl IntoIterator<Item = &'c [u8]>) -> Scanner {
    let mut scanner = Scanner::new();
    chunks.into_iter().for_each(|chunk| scanner.scan(chunk));
    scanner
}

fn whole(stream: &str) -> Told {
    told(&scanned([stream.as_bytes()]))
}

fn usage(prompt: u64, cached: Option<u64>, completion: u64) -> Option<Usage> {
    Some(Usage { prompt_tokens: Some(prompt), cached_tokens: cached, completion_tokens: Some(completion) })
}

const CHAT: &str = concat!(
    ": keep-alive\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"usage\":null}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"H\\u00e9\"}}],\"usage\":null}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"llo 你\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":2,",
    "\"prompt_tokens_details\":{\"cached_tokens\":16}}}\n\n",
    "data: [DONE]\n\n",
);

const RESPONSES: &str = concat!(
    "event: response.created\n",
    "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"error\":null,\"usage\":null}}\n\n",
    "event: response.output_text.delta\n",
    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n",
    "event: response.completed\n",
    "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"output\":[],",
    "\"usage\":{\"input_tokens\":20,\"input_tokens_details\":{\"cached_tokens\":16},\"output_tokens\":2}}}\n\n",
);

const MESSAGES: &str = concat!(
    "event: message_start\r\n",
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"usage\":{\"input_tokens\":4,",
    "\"cache_read_input_tokens\":16,\"output_tokens\":1}}}\r\n\r\n",
    "event: content_block_start\r\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\r\n\r\n",
    "event: ping\r\ndata: {\"type\":\"ping\"}\r\n\r\n",
    "event: content_block_delta\r\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\r\n\r\n",
    "event: message_delta\r\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\r\n\r\n",
    "event: message_stop\r\ndata: {\"type\":\"message_stop\"}\r\n\r\n",
);

const ERROR: &str = concat!(
    "data: {\"error\":{\"message\":\"This model's maximum context length is 8 tokens.\",",
    "\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}\n\n",
    "data: [DONE]\n\n",
);

/// A first event in several lines, with the line ends of three systems.
const ODD: &str = concat!(
    "\u{feff}: comment\r",
    "id: 7\r\n",
    "data: {\"choices\":\n",
    "data\r",
    "data:[{\"text\":\"Hi\"}],\r\n",
    "retry: 100\n",
    "data: \"usage\":{\"prompt_tokens\":20,\"completion_tokens\":2}}\r\r\n",
    "event\n\n",
);

#[test]
fn streams_of_every_api_tell_what_happened() {
    for (stream, expected_usage, id, done) in [
        (CHAT, usage(20, Some(16), 2), None, true),
        (RESPONSES, usage(20, Some(16), 2), Some("resp_1"), true),
        (MESSAGES, usage(20, Some(16), 2), None, true),
        (ODD, usage(20, None, 2), None, false),
    ] {
        let expected = Told {
            first: First::Data,
            first_token_seen: true,
            done_seen: done,
            between_events: true,
            usage: expected_usage,
            response_id: id.map(str::to_owned),
        };
        assert_eq!(whole(stream), expected, "{stream}");
    }
}

#[test]
fn chunking_changes_nothing() {
    for stream in [CHAT, RESPONSES, MESSAGES, ERROR, ODD] {
        let expected = whole(stream);
        let bytes = stream.as_bytes();
        assert_eq!(told(&scanned(bytes.chunks(1))), expected, "byte by byte: {stream}");
        for cut in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(told(&scanned([head, tail])), expected, "cut at {cut}: {stream}");
            let (middle, tail) = tail.split_at(tail.len().min(3));
            assert_eq!(told(&scanned([head, middle, tail])), expected, "cut at {cut} and 3 later: {stream}");
        }
    }
}

#[test]
fn the_first_data_event_is_awaited_begun_complete() {
    let mut scanner = Scanner::new();
    for (chunk, expected) in [
        (": ping\n\n", FirstEvent::Awaited),
        ("event: x\n", FirstEvent::Awaited),
        ("data", FirstEvent::Awaited),
        (":", FirstEvent::Begun),
        (" {\"id\":1}", FirstEvent::Begun),
        ("\r\n", FirstEvent::Begun),
        ("\r", FirstEvent::Data),
        ("\ndata: {\"error\":{}}\n\n", FirstEvent::Data),
    ] {
        scanner.scan(chunk.as_bytes());
        assert_eq!(scanner.first_event(), expected, "{chunk:?}");
    }
}

#[test]
fn an_error_as_first_event_is_told_with_its_status_and_data() {
    let data = r#"{"error":{"message":"slow down","type":"rate_limit_error","code":"rate_limit_exceeded"}}"#;
    let cases = [
        (format!("data: {data}\n\n"), 429, data),
        (format!(": hello\n\nevent: error\ndata: {data}\n\n"), 429, data),
        ("event: error\ndata: it broke\n\n".to_owned(), 500, "it broke"),
        (
            "event: error\ndata: {\"type\":\"error\",\"code\":\"invalid_api_key\",\"message\":\"?\"}\n\n".to_owned(),
            401,
            "{\"type\":\"error\",\"code\":\"invalid_api_key\",\"message\":\"?\"}",
        ),
        ("data: {\"object\":\"error\",\"code\":404}\n\n".to_owned(), 404, "{\"object\":\"error\",\"code\":404}"),
        ("data: {\"error\":\"oops\"}\n\n".to_owned(), 500, "{\"error\":\"oops\"}"),
        ("error: {\"code\":503,\"message\":\"Loading\"}\n\n".to_owned(), 503, "{\"code\":503,\"message\":\"Loading\"}"),
    ];
    for (stream, status, data) in cases {
        let scanner = scanned([stream.as_bytes()]);
        let expected = StreamError { status, data: data.as_bytes().to_vec() };
        assert_eq!(scanner.first_event(), FirstEvent::Error(&expected), "{stream}");
        assert!(!scanner.first_token_seen());
    }
}

#[test]
fn lines_of_an_error_keep_their_order() {
    let stream = "data: {\"error\":\nerror: {\"code\":404}}\n\n";
    for chunks in [1, 9, stream.len()] {
        let scanner = scanned(stream.as_bytes().chunks(chunks));
        let FirstEvent::Error(error) = scanner.first_event() else { panic!("{:?}", scanner.first_event()) };
        assert_eq!((error.status, error.data.as_slice()), (404, b"{\"error\":\n{\"code\":404}}".as_slice()));
    }
}

#[test]
fn what_only_looks_like_an_error_is_data() {
    for data in [
        r#"{"error":null,"choices":[]}"#,
        r#"{"choices":[{"delta":{"content":"\"error\": 1"}}],"x":{"error":1}}"#,
        r#"{"type":"response.created","response":{"error":null}}"#,
        "[DONE]",
        "",
        "not JSON",
    ] {
        assert_eq!(scanned([format!("data: {data}\n\n").as_bytes()]).first_event(), FirstEvent::Data, "{data}");
    }
}

#[test]
fn done_inside_a_string_means_nothing() {
    let stream = concat!(
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"echo data: [DONE]\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\n\\ndata: [DONE]\\n\\n\"}}]}\n\n",
        ": data: [DONE]\n\n",
    );
    let scanner = scanned([stream.as_bytes()]);
    assert!(scanner.first_token_seen());
    assert!(!scanner.done_seen());
}

#[test]
fn the_first_token_is_the_first_that_is_not_empty() {
    let tokens = [
        r#"{"choices":[{"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"delta":{"content":""}},{"delta":{"content":" "}}]}"#,
        r#"{"choices":[{"delta":{"content":null,"reasoning_content":"a"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"a"}}]}"#,
        r#"{"choices":[{"delta":{"refusal":"a"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f"}}]}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"name":"f"}}}]}"#,
        r#"{"choices":[{"text":"a","index":0}]}"#,
        r#"{"type":"response.output_text.delta","delta":"a"}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#,
        r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"a"}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}"#,
    ];
    let others = [
        r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"choices":[{"delta":{"role":"assistant","content":null,"tool_calls":[ ]}}]}"#,
        r#"{"choices":[{"text":"","index":0}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"completion_tokens":1}}"#,
        r#"{"type":"response.created","response":{"text":{"format":{"type":"text"}}}}"#,
        r#"{"type":"response.output_text.delta","delta":""}"#,
        r#"{"type":"message_start","message":{"content":[]}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"a"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        r#"{"error":{"message":"a"}}"#,
        "[DONE]",
        "text",
    ];
    for (data, expected) in tokens.map(|data| (data, true)).into_iter().chain(others.map(|data| (data, false))) {
        assert_eq!(whole(&format!("data: {data}\n\n")).first_token_seen, expected, "{data}");
    }
}

#[test]
fn an_end_without_a_blank_line_still_tells() {
    for (stream, expected) in [
        ("data: {\"error\":{\"code\":400}}", true),
        ("data: {\"error\":{\"code\":400}}\n", true),
        ("data: {\"error\":{\"code\":400}}\n\n", true),
        (": nothing", false),
    ] {
        let mut scanner = scanned([stream.as_bytes()]);
        scanner.end();
        assert_eq!(matches!(scanner.first_event(), FirstEvent::Error(_)), expected, "{stream}");
        assert!(scanner.between_events());
    }
}

#[test]
fn it_is_known_where_an_event_of_ones_own_may_stand() {
    for (stream, expected) in [
        ("", true),
        ("data: a\n\n", true),
        ("data: a\r\n\r", true),
        ("data: a\n", false),
        ("data: a", false),
        ("data: a\n\nevent: b\n", false),
        ("data: a\n\n: comment\n", true),
        ("data: a\n\n: comm", false),
    ] {
        assert_eq!(whole(stream).between_events, expected, "{stream:?}");
    }
}

/// The memory that a scanner has reserved.
fn reserved(scanner: &Scanner) -> usize {
    scanner.line.capacity() + scanner.data.as_ref().map_or(0, Vec::capacity)
}

#[test]
fn an_event_over_the_limit_is_told_by_its_beginning_in_bounded_memory() {
    let content = "x".repeat(20 * EVENT_LIMIT);
    let stream = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{content}\"}}}}],\
         \"usage\":{{\"prompt_tokens\":20,\"completion_tokens\":2}}}}\r\n\r\ndata: [DONE]\r\n\r\n"
    );
    let expected = Told {
        first: First::Data,
        first_token_seen: true,
        done_seen: true,
        between_events: true,
        usage: usage(20, None, 2),
        response_id: None,
    };
    assert_eq!(whole(&stream), expected);
    for size in [1_000, 16_384, EVENT_LIMIT, EVENT_LIMIT + 5, EVENT_LIMIT + 6, EVENT_LIMIT + 7, EVENT_LIMIT + 8] {
        let mut scanner = Scanner::new();
        for chunk in stream.as_bytes().chunks(size) {
            scanner.scan(chunk);
            assert!(reserved(&scanner) <= 3 * EVENT_LIMIT, "{}", reserved(&scanner));
        }
        assert_eq!(told(&scanner), expected, "chunks of {size}");
    }
}

#[test]
fn the_first_event_is_known_as_soon_as_it_is_over_the_limit() {
    let mut scanner = Scanner::new();
    scanner.scan(b"data: {\"error\":{\"code\":400,\"message\":\"");
    assert_eq!(scanner.first_event(), FirstEvent::Begun);
    scanner.scan(&vec![b'x'; 2 * EVENT_LIMIT]);
    let FirstEvent::Error(error) = scanner.first_event() else { panic!("{:?}", scanner.first_event()) };
    assert_eq!((error.status, error.data.len()), (400, EVENT_LIMIT));
    assert!(!scanner.between_events());
}

#[test]
fn data_in_many_lines_is_bounded_too() {
    let mut scanner = Scanner::new();
    for _ in 0..1_000 {
        scanner.scan(format!("data: {}\n", "x".repeat(1_000)).as_bytes());
        assert!(reserved(&scanner) <= 3 * EVENT_LIMIT);
    }
    scanner.scan(b"\n");
    assert_eq!(scanner.first_event(), FirstEvent::Data);
}

#[test]
fn a_long_comment_is_passed_over() {
    let stream = format!(": {}\n\ndata: {{\"error\":{{\"code\":400}}}}\n\n", "x".repeat(3 * EVENT_LIMIT));
    for size in [7_000, stream.len()] {
        let scanner = scanned(stream.as_bytes().chunks(size));
        assert!(matches!(scanner.first_event(), FirstEvent::Error(error) if error.status == 400), "chunks of {size}");
    }
}

/// The data of each event, read simply from the whole text at once.
fn events(stream: &str) -> Vec<String> {
    let text = stream.strip_prefix('\u{feff}').unwrap_or(stream).replace("\r\n", "\n").replace('\r', "\n");
    let Some((complete, _)) = text.rsplit_once('\n') else { return Vec::new() };
    let mut events = Vec::new();
    let mut data: Vec<&str> = Vec::new();
    for line in complete.split('\n') {
        if line.is_empty() {
            if !data.is_empty() {
                events.push(data.join("\n"));
            }
            data.clear();
        } else if line == "data" {
            data.push("");
        } else if let Some(value) = line.strip_prefix("data:") {
            data.push(value.strip_prefix(' ').unwrap_or(value));
        }
    }
    events
}

proptest! {
    #[test]
    fn any_stream_is_read_as_the_standard_says(
        lines in vec((prop_oneof![
            Just(""), Just(""), Just(": x"), Just("data"), Just("data:"), Just("data: {\"a\":1}"), Just("data: [DONE]"),
            Just("data: {\"choices\":[{\"text\":\"a\"}]}"), Just("data: {\"usage\":{\"prompt_tokens\":7}}"),
            Just("data: {\"error\":{\"code\":404}}"), Just("data: {\"error\":"), Just("data: 1}"), Just("id: 4"), Just("dat"),
        ], prop_oneof![Just("\n"), Just("\r\n"), Just("\r")]), 0..12),
        sizes in vec(1usize..9, 1..6),
    ) {
        let stream: String = lines.into_iter().flat_map(|(line, end)| [line, end]).collect();
        let mut scanner = Scanner::new();
        let (mut rest, mut sizes) = (stream.as_bytes(), sizes.into_iter().cycle());
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(sizes.next().unwrap_or(1).min(rest.len()));
            scanner.scan(chunk);
            rest = behind;
        }
        prop_assert_eq!(told(&scanner), whole(&stream));

        let events = events(&stream);
        let is_error = |data: &&String| data.trim_start().strip_prefix("{\"error\":").is_some_and(|rest| !rest.trim().is_empty());
        let status = events.first().filter(is_error).map(|data| status_of_error(data.as_bytes()));
        match &scanner.first {
            First::Awaited => prop_assert!(events.is_empty()),
            First::Data => prop_assert!(!events.is_empty() && status.is_none()),
            First::Error(error) => prop_assert_eq!(Some(error.status), status),
        }
        prop_assert_eq!(scanner.done_seen(), events.iter().any(|data| data.starts_with("[DONE]")));
        prop_assert_eq!(scanner.first_token_seen(), events.iter().any(|data| data.trim_start().starts_with("{\"choices\"")));
        prop_assert_eq!(scanner.usage().is_some(), events.iter().any(|data| data.trim_start().starts_with("{\"usage\"")));
    }

    #[test]
    fn chunking_changes_nothing_around_the_limit(
        start in prop_oneof![Just("data: "), Just("data:"), Just("error: "), Just("\u{feff}data:"), Just("data: a\ndata: "), Just(": ")],
        length in EVENT_LIMIT - 12..EVENT_LIMIT + 12,
        end in prop_oneof![Just("\n\n"), Just("\r\n\r\n"), Just("\ndata: {}\n\n"), Just("\nevent: error\n\n"), Just("")],
        cut in 1usize..20,
    ) {
        let json = "{\"error\":{\"code\":404},\"usage\":{\"prompt_tokens\":7},\"x\":\"";
        let data = format!("{json}{}\"}}", "x".repeat(length - json.len() - 2));
        let stream = format!("{start}{data}{end}data: [DONE]\n\n");
        let expected = whole(&stream);
        let (head, tail) = stream.as_bytes().split_at((EVENT_LIMIT + cut - 10).min(stream.len()));
        prop_assert_eq!(&told(&scanned([head, tail])), &expected);
        prop_assert_eq!(&told(&scanned(stream.as_bytes().chunks(10_007))), &expected);
    }

    #[test]
    fn any_bytes_are_scanned_without_a_panic(chunks in vec(vec(any::<u8>(), 0..60), 0..6)) {
        let mut scanner = Scanner::new();
        chunks.iter().for_each(|chunk| scanner.scan(chunk));
        scanner.end();
        prop_assert!(scanner.between_events());
    }
}
