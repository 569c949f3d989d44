//! The request line and the host (RFC 9112, sections 2.2, 2.3 and 3).

use super::{Answered, Case, Endless, Refused, Served, ServedLast, case, get, line, warned};

fn host(lines: &str) -> String {
    format!("GET /free HTTP/1.1\r\n{lines}\r\n")
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        // Line ends, white space.
        case("RFC9112-3-CR-ONLY-LINE-ENDING", "GET /free HTTP/1.1\rhost: r\r\n\r\n", Refused(400)),
        warned("RFC9112-2.2-BARE-LF-REQUEST-LINE", "GET /free HTTP/1.1\nhost: r\r\n\r\n", Served("")),
        warned("9112 2.2: LF alone ends every line", "GET /free HTTP/1.1\nhost: r\n\n", Served("")),
        case("COMP-LEADING-CRLF", format!("\r\n\r\n{}", get("")), Served("")),
        case("9112 2.2: white space in front", format!(" {}", get("")), Refused(400)),
        case("COMP-WHITESPACE-BEFORE-HEADERS", "GET /free HTTP/1.1\r\n \r\nhost: r\r\n\r\n", Refused(400)),
        case("9112 2.2: white space before the first field", host(" host: r\r\n"), Refused(400)),
        case("9112 2.2: a tab before the first field", host("\tx: y\r\nhost: r\r\n"), Refused(400)),
        case("MAL-WHITESPACE-ONLY-LINE", "   \r\n\r\n", Refused(400)),
        case("MAL-INCOMPLETE-REQUEST", "GET /free HTTP/1.1\r\nhost: r\r\nx-partial: a", Endless),
        case("MAL-EMPTY-REQUEST", "", Endless),
        case("RFC9112-3-MULTI-SP-REQUEST-LINE", line("GET  /free HTTP/1.1"), Refused(400)),
        case("9112 3: two spaces before the version", line("GET /free  HTTP/1.1"), Refused(400)),
        case("COMP-REQUEST-LINE-TAB", line("GET\t/free\tHTTP/1.1"), Refused(400)),
        case("9112 3: a word behind the version", line("GET /free HTTP/1.1 x"), Refused(400)),
        case("9112 3: a space at the line's end", line("GET /free HTTP/1.1 "), Refused(400)),
        // Targets.
        case("RFC9112-3-MISSING-TARGET", line("GET HTTP/1.1"), Refused(400)),
        case("9112 3: nothing between two spaces", line("GET  HTTP/1.1"), Refused(400)),
        case("COMP-SPACE-IN-TARGET", line("GET /free x HTTP/1.1"), Refused(400)),
        case("RFC9112-3.2-FRAGMENT-IN-TARGET", line("GET /free#x HTTP/1.1"), Refused(400)),
        case("COMP-ASTERISK-WITH-GET", line("GET * HTTP/1.1"), Answered(400)),
        case("9112 3.2.4: an asterisk with POST", line("POST * HTTP/1.1"), Answered(400)),
        case("COMP-OPTIONS-STAR", line("OPTIONS * HTTP/1.1"), Answered(200)),
        case("9112 3.2.3: an authority with GET", line("GET r:80 HTTP/1.1"), Answered(400)),
        case("9112 3.2.1: a path without its slash", line("GET free/x HTTP/1.1"), Refused(400)),
        case("COMP-ABSOLUTE-FORM", line("GET http://r/free HTTP/1.1"), Served("")),
        warned("SMUG-ABSOLUTE-URI-HOST-MISMATCH", line("GET http://other/free HTTP/1.1"), Served("")),
        case("COMP-LONG-URL-OK", line(&format!("GET /free?{} HTTP/1.1", "x".repeat(7_900))), Served("")),
        // Versions.
        case("COMP-VERSION-MISSING-MINOR", line("GET /free HTTP/1"), Refused(400)),
        case("COMP-VERSION-LEADING-ZEROS", line("GET /free HTTP/01.01"), Refused(400)),
        case("COMP-VERSION-WHITESPACE", line("GET /free HTTP/ 1.1"), Refused(400)),
        case("COMP-VERSION-CASE", line("GET /free http/1.1"), Refused(400)),
        case("RFC9112-2.3-HTTP09-REQUEST", "GET /free\r\n\r\n", Refused(400)),
        case("9112 2.3: fields behind HTTP/0.9", line("GET /free"), Refused(400)),
        case("RFC9112-2.3-INVALID-VERSION", line("GET /free HTTP/9.9"), Refused(400)),
        case("COMP-HTTP12-VERSION", line("GET /free HTTP/1.2"), Refused(400)),
        case("9112 2.3: HTTP/0.9 in words", line("GET /free HTTP/0.9"), Refused(400)),
        case("9112 2.3: HTTP/2.0", line("GET /free HTTP/2.0"), Refused(400)),
        case("9112 2.3: another protocol", line("GET /free HTTPS/1.1"), Refused(400)),
        // The host.
        case("RFC9112-7.1-MISSING-HOST", host(""), Answered(400)),
        case("RFC9110-5.4-DUPLICATE-HOST", host("host: r\r\nhost: other\r\n"), Answered(400)),
        case("COMP-DUPLICATE-HOST-SAME", host("host: r\r\nhost: r\r\n"), Answered(400)),
        case("COMP-HOST-WITH-USERINFO", host("host: user@r\r\n"), Answered(400)),
        case("COMP-HOST-WITH-PATH", host("host: r/path\r\n"), Answered(400)),
        case("COMP-HOST-EMPTY-VALUE", host("host: \r\n"), Answered(400)),
        case("SMUG-MULTIPLE-HOST-COMMA", host("host: r, other\r\n"), Answered(400)),
        case("9112 3.2: white space in the host", host("host: a b\r\n"), Answered(400)),
        case("9112 3.2: a query in the host", host("host: r?x\r\n"), Answered(400)),
        case("9112 3.2: a port that is none", host("host: r:http\r\n"), Answered(400)),
        case("9112 3.2: a port without a host", host("host: :80\r\n"), Answered(400)),
        case("9112 3.2: a host with its scheme", host("host: http://r\r\n"), Answered(400)),
        case("9112 3.2: an address", host("host: [::1]:8080\r\n"), Served("")),
        case("9112 3.2: an address that is not closed", host("host: [::1\r\n"), Answered(400)),
        warned("COMP-HTTP10-NO-HOST", "GET /free HTTP/1.0\r\n\r\n", ServedLast("")),
        case("9112 3.2: two hosts in HTTP/1.0", host("host: r\r\nhost: r\r\n").replacen("1.1", "1.0", 1), Refused(400)),
    ]
}

#[tokio::test]
async fn request_lines_and_hosts_have_one_form() {
    super::all_have_their_verdict(cases()).await;
}
