//! Streams: order of events, usage, and that the head comes before prefill ends.

use isotherm_emulator::{EmulatorConfig, start};
use serde_json::{Value, json};

use crate::client::{Client, Event, chat, document, engine, fast, post, with};

fn data(events: &[Event]) -> Vec<Value> {
    events.iter().filter(|event| event.data != "[DONE]").map(Event::json).collect()
}

#[tokio::test]
async fn a_chat_streams_role_then_words_then_the_end() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let whole = client.post("/v1/chat/completions", &chat("Hello")).await.json();
    let stream = client.stream("/v1/chat/completions", &with(chat("Hello"), json!({"stream": true}))).await;
    assert_eq!(stream.headers["content-type"], "text/event-stream; charset=utf-8");
    assert!(!stream.headers.contains_key("content-length"));
    let events = stream.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let chunks = data(&events);
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    let words: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(words, whole["choices"][0]["message"]["content"]);
    assert_eq!(chunks.len(), 1 + 8 + 1);
    assert_eq!(chunks[9]["choices"][0]["finish_reason"], "length");
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none() && chunk["id"] == chunks[0]["id"]));
}

#[tokio::test]
async fn usage_comes_at_the_end_or_with_every_chunk_as_asked() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    for path in ["/v1/chat/completions", "/v1/completions"] {
        let base = with(chat("Hello"), json!({"prompt": "Hello", "stream": true}));
        let at_end = with(base.clone(), json!({"stream_options": {"include_usage": true}}));
        let chunks = data(&client.stream(path, &at_end).await.rest().await);
        let (last, before) = chunks.split_last().unwrap();
        assert_eq!(last["choices"], json!([]));
        assert_eq!(last["usage"]["completion_tokens"], 8);
        assert!(last["usage"]["prompt_tokens_details"]["cached_tokens"].is_u64());
        assert!(before.iter().all(|chunk| chunk.get("usage").is_none()));

        let options = json!({"stream_options": {"include_usage": true, "continuous_usage_stats": true}});
        let chunks = data(&client.stream(path, &with(base, options)).await.rest().await);
        let counts: Vec<_> = chunks.iter().map(|chunk| chunk["usage"]["completion_tokens"].as_u64().unwrap()).collect();
        assert!(counts.is_sorted() && counts.contains(&1) && counts.ends_with(&[8, 8]), "{counts:?}");
    }
}

#[tokio::test]
async fn the_head_comes_before_prefill_ends() {
    // Twenty times slower than real: prefill of this prompt takes seconds.
    let engine = start(EmulatorConfig { speed: 0.05, ..fast() }).unwrap();
    let mut client = Client::new(&engine).await;
    let request = with(chat(&document(500)), json!({"stream": true}));
    let response = client.begin(post("/v1/chat/completions", &request)).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(engine.statistics().generation_tokens, 0);
}

#[tokio::test]
async fn answers_of_one_stream_are_told_by_their_index() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let request = json!({"prompt": ["One", "Two"], "max_tokens": 6, "stream": true});
    let whole = client.post("/v1/completions", &json!({"prompt": ["One", "Two"], "max_tokens": 6})).await.json();
    let chunks = data(&client.stream("/v1/completions", &request).await.rest().await);
    for index in 0..2 {
        let mut own = chunks.iter().filter(|chunk| chunk["choices"][0]["index"] == index);
        let text: String = own.clone().filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect();
        assert_eq!(text, whole["choices"][index]["text"]);
        assert_eq!(own.next_back().unwrap()["choices"][0]["finish_reason"], "length");
    }
}

#[tokio::test]
async fn a_response_streams_its_events_in_order() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let request = json!({"input": "Hello", "max_output_tokens": 200, "stream": true});
    let events = client.stream("/v1/responses", &request).await.rest().await;
    let mut kinds: Vec<_> = events.iter().map(|event| event.name.clone().unwrap()).collect();
    kinds.dedup();
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(kinds, expected);
    let bodies = data(&events);
    for (number, (body, event)) in bodies.iter().zip(&events).enumerate() {
        assert_eq!(body["sequence_number"], number);
        assert_eq!(body["type"], event.name.as_deref().unwrap());
    }
    let words: String = bodies.iter().filter_map(|body| body["delta"].as_str()).collect();
    let response = &bodies.last().unwrap()["response"];
    assert_eq!(response["status"], "completed");
    assert_eq!(response["output"][0]["content"][0]["text"], words);
    assert!(response["usage"]["input_tokens_details"]["cached_tokens"].is_u64());
}

#[tokio::test]
async fn a_message_streams_its_events_in_order() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let request = json!({"max_tokens": 6, "stream": true, "messages": [{"role": "user", "content": "Hello"}]});
    let events = client.stream("/v1/messages", &request).await.rest().await;
    let (done, events) = events.split_last().unwrap();
    assert_eq!(done.data, "[DONE]");
    let mut kinds: Vec<_> = events.iter().map(|event| event.name.clone().unwrap()).collect();
    kinds.dedup();
    let expected = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds, expected);
    let bodies = data(events);
    assert!(bodies[0]["message"]["usage"]["input_tokens"].as_u64().unwrap() > 0);
    assert_eq!(bodies[bodies.len() - 2]["usage"]["output_tokens"], 6);
}
