//! Field lines (RFC 9110, section 5; RFC 9112, section 5).

use super::{Case, Refused, Served, case, get, post, warned};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("RFC9110-5.6.2-SP-BEFORE-COLON", get("x-test : a\r\n"), Refused(400)),
        case("9112 5.1: a tab before the colon", get("x-test\t: a\r\n"), Refused(400)),
        case("RFC9112-5.1-OBS-FOLD", get("x-test: a\r\n b\r\n"), Refused(400)),
        case("9112 5.2: folded with a tab", get("x-test: a\r\n\tb\r\n"), Refused(400)),
        case("RFC9112-5-EMPTY-HEADER-NAME", get(": a\r\n"), Refused(400)),
        case("RFC9112-5-INVALID-HEADER-NAME", get("x[test]: a\r\n"), Refused(400)),
        case("9110 5.1: white space in a name", get("x test: a\r\n"), Refused(400)),
        case("9110 5.1: a control character in a name", get("x\x01test: a\r\n"), Refused(400)),
        case("NORM-TAB-IN-NAME", post("content-length: 5\r\ncontent-length\tx: 9\r\n", "hello"), Refused(400)),
        case("RFC9112-5-HEADER-NO-COLON", get("x-test\r\n"), Refused(400)),
        case("SMUG-BARE-CR-HEADER-VALUE", get("x-test: a\rb\r\n"), Refused(400)),
        case("9112 2.2: CR at a value's end", get("x-test: a\r\r\n"), Refused(400)),
        warned("RFC9112-2.2-BARE-LF-HEADER", get("x-test: a\n"), Served("")),
        case("MAL-NUL-IN-HEADER-VALUE", get("x-test: a\0b\r\n"), Refused(400)),
        case("MAL-CONTROL-CHARS-HEADER", get("x-test: a\x01\x08\x1fb\r\n"), Refused(400)),
        case("9110 5.5: DEL in a value", get("x-test: a\x7fb\r\n"), Refused(400)),
        case("MAL-NON-ASCII-HEADER-NAME", get("x-t\u{eb}st: a\r\n"), Refused(400)),
        case("9110 5.5: bytes beyond ASCII in a value", get("x-test: \u{eb}\r\n"), Served("")),
        case("9110 5.5: an empty value", get("x-test:\r\n"), Served("")),
        case("9112 5: two lines that look injected", get("x-test: a\r\ninjected: yes\r\n"), Served("")),
        warned("COMP-DUPLICATE-CT", post("content-type: a/b\r\ncontent-type: c/d\r\n", ""), Served("")),
        case("COMP-ACCEPT-NONSENSE", get("accept: x/y\r\n"), Served("")),
        case("COMP-POST-UNSUPPORTED-CT", post("content-type: x/y\r\ncontent-length: 5\r\n", "hello"), Served("hello")),
        case("COMP-RANGE-POST", post("range: bytes=0-1\r\ncontent-length: 5\r\n", "hello"), Served("hello")),
        case("COMP-RANGE-INVALID", get("range: bytes=x-y\r\n"), Served("")),
        warned("MAL-RANGE-OVERLAPPING", get("range: bytes=0-9,0-9,0-9,0-9\r\n"), Served("")),
        warned("COMP-EXPECT-UNKNOWN", get("expect: 200-ok\r\n"), Served("")),
    ]
}

#[tokio::test]
async fn field_lines_have_one_form() {
    super::all_have_their_verdict(cases()).await;
}
