//! Clients' breakpoints and canonical keys from outside: which requests have one key, and that the bytes stay theirs.

use crate::client::post;
use crate::origin::{Origin, json};
use crate::router::Router;

const ROUTING: &str = "strategy: PREFIX_AWARE, prefix_length: 4096";

/// A router before two instances with these words about routing.
async fn before(routing: &str) -> (Vec<Origin>, Router) {
    let mut origins = Vec::new();
    for _ in 0..2 {
        origins.push(Origin::answering(&json(200, r#"{"id":"x"}"#)).await);
    }
    let instances: Vec<String> = origins.iter().map(|origin| format!("{{ url: \"{}\" }}", origin.url())).collect();
    let variant = format!("        routing: {{ {routing} }}\n        instances: [{}]\n", instances.join(", "));
    let router = Router::with_variant(&variant, "");
    (origins, router)
}

/// The key of each request. Every body must have come to an instance as it was sent.
async fn keys(routing: &str, path: &str, bodies: &[&str]) -> Vec<String> {
    let (origins, router) = before(routing).await;
    let mut keys = Vec::new();
    for body in bodies {
        let answer = router.ask(&post(path, body)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        keys.push(answer.header("x-isotherm-key").expect("decisions are exposed").to_owned());
    }
    let mut came: Vec<Vec<u8>> = origins
        .iter()
        .flat_map(Origin::seen)
        .filter(|seen| seen.line.starts_with("POST"))
        .map(|seen| seen.body)
        .collect();
    let mut sent: Vec<Vec<u8>> = bodies.iter().map(|body| body.as_bytes().to_vec()).collect();
    came.sort();
    sent.sort();
    assert_eq!(came, sent, "not as they were sent");
    keys
}

/// A document with this member beside its text, and a question; in the form of OpenAI's clients or of Anthropic's.
fn openai(mark: &str, question: &str) -> String {
    format!(
        r#"{{ "model":"m",  "messages":[{{"role":"system","content":[{{"type":"text","text":"Policy \u00e9."{mark}}}]}},
        {{"role":"user","content":"{question}"}}]}}"#
    )
}

fn anthropic(mark: &str, question: &str) -> String {
    format!(
        r#"{{"max_tokens":1,"messages":[{{"role":"user","content":"{question}"}}],
        "system":[{{"type":"text","text":"Policy \u00e9."{mark}}}],"model":"m"}}"#
    )
}

#[tokio::test]
async fn what_stands_before_a_clients_breakpoint_is_the_prefix() {
    let ignoring = format!("{ROUTING}, client_breakpoints: false");
    for (path, body, mark) in [
        (
            "/v1/chat/completions",
            openai as fn(&str, &str) -> String,
            r#","prompt_cache_breakpoint":{"mode":"explicit"}"#,
        ),
        ("/v1/chat/completions", openai, r#","cache_control":{"type":"ephemeral"}"#),
        ("/v1/messages", anthropic, r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#),
    ] {
        let bodies = [body(mark, "Who?"), body(mark, "When?"), body("", "Who?"), body("", "When?")];
        let bodies = bodies.each_ref().map(String::as_str);
        let [who, when, plain_who, plain_when] = &keys(ROUTING, path, &bodies).await[..] else { unreachable!() };
        assert_eq!(who, when, "{path} {mark}: questions about one text come home to one place");
        assert!(plain_who != plain_when && plain_who != who, "{path}: without a mark all of a short text is the key");
        let [who, when, plain_who, _] = &keys(&ignoring, path, &bodies).await[..] else { unreachable!() };
        assert!(who != when && who == plain_who, "{path} {mark}: marks are ignored where they are to be");
    }
}

#[tokio::test]
async fn native_bodies_of_one_value_have_one_key_where_that_is_wanted() {
    let bodies = [
        r#"{"inputs":"Policy é.","parameters":{"top_k":5,"stop":["."]}}"#,
        "{ \"parameters\" : {\"stop\": [\".\"],\r\n \"top_k\": 5 },\t\"inputs\": \"Policy \\u00e9.\" }",
        r#"{"inputs":"Policy e.","parameters":{"top_k":5,"stop":["."]}}"#,
    ];
    let canonical = format!("{ROUTING}, canonical_json: true");
    let [one, other, different] = &keys(&canonical, "/invocations", &bodies).await[..] else { unreachable!() };
    assert!(one == other && one != different);
    let [one, other, _] = &keys(ROUTING, "/invocations", &bodies).await[..] else { unreachable!() };
    assert_ne!(one, other, "bytes are bytes where nobody wants it otherwise");
}
