//! Whole answers: texts, usage, the prefix cache, embeddings, ranks.

use isotherm_emulator::{EmulatorConfig, start};
use serde_json::json;

use crate::client::{Client, chat, document, engine, fast, with};

#[tokio::test]
async fn a_chat_is_answered_with_usage() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let reply = client.post("/v1/chat/completions", &chat("Where is it warm?")).await;
    let body = reply.json();
    assert_eq!(reply.status, 200);
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["choices"][0]["finish_reason"], "length");
    assert!(!body["choices"][0]["message"]["content"].as_str().unwrap().is_empty());
    assert_eq!(body["usage"]["completion_tokens"], 8);
    assert_eq!(body["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    let tokens = client.post("/tokenize", &chat("Where is it warm?")).await.json()["count"].clone();
    assert_eq!(body["usage"]["prompt_tokens"], tokens);
}

#[tokio::test]
async fn the_beginning_of_a_prompt_seen_before_is_cached_in_whole_blocks() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let ask = |question: &str| chat(&format!("{}{question}", document(400)));
    let cold = client.post("/v1/chat/completions", &ask("Why?")).await.json();
    let warm = client.post("/v1/chat/completions", &ask("Who?")).await.json();
    assert_eq!(cold["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    let prompt = warm["usage"]["prompt_tokens"].as_u64().unwrap();
    let cached = warm["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
    assert_eq!(cached % 16, 0);
    assert!(cached > prompt * 9 / 10, "{cached} of {prompt}");
}

#[tokio::test]
async fn a_salt_keeps_caches_apart() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let question = chat(&document(400));
    client.post("/v1/chat/completions", &question).await;
    let salted = with(question, json!({"cache_salt": "tenant-b"}));
    let reply = client.post("/v1/chat/completions", &salted).await.json();
    assert_eq!(reply["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

#[tokio::test]
async fn the_next_turn_finds_the_answer_of_the_last_one_in_the_cache() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let first =
        json!({"messages": [{"role": "user", "content": "Tell me much."}], "max_tokens": 200, "ignore_eos": true});
    let answer = client.post("/v1/chat/completions", &first).await.json();
    let text = &answer["choices"][0]["message"]["content"];
    let second = json!({"max_tokens": 1, "messages": [
        {"role": "user", "content": "Tell me much."},
        {"role": "assistant", "content": text},
        {"role": "user", "content": "And then?"},
    ]});
    let usage = client.post("/v1/chat/completions", &second).await.json()["usage"].clone();
    let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
    assert!(cached >= 192, "{usage}");
}

#[tokio::test]
async fn engines_with_equal_seeds_answer_alike() {
    let (one, two) = (engine(), engine());
    let other = start(EmulatorConfig { seed: 1, ..fast() }).unwrap();
    let mut texts = Vec::new();
    for engine in [&one, &two, &other] {
        let reply = Client::new(engine).await.post("/v1/chat/completions", &chat("Hello")).await.json();
        texts.push(reply["choices"][0]["message"]["content"].clone());
    }
    assert_eq!(texts[0], texts[1]);
    assert_ne!(texts[0], texts[2]);
}

#[tokio::test]
async fn several_prompts_and_choices_are_answered_in_order() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let request = json!({"prompt": ["One", "Two"], "n": 2, "max_tokens": 4});
    let body = client.post("/v1/completions", &request).await.json();
    let indices: Vec<_> = body["choices"].as_array().unwrap().iter().map(|choice| choice["index"].clone()).collect();
    assert_eq!(indices, [0, 1, 2, 3]);
    assert_eq!(body["usage"]["completion_tokens"], 16);
    let tokens = json!({"prompt": [1, 2, 3, 4, 5], "max_tokens": 4});
    assert_eq!(client.post("/v1/completions", &tokens).await.json()["usage"]["prompt_tokens"], 5);
}

#[tokio::test]
async fn an_image_takes_its_tokens() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let request = json!({"max_tokens": 1, "messages": [{"role": "user", "content": [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]}]});
    let usage = client.post("/v1/chat/completions", &request).await.json()["usage"].clone();
    assert!(usage["prompt_tokens"].as_u64().unwrap() > 576, "{usage}");
}

#[tokio::test]
async fn embeddings_come_as_numbers_or_in_base64() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let request = json!({"input": ["warm", "cold"], "dimensions": 4});
    let body = client.post("/v1/embeddings", &request).await.json();
    assert_eq!(body["data"][1]["embedding"].as_array().unwrap().len(), 4);
    assert_eq!(body["usage"]["completion_tokens"], 0);
    let encoded = with(request, json!({"encoding_format": "base64"}));
    let body = client.post("/v1/embeddings", &encoded).await.json();
    assert_eq!(body["data"][0]["embedding"].as_str().unwrap().len(), 24);
}

#[tokio::test]
async fn documents_are_ranked_by_the_words_they_share() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let request = json!({"query": "warm river", "documents": ["a cold day", "the warm river"], "top_n": 1});
    for path in ["/rerank", "/v1/rerank", "/v2/rerank"] {
        let body = client.post(path, &request).await.json();
        assert_eq!(body["results"].as_array().unwrap().len(), 1);
        assert_eq!(body["results"][0]["index"], 1);
    }
    let pair = json!({"text_1": "warm river", "text_2": ["the warm river", "a cold day"]});
    let body = client.post("/v1/score", &pair).await.json();
    assert_eq!((body["data"][0]["score"].clone(), body["data"][1]["score"].clone()), (json!(1.0), json!(0.0)));
}

#[tokio::test]
async fn anthropic_clients_are_answered_in_their_form() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let request = json!({"model": "m", "system": "Be brief.", "max_tokens": 5,
        "messages": [{"role": "user", "content": "Hello"}]});
    let body = client.post("/v1/messages", &request).await.json();
    assert_eq!(body["type"], "message");
    assert_eq!(body["content"][0]["type"], "text");
    assert_eq!(body["stop_reason"], "max_tokens");
    assert_eq!(body["usage"]["output_tokens"], 5);
    let count = client.post("/v1/messages/count_tokens", &request).await.json();
    assert_eq!(count["input_tokens"], body["usage"]["input_tokens"]);
}
