//! Tool calls, whole and streamed, in the three APIs that have them.

use serde_json::{Value, json};

use crate::client::{Client, Event, engine, with};

fn schema() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"]})
}

fn chat() -> Value {
    json!({"messages": [{"role": "user", "content": "Weather?"}], "tool_choice": "required",
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": schema()}}]})
}

fn assert_fits(arguments: &str) {
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    assert!(arguments["city"].is_string() && arguments["days"].is_i64(), "{arguments}");
}

#[tokio::test]
async fn a_required_tool_is_called_in_a_whole_answer() {
    let engine = engine();
    let body = Client::new(&engine).await.post("/v1/chat/completions", &chat()).await.json();
    let choice = &body["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["tool_calls"][0]["function"]["name"], "weather");
    assert_fits(choice["message"]["tool_calls"][0]["function"]["arguments"].as_str().unwrap());
}

#[tokio::test]
async fn a_named_tool_is_called_in_deltas() {
    let engine = engine();
    let named = json!({"tool_choice": {"type": "function", "function": {"name": "weather"}}, "stream": true});
    let stream = Client::new(&engine).await.stream("/v1/chat/completions", &with(chat(), named)).await;
    let events = stream.rest().await;
    let chunks: Vec<_> = events.iter().filter(|event| event.data != "[DONE]").map(Event::json).collect();
    let calls: Vec<_> = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0])
        .filter(|call| !call.is_null())
        .collect();
    assert_eq!(calls[0]["function"]["name"], "weather");
    assert!(calls[0]["id"].is_string());
    let arguments: String = calls.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
    assert_fits(&arguments);
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn a_response_calls_a_function() {
    let engine = engine();
    let request = json!({"input": "Weather?", "tool_choice": "required",
        "tools": [{"type": "function", "name": "weather", "parameters": schema()}]});
    let mut client = Client::new(&engine).await;
    let whole = client.post("/v1/responses", &request).await.json();
    assert_eq!(whole["output"][0]["type"], "function_call");
    assert_fits(whole["output"][0]["arguments"].as_str().unwrap());
    let events = client.stream("/v1/responses", &with(request, json!({"stream": true}))).await.rest().await;
    let deltas: String = events
        .iter()
        .filter(|event| event.name.as_deref() == Some("response.function_call_arguments.delta"))
        .map(|event| event.json()["delta"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(deltas, whole["output"][0]["arguments"]);
}

#[tokio::test]
async fn a_message_uses_a_tool() {
    let engine = engine();
    let request = json!({"max_tokens": 100, "messages": [{"role": "user", "content": "Weather?"}],
        "tools": [{"name": "weather", "input_schema": schema()}], "tool_choice": {"type": "any"}});
    let mut client = Client::new(&engine).await;
    let whole = client.post("/v1/messages", &request).await.json();
    assert_eq!(whole["stop_reason"], "tool_use");
    assert_eq!(whole["content"][0]["name"], "weather");
    let events = client.stream("/v1/messages", &with(request, json!({"stream": true}))).await.rest().await;
    let partial: String = events
        .iter()
        .filter(|event| event.name.as_deref() == Some("content_block_delta"))
        .map(|event| event.json()["delta"]["partial_json"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(serde_json::from_str::<Value>(&partial).unwrap(), whole["content"][0]["input"]);
}
