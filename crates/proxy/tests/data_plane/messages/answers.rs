//! What the answers to sound requests must be: connections, methods, upgrades, heads (RFC 9110, sections 7.8, 8.6, 9, 10
//! and 15; RFC 9112, section 9).

use super::{Answered, AnsweredEarly, Case, NoContent, Served, ServedLast, case, get, line, post, warned};

/// A handshake of RFC 6455 with these lines of it changed.
fn websocket(request: &str, connection: &str, upgrade: &str, version: u8) -> String {
    format!(
        "{request}\r\nhost: r\r\n{connection}upgrade: {upgrade}\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
         sec-websocket-version: {version}\r\n\r\n"
    )
}

pub(super) fn cases() -> Vec<Case> {
    let upgrade = "connection: upgrade\r\n";
    let old = post("expect: 100-continue\r\ncontent-length: 5\r\n", "hello").replacen("1.1", "1.0", 1);
    vec![
        // Connections.
        case("COMP-CONNECTION-CLOSE", get("connection: close\r\n"), ServedLast("")),
        case("9112 9.6: in a list, in capitals", get("connection: x, CLOSE\r\n"), ServedLast("")),
        case("COMP-HTTP10-DEFAULT-CLOSE", line("GET /free HTTP/1.0"), ServedLast("")),
        case("COMP-NO-1XX-HTTP10", old, ServedLast("hello")),
        // Methods.
        case("COMP-HEAD-NO-BODY", line("HEAD /v1/models HTTP/1.1"), Answered(200)),
        case("COMP-405-ALLOW COMP-DATE-HEADER COMP-DATE-FORMAT", line("DELETE /v1/models HTTP/1.1"), Answered(405)),
        case("COMP-CONTENT-TYPE", line("GET /v1/models HTTP/1.1"), Answered(200)),
        case("COMP-OPTIONS-ALLOW", line("OPTIONS /free HTTP/1.1"), Answered(405)),
        case("COMP-UNKNOWN-METHOD", line("FOOBAR /free HTTP/1.1"), Answered(405)),
        case("COMP-METHOD-CASE", line("get /free HTTP/1.1"), Answered(405)),
        case("COMP-METHOD-CONNECT", line("CONNECT r:443 HTTP/1.1"), Answered(400)),
        case(
            "COMP-METHOD-TRACE COMP-TRACE-SENSITIVE",
            line("TRACE /free HTTP/1.1").replacen("\r\n\r\n", "\r\nauthorization: Bearer smuggled\r\n\r\n", 1),
            Answered(405),
        ),
        case(
            "COMP-TRACE-WITH-BODY",
            post("content-length: 5\r\n", "hello").replacen("POST", "TRACE", 1),
            AnsweredEarly(405),
        ),
        // Upgrades: there is none.
        case("COMP-UPGRADE-POST", websocket("POST /free HTTP/1.1", upgrade, "websocket", 13), Served("")),
        case("COMP-UPGRADE-MISSING-CONN", websocket("GET /free HTTP/1.1", "", "websocket", 13), Served("")),
        case("COMP-UPGRADE-UNKNOWN", websocket("GET /free HTTP/1.1", upgrade, "foo/2", 13), Served("")),
        warned("COMP-UPGRADE-INVALID-VER", websocket("GET /free HTTP/1.1", upgrade, "websocket", 99), Served("")),
        case("COMP-UPGRADE-HTTP10", websocket("GET /free HTTP/1.0", upgrade, "websocket", 13), ServedLast("")),
        // Answers without content.
        case("COMP-NO-CL-IN-204", line("GET /free?204 HTTP/1.1"), NoContent),
    ]
}

#[tokio::test]
async fn sound_requests_have_the_answers_that_are_demanded() {
    super::all_have_their_verdict(cases()).await;
}
