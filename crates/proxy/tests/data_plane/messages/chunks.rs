//! The chunks of a body (RFC 9112, section 7.1).

use super::{Case, Endless, Refused, SMUGGLED, ServedLast, case, post};

fn chunked(body: &str) -> String {
    post("transfer-encoding: chunked\r\n", body)
}

/// One chunk that begins with this line, and the last.
fn size(line: &str) -> String {
    chunked(&format!("{line}\r\nhello\r\n0\r\n\r\n"))
}

/// A whole body with this line behind it.
fn trailer(line: &str) -> String {
    chunked(&format!("5\r\nhello\r\n0\r\n{line}\r\n\r\n"))
}

pub(super) fn cases() -> Vec<Case> {
    let last = ServedLast("hello");
    vec![
        case("COMP-CHUNKED-BODY", size("5"), last),
        case("COMP-CHUNKED-MULTI", chunked("1\r\nh\r\n4\r\nello\r\n0\r\n\r\n"), last),
        case("COMP-CHUNKED-EMPTY", chunked("0\r\n\r\n"), ServedLast("")),
        case("COMP-CHUNKED-HEX-UPPERCASE", chunked("A\r\n0123456789\r\n0\r\n\r\n"), ServedLast("0123456789")),
        case("COMP-CHUNKED-TRAILER-VALID", trailer("x-checksum: abc"), last),
        case("COMP-CHUNKED-EXTENSION", size("5;name=value"), last),
        case("9112 7.1.1: a quoted value", size("5;a=\"b;\\\"c\""), last),
        case("9112 7.1.1: no value, and two", size("5;a;b=c"), last),
        case("9112 7.1.1: white space around", size("5 ; a = b"), last),
        case("9112 7.1: zeros in front", chunked("0005\r\nhello\r\n000\r\n\r\n"), last),
        case("COMP-CHUNKED-NO-FINAL", chunked("5\r\nhello\r\n"), Endless),
        // Sizes.
        case("SMUG-CHUNK-HEX-PREFIX", size("0x5"), Refused(400)),
        case("SMUG-CHUNK-UNDERSCORE", size("1_0"), Refused(400)),
        case("SMUG-CHUNK-LEADING-SP", size(" 5"), Refused(400)),
        case("SMUG-CHUNK-NEGATIVE", size("-5"), Refused(400)),
        case("SMUG-CHUNK-SIZE-PLUS", size("+5"), Refused(400)),
        case("SMUG-CHUNK-SIZE-TRAILING-OWS", size("5 "), Refused(400)),
        case("9112 7.1: a tab behind the size", size("5\t"), Refused(400)),
        case("9112 7.1: white space behind the last size", chunked("5\r\nhello\r\n0 \r\n\r\n"), Refused(400)),
        case("SMUG-CHUNK-INVALID-SIZE-DESYNC", chunked("+0\r\n\r\nX"), Refused(400)),
        case("MAL-CHUNK-SIZE-OVERFLOW", size("10000000000000005"), Refused(400)),
        case("9112 7.1: the largest size that there is", size("ffffffffffffffff"), Endless),
        case("9112 7.1: no size", size(""), Refused(400)),
        case("9112 7.1: no digit", size("5g"), Refused(400)),
        case("9112 7.1: text", size("zz"), Refused(400)),
        // Extensions.
        case("SMUG-CHUNK-BARE-SEMICOLON", size("5;"), Refused(400)),
        case("SMUG-CHUNK-EXT-INVALID-TOKEN", size("5;[a=b"), Refused(400)),
        case("SMUG-CHUNK-EXT-CTRL", size("5;\0a"), Refused(400)),
        case("SMUG-CHUNK-EXT-CR", size("5;a\rb"), Refused(400)),
        case("SMUG-CHUNK-EXT-LF", size("5;a\nb"), Refused(400)),
        case("MAL-CHUNK-EXT-64K", size(&format!("5;a={}", "b".repeat(65_536))), Refused(400)),
        case("9112 7.1.1: no name", size("5;=b"), Refused(400)),
        case("9112 7.1.1: no value behind the sign", size("5;a="), Refused(400)),
        case("9112 7.1.1: quotes without an end", size("5;a=\"b"), Refused(400)),
        case("9112 7.1.1: a second one without a name", size("5;a;"), Refused(400)),
        case("9112 7.1.1: a control character in quotes", size("5;a=\"\x01\""), Refused(400)),
        case("9112 7.1.1: two words", size("5;a b"), Refused(400)),
        // Line ends.
        case("SMUG-CHUNK-BARE-CR-TERM", chunked("5\rhello\r\n0\r\n\r\n"), Refused(400)),
        case("SMUG-CHUNK-LF-TERM", chunked("5\r\nhello\n0\r\n\r\n"), Refused(400)),
        case("9112 7.1: LF behind the size", chunked("5\nhello\r\n0\r\n\r\n"), Refused(400)),
        case("9112 7.1: CR behind the data", chunked("5\r\nhello\r0\r\n\r\n"), Refused(400)),
        case("SMUG-CHUNK-LF-TRAILER", chunked("5\r\nhello\r\n0\r\n\n"), Refused(400)),
        case("SMUG-CHUNK-MISSING-TRAILING-CRLF", chunked("5\r\nhello0\r\n\r\n"), Refused(400)),
        case("SMUG-CHUNK-SPILL", chunked("5\r\nhello12\r\n0\r\n\r\n"), Refused(400)),
        case(
            "9112 7.1: a request where a chunk's end should be",
            chunked(&format!("5\r\nhello{SMUGGLED}")),
            Refused(400),
        ),
        // Trailers: read, checked, dropped.
        case("SMUG-TRAILER-CL", trailer("content-length: 99\r\nx: forged"), last),
        case("SMUG-TRAILER-TE", trailer("transfer-encoding: forged"), last),
        case("SMUG-TRAILER-HOST", trailer("host: forged"), last),
        case("SMUG-TRAILER-AUTH", trailer("authorization: Bearer forged"), last),
        case("SMUG-TRAILER-CONTENT-TYPE", trailer("content-type: text/forged"), last),
        case("9112 7.1.2: no name", trailer("x y: z"), Refused(400)),
        case("9112 7.1.2: a folded one", trailer("x: y\r\n z"), Refused(400)),
        case("9112 7.1.2: a control character", trailer("x: \x01"), Refused(400)),
    ]
}

#[tokio::test]
async fn chunks_follow_the_grammar_to_the_letter() {
    super::all_have_their_verdict(cases()).await;
}
