//! What RFC 9110 and RFC 9112 demand of a server's answers to requests that are right.

use crate::client::{Client, chat, get, post};
use crate::origin::{END, EVENTS, Origin, chunk, json};
use crate::router::Router;

async fn router() -> (Origin, Router) {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "allow_paths: [/v1/audio/speech]\n");
    (origin, router)
}

fn embed(version: &str, headers: &str, body: &str) -> String {
    format!("POST /v1/embeddings {version}\r\nhost: r\r\n{headers}\r\n{body}")
}

#[tokio::test]
async fn a_connection_ends_or_stays_as_its_client_says() {
    let (_origin, router) = router().await;
    // RFC 9112, section 9.3: closed when told so, in whatever case and list, and by default in HTTP/1.0.
    for request in [
        embed("HTTP/1.1", "connection: close\r\ncontent-length: 2\r\n", "{}"),
        embed("HTTP/1.1", "Connection: x, CLOSE\r\ncontent-length: 2\r\n", "{}"),
        embed("HTTP/1.0", "content-length: 2\r\n", "{}"),
        get("/health").replacen("\r\n\r\n", "\r\nconnection: close\r\n\r\n", 1),
    ] {
        let mut client = router.connect().await;
        client.send(&request).await;
        assert_eq!(client.answer().await.status, 200, "{request:?}");
        assert!(client.ends().await, "{request:?}");
    }
    // Section 9.3.2: requests that do not wait for answers are answered in their order.
    let mut client = router.connect().await;
    client.send(get("/health") + &get("/nowhere") + &chat("x") + &get("/v1/models")).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(client.answer().await.status);
    }
    assert_eq!(statuses, [200, 404, 200, 200]);
}

#[tokio::test]
async fn an_answer_to_head_has_the_head_of_get_and_no_body() {
    let (_origin, router) = router().await;
    for path in ["/v1/models", "/health", "/ping"] {
        let got = router.ask(get(path)).await;
        let mut client = router.connect().await;
        client.send(get(path).replacen("GET", "HEAD", 1) + &get("/nowhere")).await;
        client.until("\r\n\r\n").await;
        client.until("HTTP/1.1 404").await;
        let head = client.so_far();
        let (head, rest) = head.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200") && rest.starts_with("HTTP/1.1 404"), "{path}: {head} {rest}");
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        assert!(length.is_none_or(|length: usize| length == got.body.len()), "{path}: {head}");
    }
}

#[tokio::test]
async fn every_answer_has_a_date() {
    // RFC 9110, section 6.6.1: also who passes one on that has none.
    let (_origin, router) = router().await;
    let malformed = post("/v1/chat/completions", "{");
    for request in [get("/health"), get("/nowhere"), get("/v1/chat/completions"), chat("x"), malformed] {
        let answer = router.ask(&request).await;
        let date = answer.header("date").unwrap_or_else(|| panic!("no date: {request:?} {answer:?}"));
        assert!(date.len() == 29 && date.ends_with(" GMT"), "{date}");
        assert_eq!(answer.headers.iter().filter(|(name, _)| name == "date").count(), 1);
    }
    let dated = json(200, "{}").replacen("\r\n", "\r\ndate: Tue, 15 Nov 1994 08:12:31 GMT\r\n", 1);
    let origin = Origin::answering(&dated).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(chat("x")).await;
    let dates: Vec<_> = answer.headers.iter().filter(|(name, _)| name == "date").collect();
    assert!(dates.len() == 1 && dates[0].1.contains("1994"), "the instance's own: {dates:?}");
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_no_chunks() {
    let stream = EVENTS.to_owned() + &chunk("data: {\"choices\":[]}\n\n") + &chunk("data: [DONE]\n\n") + END;
    let origin = Origin::answering(&stream).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(chat("x").replacen("HTTP/1.1", "HTTP/1.0", 1)).await;
    assert_eq!((answer.status, answer.header("transfer-encoding")), (200, None));
    assert_eq!(answer.text(), "data: {\"choices\":[]}\n\ndata: [DONE]\n\n");
}

#[tokio::test]
async fn methods_that_are_served_nowhere_are_refused_and_echo_nothing() {
    let (origin, router) = router().await;
    for line in [
        "OPTIONS /v1/chat/completions HTTP/1.1",
        "TRACE /v1/chat/completions HTTP/1.1",
        "TRACE / HTTP/1.1",
        "FOO /v1/models HTTP/1.1",
        "PROPFIND /v1/models HTTP/1.1",
        "get /v1/models HTTP/1.1",
        "CONNECT 127.0.0.1:22 HTTP/1.1",
    ] {
        let answer = router.ask(format!("{line}\r\nhost: r\r\nx-secret: canary\r\n\r\n")).await;
        assert!(matches!(answer.status, 400 | 404 | 405 | 501), "{line}: {}", answer.status);
        assert!(answer.text().contains(r#""error""#) && !answer.text().contains("canary"), "{line}: {}", answer.text());
        if answer.status == 405 {
            assert!(answer.header("allow").is_some(), "{line}: RFC 9110, section 15.5.6");
        }
    }
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn spellings_that_mean_the_same_are_read_the_same() {
    let (origin, router) = router().await;
    let chunked = |headers: &str, body: &str| embed("HTTP/1.1", headers, body);
    let requests = [
        // Names in any case, values with white space around them.
        embed("HTTP/1.1", "CONTENT-LENGTH:2\r\n", "{}"),
        embed("HTTP/1.1", "content-length: \t 2 \t\r\n", "{}"),
        chunked("Transfer-Encoding: Chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
        chunked("transfer-encoding:  chunked \t\r\n", "2\r\n{}\r\n0\r\n\r\n"),
        // Sizes with leading zeros, extensions that nobody knows, trailers that nobody wants.
        chunked("transfer-encoding: chunked\r\n", "0002\r\n{}\r\n000\r\n\r\n"),
        chunked("transfer-encoding: chunked\r\n", "2;a=b;c=\"d\"\r\n{}\r\n0;e\r\n\r\n"),
        chunked("transfer-encoding: chunked\r\n", "2\r\n{}\r\n0\r\nx: y\r\n\r\n"),
        // Hosts of every form, also where the target names another one.
        embed("HTTP/1.1", "content-length: 2\r\n", "{}").replacen("host: r", "host: [::1]:8080", 1),
        embed("HTTP/1.1", "content-length: 2\r\n", "{}").replacen("/v1/embeddings", "http://other/v1/embeddings", 1),
        // Empty values and bytes beyond ASCII in them.
        embed("HTTP/1.1", "x-empty:\r\nx-old: \u{e9}\r\ncontent-length: 2\r\n", "{}"),
    ];
    for (number, request) in requests.iter().enumerate() {
        let mut client: Client = router.connect().await;
        client.send(request).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 200, "{request:?}: {}", answer.text());
        let seen = origin.seen();
        assert_eq!((seen.len(), seen[number].body.as_slice()), (number + 1, &b"{}"[..]), "{request:?}");
        assert_eq!(seen[number].line, "POST /v1/embeddings HTTP/1.1");
        assert_eq!(seen[number].header("transfer-encoding"), None);
        // The connection ends, as after every body in chunks, or is where it should be: what follows is what it is.
        if answer.header("connection") == Some("close") {
            assert!(request.to_ascii_lowercase().contains("chunked") && client.ends().await, "{request:?}");
            continue;
        }
        client.send(get("/health")).await;
        assert_eq!(client.answer().await.status, 200, "{request:?}");
    }
}

#[tokio::test]
async fn trailers_become_no_headers() {
    let (origin, router) = router().await;
    let trailers = "authorization: Bearer forged\r\nx-amzn-sagemaker-prefix-aware-id: forged\r\ncontent-length: 7\r\n";
    let body = format!("2\r\n{{}}\r\n0\r\n{trailers}\r\n");
    let headers = "transfer-encoding: chunked\r\ntrailer: authorization\r\n";
    assert_eq!(router.ask(embed("HTTP/1.1", headers, &body)).await.status, 200);
    let seen = &origin.seen()[0];
    assert!(seen.headers.iter().all(|(_, value)| !value.contains("forged")), "{seen:?}");
    assert_eq!((seen.header("trailer"), seen.header("content-length").as_deref()), (None, Some("2")));
    // Nor do those of an instance.
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\
        set-cookie: forged\r\nx-isotherm-instance: forged\r\n\r\n";
    let origin = Origin::answering(answer).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(post("/v1/embeddings", "{}")).await;
    assert_eq!((answer.status, answer.text().as_str(), answer.complete), (200, "{}", true));
    assert!(answer.headers.iter().all(|(_, value)| value != "forged"), "{answer:?}");
}
