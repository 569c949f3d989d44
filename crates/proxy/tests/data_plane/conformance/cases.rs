//! What a client may send of HTTP/2 and what it may not, and what a server has to do about it.

use crate::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING, PREFACE, PRIORITY, PUSH_PROMISE,
    RST_STREAM, SETTINGS, WINDOW_UPDATE, WITH_PRIORITY, fields, frame, settings, window_update,
};

/// Error codes (section 7). Where the text names one, the library may tell the general one instead, `PROTOCOL_ERROR`: the
/// connection ends as it must, and no client of ours does anything else for the one than for the other.
const PROTOCOL: &[u32] = &[1];
const FLOW_CONTROL: &[u32] = &[3, 1];
const CLOSED: &[u32] = &[5, 1];
const FRAME_SIZE: &[u32] = &[6, 1];
const COMPRESSION: &[u32] = &[9, 1];

/// What the library does otherwise, each without harm: a request behind no settings is served; and of a request whose
/// trailers hold a pseudo-header the trailers are dropped, as all trailers are.
pub(super) const MISSED: [(&str, &str); 2] =
    [("3.4", "no settings behind the preface"), ("8.1", "a pseudo-header among trailers")];

/// What has to happen.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expected {
    /// The connection goes on as if nothing had been.
    Ignored,
    /// This stream is answered, with 200.
    Served(u32),
    /// A stream ends with one of these errors, or the connection does.
    Stream(&'static [u32]),
    /// The connection ends with one of these errors.
    Connection(&'static [u32]),
    /// The connection ends.
    Closed,
}
use Expected::{Closed, Ignored, Served, Stream};

/// What is sent, and what has to come of it.
#[derive(Debug)]
pub(super) struct Case {
    /// Of RFC 9113, or, with a `C` before it, of RFC 7541 (compression).
    pub(super) section: &'static str,
    pub(super) what: &'static str,
    pub(super) sent: Vec<u8>,
    pub(super) expected: Expected,
}

const ORDINARY: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "http"), (":authority", "router"), (":path", "/v1/chat/completions")];
const BODY: &[u8] = b"{\"messages\":[]}";

/// The header block of a chat request.
pub(super) fn chat_head() -> Vec<u8> {
    fields(&ORDINARY)
}

/// The same with further fields.
fn chat_with(more: &[(&str, &str)]) -> Vec<u8> {
    fields(&[&ORDINARY, more].concat())
}

fn headers(stream: u32, block: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, block)
}

fn last_headers(stream: u32, block: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, block)
}

fn open(stream: u32) -> Vec<u8> {
    headers(stream, &chat_head())
}

fn data(stream: u32) -> Vec<u8> {
    frame(DATA, 0, stream, BODY)
}

fn last_data(stream: u32) -> Vec<u8> {
    frame(DATA, END_STREAM, stream, BODY)
}

fn whole(stream: u32) -> Vec<u8> {
    [open(stream), last_data(stream)].concat()
}

fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8u32.to_be_bytes())
}

fn priority(stream: u32, on: u32) -> Vec<u8> {
    frame(PRIORITY, 0, stream, &[&on.to_be_bytes()[..], &[15]].concat())
}

/// All cases. Each connection begins with the preface and empty settings, unless the case is about these.
pub(super) fn all() -> Vec<Case> {
    let mut cases = preface();
    let mut add = |section, what, expected, sent: &[Vec<u8>]| {
        let sent = [PREFACE.to_vec(), settings(&[]), sent.concat()].concat();
        cases.push(Case { section, what, sent, expected });
    };
    frames_and_blocks(&mut add);
    states(&mut add);
    kinds_of_frames(&mut add);
    control_frames(&mut add);
    messages(&mut add);
    compression(&mut add);
    cases
}

type Add<'a> = dyn FnMut(&'static str, &'static str, Expected, &[Vec<u8>]) + 'a;

fn connection(codes: &'static [u32]) -> Expected {
    Expected::Connection(codes)
}

/// Section 3.4.
fn preface() -> Vec<Case> {
    let case = |what, expected, sent: Vec<u8>| Case { section: "3.4", what, sent, expected };
    vec![
        case("a request behind preface and settings", Served(1), [PREFACE, &settings(&[]), &whole(1)].concat()),
        case("a preface that is none", Closed, b"PRI * HTTP/2.0\r\n\r\nS!\r\n\r\n".to_vec()),
        case("no settings behind the preface", connection(PROTOCOL), [PREFACE, &frame(PING, 0, 0, &[0; 8])].concat()),
    ]
}

/// Sections 4 and 5.5.
fn frames_and_blocks(add: &mut Add<'_>) {
    let block = chat_head();
    let largest = vec![b' '; 16_384];
    add("4.1", "a frame of an unknown kind", Ignored, &[frame(0xbe, 0xff, 0, b"what?")]);
    add("4.1", "flags that mean nothing here", Ignored, &[frame(PING, 0xfe & !ACK, 0, &[7; 8])]);
    add(
        "4.1",
        "the reserved bit of a stream's number",
        Served(1),
        &[frame(HEADERS, END_HEADERS, 1 | 1 << 31, &block), frame(DATA, END_STREAM, 1 | 1 << 31, BODY)],
    );
    add("4.2", "DATA as large as may be", Served(1), &[open(1), frame(DATA, 0, 1, &largest), last_data(1)]);
    let too_large = vec![b' '; 16_385];
    add("4.2", "DATA larger than may be", Stream(FRAME_SIZE), &[open(1), frame(DATA, END_STREAM, 1, &too_large)]);
    add("4.2", "HEADERS larger than may be", connection(FRAME_SIZE), &[headers(1, &[0; 16_385])]);
    add("4.2", "SETTINGS larger than may be", connection(FRAME_SIZE), &[frame(SETTINGS, 0, 0, &[0; 16_386])]);
    add("4.3", "a block that can't be decoded", connection(COMPRESSION), &[headers(1, &[0x00, 0x05, b'x'])]);
    add(
        "4.3",
        "PRIORITY within a block",
        connection(PROTOCOL),
        &[frame(HEADERS, 0, 1, &block[..9]), priority(1, 0), frame(CONTINUATION, END_HEADERS, 1, &block[9..])],
    );
    add(
        "4.3",
        "HEADERS of another stream within a block",
        connection(PROTOCOL),
        &[frame(HEADERS, 0, 1, &block[..9]), open(3)],
    );
    add("5.5", "an unknown frame on a stream", Served(1), &[open(1), frame(0xaa, 0, 1, b"?"), last_data(1)]);
    add(
        "5.5",
        "an unknown frame within a block",
        connection(PROTOCOL),
        &[frame(HEADERS, 0, 1, &block[..9]), frame(0xaa, 0, 1, b"?"), frame(CONTINUATION, END_HEADERS, 1, &block[9..])],
    );
}

/// Section 5.1.
fn states(add: &mut Add<'_>) {
    let block = chat_head();
    add("5.1", "DATA on an idle stream", connection(PROTOCOL), &[data(1)]);
    add("5.1", "RST_STREAM on an idle stream", connection(PROTOCOL), &[reset(1)]);
    add("5.1", "WINDOW_UPDATE on an idle stream", connection(PROTOCOL), &[window_update(1, 1)]);
    add("5.1", "CONTINUATION on an idle stream", connection(PROTOCOL), &[frame(CONTINUATION, END_HEADERS, 1, &block)]);
    add("5.1", "PRIORITY on an idle stream", Ignored, &[priority(1, 0)]);
    add("5.1", "PRIORITY on an idle stream that is then used", Served(1), &[priority(1, 0), whole(1)]);
    add("5.1", "DATA on a half-closed stream", Stream(CLOSED), &[whole(1), data(1)]);
    add("5.1", "HEADERS on a half-closed stream", Stream(CLOSED), &[whole(1), last_headers(1, &block)]);
    add(
        "5.1",
        "CONTINUATION on a half-closed stream",
        Stream(CLOSED),
        &[whole(1), frame(CONTINUATION, END_HEADERS, 1, &block)],
    );
    add("5.1", "WINDOW_UPDATE on a half-closed stream", Served(1), &[whole(1), window_update(1, 1)]);
    add("5.1", "PRIORITY on a half-closed stream", Served(1), &[whole(1), priority(1, 0)]);
    add("5.1", "RST_STREAM on a half-closed stream", Ignored, &[whole(1), reset(1)]);
    add("5.1", "DATA on a stream that was reset", Stream(CLOSED), &[open(1), reset(1), data(1)]);
    add("5.1", "HEADERS on a stream that was reset", Stream(CLOSED), &[open(1), reset(1), last_headers(1, &block)]);
    add(
        "5.1",
        "CONTINUATION on a stream that was reset",
        Stream(CLOSED),
        &[open(1), reset(1), frame(CONTINUATION, END_HEADERS, 1, &block)],
    );
    add("5.1", "PRIORITY on a stream that was reset", Ignored, &[open(1), reset(1), priority(1, 0)]);
    add("5.1", "WINDOW_UPDATE on a stream that was reset", Ignored, &[open(1), reset(1), window_update(1, 1)]);
    add("5.1", "RST_STREAM on a stream that was reset", Ignored, &[open(1), reset(1), reset(1)]);
    add("5.1.1", "a stream of an even number", connection(PROTOCOL), &[open(2)]);
    add("5.1.1", "a stream below an earlier one", Stream(CLOSED), &[whole(5), open(3)]);
    add("5.1.1", "DATA on a stream that was passed over", Stream(CLOSED), &[whole(5), data(3)]);
    add(
        "5.3.2",
        "a stream that depends on itself",
        Stream(PROTOCOL),
        &[frame(HEADERS, END_HEADERS | WITH_PRIORITY, 1, &[&[0, 0, 0, 1, 15], &block[..]].concat())],
    );
    add(
        "5.4.2",
        "an error of one stream leaves the others",
        Served(3),
        &[last_headers(1, &fields(&ORDINARY[..3])), whole(3)],
    );
}

/// Sections 6.1 to 6.4, 6.6, 6.10: frames of streams.
fn kinds_of_frames(add: &mut Add<'_>) {
    let block = chat_head();
    let padded =
        |kind, flags, stream, pad: u8, payload: &[u8]| frame(kind, flags | PADDED, stream, &[&[pad], payload].concat());
    add("6.1", "DATA on stream 0", connection(PROTOCOL), &[data(0)]);
    add("6.1", "padded DATA", Served(1), &[open(1), padded(DATA, END_STREAM, 1, 4, &[BODY, &[0; 4]].concat())]);
    add("6.1", "DATA of padding alone", Served(1), &[open(1), padded(DATA, 0, 1, 4, &[0; 4]), last_data(1)]);
    add("6.1", "padding as long as DATA", connection(PROTOCOL), &[open(1), padded(DATA, END_STREAM, 1, 9, &[0; 8])]);
    add(
        "6.1",
        "DATA without room for its padding's length",
        connection(FRAME_SIZE),
        &[open(1), frame(DATA, PADDED, 1, &[])],
    );
    add("6.2", "HEADERS on stream 0", connection(PROTOCOL), &[headers(0, &block)]);
    add(
        "6.2",
        "padded HEADERS",
        Served(1),
        &[padded(HEADERS, END_HEADERS, 1, 4, &[&block[..], &[0; 4]].concat()), last_data(1)],
    );
    add("6.2", "padding longer than HEADERS", connection(PROTOCOL), &[padded(HEADERS, END_HEADERS, 1, 200, &block)]);
    add(
        "6.2",
        "HEADERS with a priority",
        Served(1),
        &[frame(HEADERS, END_HEADERS | WITH_PRIORITY, 1, &[&[0, 0, 0, 0, 15], &block[..]].concat()), last_data(1)],
    );
    add(
        "6.2",
        "HEADERS too short for their priority",
        connection(FRAME_SIZE),
        &[frame(HEADERS, END_HEADERS | WITH_PRIORITY, 1, &[0; 4])],
    );
    add("6.3", "PRIORITY on stream 0", connection(PROTOCOL), &[priority(0, 1)]);
    add("6.3", "PRIORITY of four bytes", Stream(FRAME_SIZE), &[open(1), frame(PRIORITY, 0, 1, &[0; 4])]);
    add("6.4", "RST_STREAM on stream 0", connection(PROTOCOL), &[reset(0)]);
    add("6.4", "RST_STREAM of three bytes", connection(FRAME_SIZE), &[open(1), frame(RST_STREAM, 0, 1, &[0; 3])]);
    add(
        "6.6",
        "PUSH_PROMISE of a client",
        connection(PROTOCOL),
        &[open(1), frame(PUSH_PROMISE, END_HEADERS, 1, &[&[0, 0, 0, 2], &block[..]].concat())],
    );
    let (first, rest) = block.split_at(9);
    let (second, third) = rest.split_at(9);
    let begun = || frame(HEADERS, 0, 1, first);
    add(
        "6.10",
        "a block in three frames",
        Served(1),
        &[begun(), frame(CONTINUATION, 0, 1, second), frame(CONTINUATION, END_HEADERS, 1, third), last_data(1)],
    );
    add(
        "6.10",
        "empty frames within a block",
        Served(1),
        &[begun(), frame(CONTINUATION, 0, 1, &[]), frame(CONTINUATION, END_HEADERS, 1, rest), last_data(1)],
    );
    add("6.10", "DATA within a block", connection(PROTOCOL), &[begun(), data(1)]);
    add("6.10", "PING within a block", connection(PROTOCOL), &[begun(), frame(PING, 0, 0, &[0; 8])]);
    add(
        "6.10",
        "CONTINUATION on stream 0",
        connection(PROTOCOL),
        &[begun(), frame(CONTINUATION, END_HEADERS, 0, rest)],
    );
    add(
        "6.10",
        "CONTINUATION of another stream",
        connection(PROTOCOL),
        &[begun(), frame(CONTINUATION, END_HEADERS, 3, rest)],
    );
    add(
        "6.10",
        "CONTINUATION behind a block's end",
        connection(PROTOCOL),
        &[open(1), frame(CONTINUATION, END_HEADERS, 1, &block)],
    );
    add(
        "6.10",
        "CONTINUATION behind another one that was the last",
        connection(PROTOCOL),
        &[begun(), frame(CONTINUATION, END_HEADERS, 1, rest), frame(CONTINUATION, END_HEADERS, 1, &block)],
    );
    add(
        "6.10",
        "CONTINUATION behind DATA",
        connection(PROTOCOL),
        &[open(1), data(1), frame(CONTINUATION, END_HEADERS, 1, &block)],
    );
}

/// Sections 6.5, 6.7, 6.8, 6.9 and 7: frames of the connection.
fn control_frames(add: &mut Add<'_>) {
    add("6.5", "an acknowledgement with settings in it", connection(FRAME_SIZE), &[frame(SETTINGS, ACK, 0, &[0; 6])]);
    add("6.5", "SETTINGS on a stream", connection(PROTOCOL), &[frame(SETTINGS, 0, 1, &[])]);
    add("6.5", "SETTINGS of three bytes", connection(FRAME_SIZE), &[frame(SETTINGS, 0, 0, &[0; 3])]);
    add("6.5.2", "ENABLE_PUSH of 2", connection(PROTOCOL), &[settings(&[(2, 2)])]);
    add("6.5.2", "INITIAL_WINDOW_SIZE of 2^31", connection(FLOW_CONTROL), &[settings(&[(4, 1 << 31)])]);
    add("6.5.2", "MAX_FRAME_SIZE of 16,383", connection(PROTOCOL), &[settings(&[(5, 16_383)])]);
    add("6.5.2", "MAX_FRAME_SIZE of 2^24", connection(PROTOCOL), &[settings(&[(5, 1 << 24)])]);
    add("6.5.2", "an unknown setting", Ignored, &[settings(&[(0xff, 1)])]);
    add("6.5.3", "one setting twice: the last counts", Served(1), &[settings(&[(4, 1), (4, 65_535)]), whole(1)]);
    add("6.7", "PING on a stream", connection(PROTOCOL), &[frame(PING, 0, 1, &[0; 8])]);
    add("6.7", "PING of six bytes", connection(FRAME_SIZE), &[frame(PING, 0, 0, &[0; 6])]);
    add("6.8", "GOAWAY on a stream", connection(PROTOCOL), &[frame(GOAWAY, 0, 1, &[0; 8])]);
    add("6.8", "what is under way when GOAWAY comes is served", Served(1), &[whole(1), frame(GOAWAY, 0, 0, &[0; 8])]);
    add("6.9", "no more room for the connection", connection(PROTOCOL), &[window_update(0, 0)]);
    add("6.9", "no more room for a stream", Stream(PROTOCOL), &[open(1), window_update(1, 0)]);
    add("6.9", "WINDOW_UPDATE of three bytes", connection(FRAME_SIZE), &[frame(WINDOW_UPDATE, 0, 0, &[0, 0, 1])]);
    let most = (1 << 31) - 1;
    add("6.9.1", "more room for the connection than can be", connection(FLOW_CONTROL), &[window_update(0, most)]);
    add("6.9.1", "more room for a stream than can be", Stream(FLOW_CONTROL), &[open(1), window_update(1, most)]);
    add(
        "6.9.2",
        "settings that overflow a stream's window",
        connection(FLOW_CONTROL),
        &[open(1), window_update(1, 1 << 30), settings(&[(4, most)])],
    );
    add(
        "7",
        "GOAWAY with an unknown error ends what is idle like any",
        Closed,
        &[frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 0xff])],
    );
    add("7", "RST_STREAM with an unknown error", Ignored, &[open(1), frame(RST_STREAM, 0, 1, &[0, 0, 0, 0xff])]);
}

/// Section 8: requests.
fn messages(add: &mut Add<'_>) {
    let malformed: [(&str, &str, Vec<u8>); 18] = [
        ("8.2.1", "an upper-case name", chat_with(&[("X-Test", "1")])),
        ("8.2.1", "white space in a name", chat_with(&[("x test", "1")])),
        ("8.2.1", "a line's end in a value", chat_with(&[("x-test", "1\r\nx: 2")])),
        ("8.2.1", "NUL in a value", chat_with(&[("x-test", "1\0")])),
        ("8.2.2", "a connection header", chat_with(&[("connection", "keep-alive")])),
        ("8.2.2", "keep-alive", chat_with(&[("keep-alive", "1")])),
        ("8.2.2", "proxy-connection", chat_with(&[("proxy-connection", "keep-alive")])),
        ("8.2.2", "transfer-encoding", chat_with(&[("transfer-encoding", "chunked")])),
        ("8.2.2", "upgrade", chat_with(&[("upgrade", "websocket")])),
        ("8.2.2", "TE of anything but trailers", chat_with(&[("te", "trailers, deflate")])),
        ("8.3", "an unknown pseudo-header", chat_with(&[(":unknown", "1")])),
        ("8.3", "a response's pseudo-header", chat_with(&[(":status", "200")])),
        (
            "8.3",
            "a pseudo-header behind a header",
            fields(&[(":method", "POST"), (":scheme", "http"), ("x", "1"), (":path", "/v1/chat/completions")]),
        ),
        ("8.3.1", "no method", fields(&ORDINARY[1..])),
        ("8.3.1", "no scheme", fields(&[ORDINARY[0], ORDINARY[2], ORDINARY[3]])),
        ("8.3.1", "no path", fields(&ORDINARY[..3])),
        ("8.3.1", "an empty path", fields(&[ORDINARY[0], ORDINARY[1], ORDINARY[2], (":path", "")])),
        ("8.3.1", "two paths", chat_with(&[(":path", "/health")])),
    ];
    for (section, what, block) in malformed {
        add(section, what, Stream(PROTOCOL), &[headers(1, &block), last_data(1)]);
    }
    for (what, twice) in [("two methods", ORDINARY[0]), ("two schemes", ORDINARY[1]), ("two authorities", ORDINARY[2])]
    {
        add("8.3.1", what, Stream(PROTOCOL), &[headers(1, &fields(&[&[twice], &ORDINARY[..]].concat())), last_data(1)]);
    }
    let trailers = |more: &[(&str, &str)]| [open(1), data(1), last_headers(1, &fields(more))];
    add("8.1", "trailers", Served(1), &trailers(&[("x-checksum", "1")]));
    add(
        "8.1",
        "HEADERS within a body that don't end it",
        Stream(PROTOCOL),
        &[open(1), data(1), headers(1, &fields(&[("x", "1")])), last_data(1)],
    );
    add("8.1", "a pseudo-header among trailers", Stream(PROTOCOL), &trailers(&[(":method", "POST")]));
    let of_length = |length: &str, bodies: &[Vec<u8>]| {
        [vec![headers(1, &chat_with(&[("content-length", length)]))], bodies.to_vec()].concat()
    };
    add("8.1.1", "a length that is right", Served(1), &of_length("15", &[last_data(1)]));
    add(
        "8.1.1",
        "a length that is right, in two parts",
        Served(1),
        &of_length("17", &[data(1), frame(DATA, END_STREAM, 1, b"  ")]),
    );
    add("8.1.1", "a length that is too small", Stream(PROTOCOL), &of_length("14", &[last_data(1)]));
    add("8.1.1", "a length that is too large", Stream(PROTOCOL), &of_length("16", &[last_data(1)]));
    add(
        "8.1.1",
        "a length that is too small for two parts",
        Stream(PROTOCOL),
        &of_length("16", &[data(1), frame(DATA, END_STREAM, 1, b"  ")]),
    );
    add("8.1.1", "a length and no body", Stream(PROTOCOL), &[last_headers(1, &chat_with(&[("content-length", "1")]))]);
    add("8.2.2", "TE of trailers", Served(1), &[headers(1, &chat_with(&[("te", "trailers")])), last_data(1)]);
    add(
        "8.2.3",
        "cookies in parts",
        Served(1),
        &[headers(1, &chat_with(&[("cookie", "a=1"), ("cookie", "b=2")])), last_data(1)],
    );
}

/// RFC 7541.
fn compression(add: &mut Add<'_>) {
    let with = |bytes: &[u8]| headers(1, &[&chat_head()[..], bytes].concat());
    add("C2.3.3", "an index beyond both tables", connection(COMPRESSION), &[with(&[0x80 | 0x46])]);
    add("C2.3.3", "a name's index beyond both tables", connection(COMPRESSION), &[with(&[0x40 | 0x3f, 0x10, 1, b'x'])]);
    add("C4.2", "a change of the table's size at a block's end", connection(COMPRESSION), &[with(&[0x20])]);
    add(
        "C4.2",
        "a change of the table's size at a block's beginning",
        Served(1),
        &[headers(1, &[&[0x20], &chat_head()[..]].concat()), last_data(1)],
    );
    add("C5.1", "a number without an end", connection(COMPRESSION), &[with(&[0xff; 12])]);
    add(
        "C5.2",
        "padding of a coded text beyond seven bits",
        connection(COMPRESSION),
        &[with(&[0, 1, b'x', 0x82, 0x1f, 0xff])],
    );
    add("C5.2", "padding of zeros", connection(COMPRESSION), &[with(&[0, 1, b'x', 0x81, 0x18])]);
    add(
        "C5.2",
        "the end's own symbol in a text",
        connection(COMPRESSION),
        &[with(&[0, 1, b'x', 0x84, 0xff, 0xff, 0xff, 0xff])],
    );
    add("C6.1", "index 0", connection(COMPRESSION), &[with(&[0x80])]);
    add(
        "C6.3",
        "a table larger than allowed",
        connection(COMPRESSION),
        &[headers(1, &[&[0x3f, 0xe2, 0x1f], &chat_head()[..]].concat())],
    );
    let indexed = [&[0x40][..], &[1, b'x', 1, b'y']].concat();
    add(
        "C6.2.1",
        "a field that is kept, and used by a later request",
        Served(3),
        &[with(&indexed), last_data(1), headers(3, &[&chat_head()[..], &[0xbe]].concat()), last_data(3)],
    );
}
