//! Requests within requests: none of them is answered, whatever frames the outer one (RFC 9112, sections 6.1 and 9.3).

use super::{AnsweredEarly, Case, Refused, SMUGGLED, Served, ServedLast, Spoils, case, get, post, warned};

/// A body that ends with its first chunk, and a request behind it that the length has in the body.
fn inside_length(coding: &str, length: &str) -> String {
    let behind = format!("0\r\n\r\n{SMUGGLED}");
    let length = length.replace('N', &behind.len().to_string());
    post(&format!("content-length: {length}\r\n{coding}\r\n"), &behind)
}

pub(super) fn cases() -> Vec<Case> {
    let head =
        inside_length("transfer-encoding: chunked", "N").replacen("GET /free?smuggled", "HEAD /free?smuggled", 1);
    let two = "transfer-encoding: chunked\r\ntransfer-encoding: identity";
    // The length ends behind the first size: whoever goes by it finds a request in the chunk.
    let inner = SMUGGLED.replacen("\r\n\r\n", "\r\ncontent-length: 7\r\n\r\n", 1);
    let size = format!("{:x}\r\n", inner.len());
    let in_chunk = post(
        &format!("transfer-encoding: chunked\r\ncontent-length: {}\r\n", size.len()),
        &format!("{size}{inner}\r\n0\r\n\r\n"),
    );
    let inner: &'static str = inner.leak();
    let prefix = "GET /free?smuggled HTTP/1.1\r\nhost: r\r\n";
    let bodied =
        |line: &str| format!("{line} HTTP/1.1\r\nhost: r\r\ncontent-length: {}\r\n\r\n{SMUGGLED}", SMUGGLED.len());
    let last = ServedLast("");
    vec![
        warned(
            "SMUG-CLTE-PIPELINE SMUG-CLTE-CONN-CLOSE",
            post("content-length: 4\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
            last,
        ),
        warned(
            "SMUG-TECL-PIPELINE SMUG-TECL-CONN-CLOSE",
            post("transfer-encoding: chunked\r\ncontent-length: 30\r\n", "0\r\n\r\n"),
            last,
        ),
        warned("SMUG-CLTE-DESYNC", post("content-length: 6\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\nX"), last),
        warned("SMUG-TECL-DESYNC", post("transfer-encoding: chunked\r\ncontent-length: 30\r\n", "0\r\n\r\nX"), last),
        warned("SMUG-CLTE-SMUGGLED-GET", inside_length("transfer-encoding: chunked", "N"), last),
        warned("SMUG-CLTE-SMUGGLED-HEAD", head, last),
        warned("SMUG-TECL-SMUGGLED-GET", in_chunk, ServedLast(inner)),
        warned("SMUG-CLTE-SMUGGLED-GET-TE-TRAILING-SPACE", inside_length("transfer-encoding: chunked ", "N"), last),
        warned("SMUG-CLTE-SMUGGLED-GET-TE-CASE-MISMATCH", inside_length("transfer-encoding: Chunked", "N"), last),
        case(
            "SMUG-CLTE-SMUGGLED-GET-TE-LEADING-COMMA",
            inside_length("transfer-encoding: , chunked", "N"),
            Refused(400),
        ),
        case("SMUG-CLTE-SMUGGLED-GET-TE-OBS-FOLD", inside_length("transfer-encoding:\r\n chunked", "N"), Refused(400)),
        case("SMUG-CLTE-SMUGGLED-GET-CL-PLUS", inside_length("transfer-encoding: chunked", "+N"), Refused(400)),
        case("SMUG-CLTE-SMUGGLED-GET-CL-NON-NUMERIC", inside_length("transfer-encoding: chunked", "Nx"), Refused(400)),
        case("SMUG-TE-DUPLICATE-HEADERS-SMUGGLED-GET", inside_length(two, "N"), Refused(400)),
        // Plain framing, and bodies where none is expected: what follows stands behind the body.
        case("COMP-BASELINE SMUG-PIPELINE-SAFE", get(""), Served("")),
        warned("COMP-GET-WITH-CL-BODY SMUG-GET-CL-BODY-DESYNC", bodied("GET /free"), Served(SMUGGLED)),
        warned(
            "SMUG-GET-CL-PREFIX-DESYNC",
            format!("GET /free HTTP/1.1\r\nhost: r\r\ncontent-length: {}\r\n\r\n{prefix}", prefix.len()),
            Served(prefix),
        ),
        case("SMUG-OPTIONS-CL-BODY SMUG-OPTIONS-CL-BODY-DESYNC", bodied("OPTIONS /free"), AnsweredEarly(405)),
        warned("SMUG-HEAD-CL-BODY", bodied("HEAD /health"), AnsweredEarly(200)),
        case("9112 6.3: a body that nobody wants", bodied("POST /nowhere"), AnsweredEarly(404)),
        warned(
            "SMUG-EXPECT-100-CL SMUG-EXPECT-100-CL-DESYNC",
            post("expect: 100-continue\r\ncontent-length: 5\r\n", "hello"),
            Served("hello"),
        ),
        case("SMUG-CL0-BODY-POISON", post("content-length: 0\r\n", "X"), Spoils),
        case(
            "9112 9.3: a request behind an upgrade that is none",
            get("connection: upgrade\r\nupgrade: foo\r\n"),
            Served(""),
        ),
    ]
}

#[tokio::test]
async fn no_request_within_a_request_is_answered() {
    super::all_have_their_verdict(cases()).await;
}
