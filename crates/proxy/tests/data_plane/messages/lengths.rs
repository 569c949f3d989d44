//! Content-Length (RFC 9110, section 8.6; RFC 9112, sections 6.2 and 6.3).

use super::{Case, Endless, Refused, SMUGGLED, Served, case, post, warned};

/// A body of five bytes under this length.
fn length(value: &str) -> String {
    post(&format!("content-length: {value}\r\n"), "hello")
}

pub(super) fn cases() -> Vec<Case> {
    let both = format!("content-length: 5\r\ncontent-length: {}\r\n", 5 + SMUGGLED.len());
    vec![
        case("COMP-POST-CL-BODY", length("5"), Served("hello")),
        case("COMP-POST-CL-ZERO", post("content-length: 0\r\n", ""), Served("")),
        case("COMP-POST-NO-CL-NO-TE", post("", ""), Served("")),
        case("COMP-POST-CL-UNDERSEND", length("10"), Endless),
        case("RFC9112-6.1-CL-NON-NUMERIC", length("abc"), Refused(400)),
        case("RFC9112-6.1-CL-PLUS-SIGN", length("+5"), Refused(400)),
        case("SMUG-CL-NEGATIVE", length("-5"), Refused(400)),
        case("SMUG-CL-NEGATIVE-ZERO", post("content-length: -0\r\n", ""), Refused(400)),
        case("SMUG-CL-UNDERSCORE", post("content-length: 1_0\r\n", "0123456789"), Refused(400)),
        case("SMUG-CL-OCTAL", length("0o5"), Refused(400)),
        case("SMUG-CL-HEX-PREFIX", length("0x5"), Refused(400)),
        case("SMUG-CL-INTERNAL-SPACE", post("content-length: 1 0\r\n", "0123456789"), Refused(400)),
        case("MAL-CL-EMPTY", length(""), Refused(400)),
        case("MAL-CL-OVERFLOW", length("18446744073709551621"), Refused(400)),
        case("MAL-POST-CL-HUGE-NO-BODY", post("content-length: 9999999999\r\n", ""), Refused(413)),
        case("9112 6.3: a suffix", length("5x"), Refused(400)),
        case("9112 6.3: a parameter", length("5;"), Refused(400)),
        case("9112 6.3: an empty element", length("5,"), Refused(400)),
        case("9112 6.3: a fraction", length("5.0"), Refused(400)),
        case("9112 6.3: an exponent", length("5e0"), Refused(400)),
        case("9112 6.3: white space that is none", length("\x0b5"), Refused(400)),
        case("9112 6.3: quotes", length("\"5\""), Refused(400)),
        case("9112 5.2: a folded length", post("content-length:\r\n 5\r\n", "hello"), Refused(400)),
        case("NORM-SP-BEFORE-COLON-CL", post("content-length : 5\r\n", "hello"), Refused(400)),
        // Several lengths.
        case("SMUG-DUPLICATE-CL", post("content-length: 5\r\ncontent-length: 10\r\n", "helloworld"), Refused(400)),
        case("SMUG-DUPLICATE-CL-SMUGGLED-GET", post(&both, &format!("hello{SMUGGLED}")), Refused(400)),
        case("SMUG-CL-COMMA-DIFFERENT", post("content-length: 5, 10\r\n", "helloworld"), Refused(400)),
        case("SMUG-CL-COMMA-SAME", length("5, 5"), Refused(400)),
        case("SMUG-CL-COMMA-TRIPLE", length("5, 5, 5"), Refused(400)),
        warned(
            "9110 8.6: twice the same",
            post("content-length: 5\r\ncontent-length: 05\r\n", "hello"),
            Served("hello"),
        ),
        // The grammar has them.
        warned("SMUG-CL-LEADING-ZEROS", length("005"), Served("hello")),
        warned("SMUG-CL-LEADING-ZEROS-OCTAL", post("content-length: 010\r\n", "0123456789"), Served("0123456789")),
        warned("SMUG-CL-DOUBLE-ZERO", post("content-length: 00\r\n", ""), Served("")),
        warned("SMUG-CL-TRAILING-SPACE", length("5 "), Served("hello")),
        warned("SMUG-CL-EXTRA-LEADING-SP", length(" 5"), Served("hello")),
        warned("MAL-CL-TAB-BEFORE-VALUE", post("content-length:\t5\r\n", "hello"), Served("hello")),
        // Another name.
        case("NORM-UNDERSCORE-CL", post("content-length: 5\r\ncontent_length: 9\r\n", "hello"), Served("hello")),
    ]
}

#[tokio::test]
async fn lengths_are_digits_and_one() {
    super::all_have_their_verdict(cases()).await;
}
