//! Transfer-Encoding (RFC 9112, sections 6.1 and 7).

use super::{Case, Refused, Served, ServedLast, case, post, warned};

const CHUNKS: &str = "5\r\nhello\r\n0\r\n\r\n";

/// A body in chunks under this coding.
fn coding(value: &str) -> String {
    post(&format!("transfer-encoding: {value}\r\n"), CHUNKS)
}

/// A body of seven bytes that is no chunk, under these lines and its length: it must not be taken by its length.
fn beside_length(lines: &str) -> String {
    post(&format!("{lines}\r\ncontent-length: 7\r\n"), "hello\r\n")
}

pub(super) fn cases() -> Vec<Case> {
    let old = beside_length("transfer-encoding: chunked").replacen("HTTP/1.1", "HTTP/1.0", 1);
    let folded = "OPTIONS /free HTTP/1.1\r\nhost: r\r\ntransfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n";
    vec![
        case("SMUG-TE-SP-BEFORE-COLON", beside_length("transfer-encoding : chunked"), Refused(400)),
        case("SMUG-TE-NOT-FINAL-CHUNKED", coding("chunked, gzip"), Refused(400)),
        case("SMUG-TE-HTTP10", old, Refused(400)),
        case("9112 6.1: HTTP/1.0 without a length", coding("chunked").replacen("1.1", "1.0", 1), Refused(400)),
        case("SMUG-TE-EMPTY-VALUE", beside_length("transfer-encoding:"), Refused(400)),
        case(
            "SMUG-TE-DUPLICATE-HEADERS",
            beside_length("transfer-encoding: chunked\r\ntransfer-encoding: identity"),
            Refused(400),
        ),
        case(
            "9112 6.1: two lines, chunked last",
            post("transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n", CHUNKS),
            Refused(400),
        ),
        case(
            "9112 7.1: chunked in two lines",
            post("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", CHUNKS),
            Refused(400),
        ),
        case("SMUG-TE-IDENTITY", beside_length("transfer-encoding: identity"), Refused(400)),
        case("SMUG-TE-XCHUNKED", beside_length("transfer-encoding: xchunked"), Refused(400)),
        case("COMP-UNKNOWN-TE-501", coding("gzip"), Refused(400)),
        case("9112 6.1: a coding before chunked", coding("gzip, chunked"), Refused(400)),
        case("9112 6.1: identity behind chunked", coding("chunked, identity"), Refused(400)),
        case("SMUG-TE-VTAB", beside_length("transfer-encoding: \x0bchunked"), Refused(400)),
        case("SMUG-TE-FORMFEED", beside_length("transfer-encoding: \x0cchunked"), Refused(400)),
        case("SMUG-TE-NULL", beside_length("transfer-encoding: chunked\0"), Refused(400)),
        case("SMUG-TE-OBS-FOLD", beside_length("transfer-encoding:\r\n chunked"), Refused(400)),
        case("SMUG-OPTIONS-TE-OBS-FOLD", folded, Refused(400)),
        case("SMUG-TE-TRAILING-SPACE", beside_length("transfer-encoding: chunked "), Refused(400)),
        case("SMUG-TE-CASE-MISMATCH", beside_length("transfer-encoding: Chunked"), Refused(400)),
        case("SMUG-TE-DOUBLE-CHUNKED", beside_length("transfer-encoding: chunked, chunked"), Refused(400)),
        case("SMUG-TE-TRAILING-COMMA", coding("chunked,"), Refused(400)),
        case("SMUG-TE-LEADING-COMMA", coding(", chunked"), Refused(400)),
        case("SMUG-CHUNKED-WITH-PARAMS", coding("chunked;q=1"), Refused(400)),
        case("9112 6.1: quotes", coding("\"chunked\""), Refused(400)),
        case(
            "9112 6.1: a comma in front, then another line",
            post("transfer-encoding: , chunked\r\ntransfer-encoding: x\r\n", CHUNKS),
            Refused(400),
        ),
        // Spellings of the same.
        case("NORM-CASE-TE", post("TRANSFER-ENCODING: chunked\r\n", CHUNKS), ServedLast("hello")),
        case("9112 7: the coding in capitals", coding("CHUNKED"), ServedLast("hello")),
        warned("SMUG-TE-TAB-BEFORE-VALUE", coding("\tchunked"), ServedLast("hello")),
        // Other names.
        case(
            "SMUG-TRANSFER_ENCODING NORM-UNDERSCORE-TE",
            beside_length("transfer_encoding: chunked"),
            Served("hello\r\n"),
        ),
        // A length beside it, and a body that is in chunks: the length is dropped, the connection ends.
        warned(
            "SMUG-CL-TE-BOTH",
            post("content-length: 15\r\ntransfer-encoding: chunked\r\n", CHUNKS),
            ServedLast("hello"),
        ),
    ]
}

#[tokio::test]
async fn a_body_is_in_chunks_or_in_no_coding() {
    super::all_have_their_verdict(cases()).await;
}
