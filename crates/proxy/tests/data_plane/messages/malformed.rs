//! What is no message, or too much of one (RFC 9112, sections 2.2 and 3; RFC 9110, section 5.4; RFC 3986).

use super::{Answered, Case, Refused, case, get, line, warned};

/// A request for a target with these bytes in it.
fn target(bytes: &[u8]) -> Vec<u8> {
    [b"GET /free?", bytes, b" HTTP/1.1\r\nhost: r\r\n\r\n"].concat()
}

pub(super) fn cases() -> Vec<Case> {
    let long = "x".repeat(100_000);
    let many: String = (0..10_000).map(|number| format!("x-{number}: a\r\n")).collect();
    vec![
        case("MAL-BINARY-GARBAGE", b"\xde\xad\xbe\xef\0\x01\xfe\xff\r\n\r\n", Refused(400)),
        case("9112 2.2: a hello of TLS", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n", Refused(400)),
        case("9112 2.2: NUL", b"\0\0\0\r\n\r\n", Refused(400)),
        case("9112 2.2: no words", "hello\r\n\r\n", Refused(400)),
        case("9110 9.1: a control character in a method", line("G\x01T /free HTTP/1.1"), Refused(400)),
        // Targets.
        case("MAL-NUL-IN-URL", target(b"\0"), Refused(400)),
        case("MAL-NON-ASCII-URL", target("\u{eb}".as_bytes()), Answered(400)),
        case("MAL-URL-OVERLONG-UTF8", target(b"\xc0\xaf"), Refused(400)),
        case("3986 2: DEL in a target", target(b"\x7f"), Refused(400)),
        case(
            "3986 2: letters beyond ASCII in a path",
            line("GET /free HTTP/1.1").replacen("free", "fr\u{fffd}e", 1),
            Answered(400),
        ),
        warned("MAL-URL-PERCENT-NULL", line("GET /free%00 HTTP/1.1"), Answered(404)),
        warned("MAL-URL-PERCENT-CRLF", line("GET /free%0d%0ax:%20y HTTP/1.1"), Answered(404)),
        warned("MAL-URL-BACKSLASH", line("GET /free\\x HTTP/1.1"), Answered(404)),
        // Too much.
        case("MAL-LONG-URL", line(&format!("GET /{long} HTTP/1.1")), Refused(414)),
        case("MAL-LONG-METHOD", line(&format!("{long} /free HTTP/1.1")), Refused(400)),
        case("MAL-LONG-HEADER-NAME", get(&format!("{long}: a\r\n")), Refused(400)),
        case("MAL-LONG-HEADER-VALUE", get(&format!("a: {long}\r\n")), Answered(431)),
        case("MAL-MANY-HEADERS", get(&many), Refused(431)),
    ]
}

#[tokio::test]
async fn what_is_no_message_is_refused_in_words() {
    super::all_have_their_verdict(cases()).await;
}
