//! Headers: what passes, what stops at the router, and what it writes itself.

use crate::client::{chat, get, post};
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
async fn orders_of_clients_reach_nobody_and_move_nothing() {
    let mut origins = Vec::new();
    for _ in 0..4 {
        origins.push(Origin::answering(&json(200, "{}")).await);
    }
    let router = Router::before(&origins.iter().collect::<Vec<_>>(), "");
    let plain = router.ask(chat("x")).await;
    let home = plain.header("x-isotherm-instance").unwrap().to_owned();
    let stopped = [
        ("x-gateway-destination-endpoint", "10.0.0.1:80"),
        ("x-gateway-destination-endpoint-subset", "10.0.0.1:80"),
        ("x-gateway-destination-endpoint-served", "10.0.0.1:80"),
        ("x-prefiller-host-port", "169.254.169.254:80"),
        ("x-prefiller-host-ports", "169.254.169.254:80"),
        ("x-data-parallel-rank", "3"),
        ("X-Data-Parallel-Host-Port", "10.0.0.1:80"),
        ("x-smg-target-worker", "3"),
        ("x-smg-routing-key", "elsewhere"),
        ("X-Isotherm-Instance", "d"),
        ("x-isotherm-home", "d"),
        ("x-isotherm-key", "00000000000000000000000000000000"),
        ("x_request_id", "forged"),
        ("x_data_parallel_rank", "3"),
        ("x_forwarded_for", "10.0.0.1"),
    ];
    // These say what somebody wishes or claims: engines may read them, and the router goes by none.
    let ignored = [
        ("x-session-affinity", "d"),
        ("x-session-id", "d"),
        ("x-forwarded-for", "10.0.0.1"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-prefix", "/sleep"),
        ("forwarded", "for=10.0.0.1;host=evil.example"),
        ("x-original-url", "/sleep"),
        ("x-rewrite-url", "/sleep"),
        ("x-http-method-override", "DELETE"),
    ];
    for (number, (name, value)) in stopped.iter().chain(&ignored).enumerate() {
        let answer = router.ask(with_headers(&format!("{name}: {value}\r\n"))).await;
        assert_eq!((answer.status, answer.header("x-isotherm-instance")), (200, Some(home.as_str())), "{name}");
        assert_eq!(answer.header("x-isotherm-key"), plain.header("x-isotherm-key"), "{name}");
        let seen: Vec<_> = origins.iter().flat_map(Origin::seen).collect();
        assert_eq!(seen.len(), number + 2);
        assert!(seen.iter().all(|seen| seen.line == "POST /v1/chat/completions HTTP/1.1"), "{name}");
        let passed = seen.iter().any(|seen| seen.header(&name.to_ascii_lowercase()).is_some());
        assert_eq!(passed, number >= stopped.len(), "{name}");
    }
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
async fn what_a_body_is_only_its_instance_says() {
    for told in [None, Some("text/plain"), Some("application/json; charset=utf-16"), Some("text/event-stream")] {
        let line = told.map(|told| format!("content-type: {told}\r\n")).unwrap_or_default();
        let origin = Origin::answering(&format!("HTTP/1.1 200 OK\r\n{line}content-length: 2\r\n\r\n{{}}")).await;
        let router = Router::before(&[&origin], "");
        let answer = router.ask(chat("x")).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, told));
    }
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
    assert_eq!(router.ask(get("/health")).await.status, 200);
    assert_eq!(origin.seen().len(), 2);
    for seen in origin.seen() {
        assert_eq!((seen.header("authorization"), seen.header("x-api-key")), (None, None));
    }
}

#[tokio::test]
async fn no_path_but_those_of_health_is_open_without_a_credential() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let keys = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(keys.path(), KEYS).unwrap();
    let top = format!("allow_paths: [/v1/audio/*]\nauth: {{ keys_file: {} }}\n", keys.path().display());
    let router = Router::before(&[&origin], &top);
    let of_api = isotherm_wire::api::Api::ALL.map(|api| post(api.path(), "{}"));
    let others = [
        post("/v1/audio/transcriptions", "{}"),
        post("/endpoints/chat/invocations", "{}"),
        post("/endpoints/chat/invocations-response-stream", "{}"),
        post("/endpoints/chat/async-invocations", "{}"),
        post("/endpoints/chat/openai/v1/chat/completions", "{}"),
        get("/endpoints/chat/openai/v1/models"),
        get("/v1/models"),
        get("/v1/models/m"),
        get("/v1/responses/resp_1"),
        post("/v1/responses/resp_1/cancel", ""),
        get("*").replacen("GET", "OPTIONS", 1),
    ];
    for request in of_api.into_iter().chain(others) {
        let answer = router.ask(&request).await;
        assert!(matches!(answer.status, 401 | 403), "{request:?}: {}", answer.status);
    }
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn every_path_but_those_of_health_wants_a_key() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let keys = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(keys.path(), KEYS).unwrap();
    let top = "allow_paths: [/tokenize, /v1/audio/*]\n";
    let router = Router::before(&[&origin], &format!("auth: {{ keys_file: {} }}\n{top}", keys.path().display()));
    let posted = [
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
        "/v1/responses/r/cancel",
        "/v1/embeddings",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/rerank",
        "/rerank",
        "/v2/rerank",
        "/v1/score",
        "/tokenize",
        "/v1/audio/transcriptions",
        "/invocations",
        "/endpoints/chat/invocations",
        "/endpoints/chat/invocations-response-stream",
        "/endpoints/chat/async-invocations",
        "/endpoints/chat/openai/v1/chat/completions",
        "/endpoints/chat/inference-components/a/openai/v1/chat/completions",
    ];
    let read =
        ["/v1/models", "/v1/models/m", "/v1/responses/r", "/endpoints/chat/openai/v1/models", "/v1/audio/voices"];
    let posted = posted.iter().map(|path| crate::client::post(path, "{}"));
    for request in posted.chain(read.iter().map(|path| get(path))) {
        let with = |line: &str| request.replacen("host: router\r\n", &format!("host: router\r\n{line}"), 1);
        for request in [
            request.clone(),
            with("authorization: Bearer sk-2\r\n"),
            with("authorization: bearer\r\n"),
            with("authorization:\r\nx-api-key:\r\n"),
            with("x-api-key: sk-\r\n"),
            with("cookie: authorization=sk-1\r\n"),
            with("connection: authorization\r\n"),
            // In a query nobody looks for one.
            request.replacen(" HTTP", "?api_key=sk-1&key=sk-1 HTTP", 1),
        ] {
            let answer = router.ask(&request).await;
            assert!(matches!(answer.status, 400..=403), "{request:?}: {}", answer.status);
            let type_ = answer.header("content-type").unwrap_or_default();
            assert!(type_.starts_with("application/json"), "{request:?}: {answer:?}");
        }
        // The allow-list is asked first: what is no path of it is 404 to everybody, however it is spelled.
        for (from, to) in [("/", "//"), ("/", "/x/../"), ("/", "/./"), ("/", "/%2e/"), ("/", "\\")] {
            let spelled = request.replacen(from, to, 1);
            let answer = router.ask(&spelled).await;
            assert!(matches!(answer.status, 400..=404), "{spelled:?}: {}", answer.status);
        }
    }
    assert!(origin.seen().is_empty(), "{:?}", origin.seen());
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
