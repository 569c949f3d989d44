//! Headers: what passes, what stops at the router, and what it writes itself.

use crate::client::{chat, get};
use crate::origin::{Origin, json};
use crate::router::Router;

fn with_headers(lines: &str) -> String {
    chat("x").replacen("host: router\r\n", &format!("host: router\r\n{lines}"), 1)
}

#[tokio::test]
async fn what_belongs_to_the_connection_or_gives_orders_stays_and_the_rest_passes() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let lines = "connection: keep-alive, x-hop\r\nx-hop: 1\r\nte: trailers\r\nkeep-alive: 5\r\n\
        proxy-authorization: secret\r\nx-isotherm-instance: b\r\nx-gateway-destination-endpoint: 10.0.0.1:80\r\n\
        x-prefiller-host-port: 169.254.169.254:80\r\nx-data-parallel-rank: 3\r\nx_request_id: forged\r\n\
        authorization: Bearer client\r\nx-api-key: client\r\naccept-encoding: gzip\r\n\
        traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nx-stainless-lang: python\r\n\
        x-twice: 1\r\nx-twice: 2\r\n";
    assert_eq!(router.ask(with_headers(lines)).await.status, 200);
    let seen = &origin.seen()[0];
    let mut names: Vec<&str> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "accept-encoding",
            "authorization",
            "content-length",
            "content-type",
            "host",
            "traceparent",
            "x-api-key",
            "x-request-id",
            "x-stainless-lang",
            "x-twice",
            "x-twice",
        ]
    );
    assert_eq!(seen.header("host"), Some(origin.address.to_string()));
    assert_eq!(seen.header("authorization").as_deref(), Some("Bearer client"));
    assert_eq!(seen.line, "POST /v1/chat/completions HTTP/1.1");
}

#[tokio::test]
async fn the_request_id_is_one_for_all_three() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(with_headers("x-request-id: req-7\r\n")).await;
    assert_eq!(answer.header("x-request-id"), Some("req-7"));
    let minted = router.ask(with_headers("x-request-id: not sound\r\n")).await;
    let minted = minted.header("x-request-id").unwrap();
    assert_eq!(minted.len(), 32);
    let told: Vec<_> = origin.seen().iter().map(|seen| seen.header("x-request-id").unwrap()).collect();
    assert_eq!(told, ["req-7", minted]);
    let refused = router.ask(get("/nowhere").replacen("\r\n\r\n", "\r\nx-request-id: req-8\r\n\r\n", 1)).await;
    assert_eq!((refused.status, refused.header("x-request-id")), (404, Some("req-8")));
}

#[tokio::test]
async fn answers_keep_all_but_their_connections_headers() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close, x-hop\r\n\
        x-hop: 1\r\nkeep-alive: timeout=5\r\nserver: uvicorn\r\nx-custom: \u{e9}\r\nset-cookie: a\r\nset-cookie: b\r\n\
        x-isotherm-instance: forged\r\n\r\n{}";
    let origin = Origin::answering(answer).await;
    let router = Router::before(&[&origin], "");
    let mut client = router.connect().await;
    for _ in 0..2 {
        client.send(chat("x")).await;
        let answer = client.answer().await;
        for name in ["connection", "x-hop", "keep-alive"] {
            assert_eq!(answer.header(name), None, "{name}");
        }
        assert_eq!(answer.header("server"), Some("uvicorn"));
        assert_eq!(answer.header("x-custom"), Some("\u{e9}"));
        assert_eq!(answer.header("x-isotherm-instance"), Some("a"));
        assert_eq!(answer.headers.iter().filter(|(name, _)| name == "set-cookie").count(), 2);
    }
    assert_eq!(origin.connections(), 2, "an instance that closes is connected to anew; the client stays");
}

#[tokio::test]
async fn decisions_are_told_only_where_that_is_on() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(chat("x")).await;
    assert_eq!(answer.header("x-isotherm-reason"), Some("single"));
    assert_eq!(answer.header("x-isotherm-home"), Some("a"));
    assert_eq!(answer.header("x-isotherm-key").map(str::len), Some(32));
    let mut rules = isotherm_proxy::Rules::of(&crate::router::load(&router.directory().join("isotherm.yaml")).unwrap());
    rules.expose_decisions = false;
    router.plane.as_ref().unwrap().rules().set(rules);
    let answer = router.ask(chat("x")).await;
    assert!(answer.headers.iter().all(|(name, _)| !name.starts_with("x-isotherm-")), "{answer:?}");
}

/// `printf sk-1 | sha256sum`
const KEYS: &str = "alice sha256:0f2c10bf3d128c719c6bfa4ecbae94b7fceebaea6e4438fef38a90e5acc326f3\n";

#[tokio::test]
async fn credentials_stop_at_the_router_once_it_authenticates() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let keys = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(keys.path(), KEYS).unwrap();
    let router = Router::before(&[&origin], &format!("auth: {{ keys_file: {} }}\n", keys.path().display()));
    for (lines, status) in [
        ("", 401),
        ("authorization: Bearer sk-2\r\n", 401),
        ("authorization: Basic c2stMQ==\r\n", 401),
        ("authorization: Bearer sk-1\r\n", 200),
        ("x-api-key: sk-1\r\n", 200),
    ] {
        let answer = router.ask(with_headers(lines)).await;
        assert_eq!(answer.status, status, "{lines:?}: {}", answer.text());
        if status == 401 {
            assert!(answer.text().contains(r#""type":"authentication_error""#), "{}", answer.text());
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
    for path in ["/v1/models", "/v1/models/m", "/v1/responses/r"] {
        assert_eq!(router.ask(get(path)).await.status, 401, "{path}");
    }
    assert_eq!(router.ask(crate::client::post("/invocations", "{}")).await.status, 403);
    assert_eq!(router.ask(get("/health")).await.status, 200);
    assert_eq!(origin.seen().len(), 2);
    for seen in origin.seen() {
        assert_eq!((seen.header("authorization"), seen.header("x-api-key")), (None, None));
    }
}

#[tokio::test]
async fn the_instances_own_key_replaces_the_clients() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let instance = format!("        instances: [{{ id: a, url: \"{}/engine/\", api_key_env: HOME }}]\n", origin.url());
    let environment = isotherm_config::Environment::from_iter([("HOME".to_owned(), "engine-key".to_owned())]);
    let router = Router::with_environment(&instance, &environment);
    assert_eq!(router.ask(with_headers("authorization: Bearer client\r\nx-api-key: client\r\n")).await.status, 200);
    let seen = &origin.seen()[0];
    assert_eq!(seen.header("authorization").as_deref(), Some("Bearer engine-key"));
    assert_eq!(seen.header("x-api-key"), None);
    assert_eq!(seen.line, "POST /engine/v1/chat/completions HTTP/1.1");
}

#[tokio::test]
async fn expect_100_continue_is_answered() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let mut client = router.connect().await;
    client.send("POST /v1/embeddings HTTP/1.1\r\nhost: r\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 100);
    client.send("{}").await;
    assert_eq!(client.answer().await.status, 200);
    assert_eq!(origin.seen()[0].header("expect"), None);
}

#[tokio::test]
async fn a_query_passes_and_an_absolute_target_is_reduced_to_its_path() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    router.ask(chat("x").replacen("/v1/chat/completions", "/v1/chat/completions?a=%2F..&b", 1)).await;
    router.ask(chat("x").replacen("/v1/chat/completions", "http://evil.example/v1/chat/completions?c", 1)).await;
    let lines: Vec<_> = origin.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(lines, ["POST /v1/chat/completions?a=%2F..&b HTTP/1.1", "POST /v1/chat/completions?c HTTP/1.1"]);
}
