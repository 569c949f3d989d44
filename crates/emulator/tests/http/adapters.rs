//! Adapters that come and go while the engine runs.

use serde_json::json;

use crate::client::{Client, chat, engine, with};

#[tokio::test]
async fn an_adapter_is_served_from_its_loading_to_its_unloading() {
    let engine = engine();
    let mut client = Client::new(&engine).await;
    let tuned = with(chat("Hello"), json!({"model": "tuned"}));
    assert_eq!(client.post("/v1/chat/completions", &tuned).await.status, 404);
    let load = json!({"lora_name": "tuned", "lora_path": "/adapters/tuned"});
    assert_eq!(client.post("/v1/load_lora_adapter", &load).await.status, 200);
    assert_eq!(client.post("/v1/chat/completions", &tuned).await.status, 200);
    let again = client.post("/v1/load_lora_adapter", &load).await;
    assert_eq!((again.status.as_u16(), again.text().contains("already")), (400, true));
    let models = client.get("/v1/models").await.json();
    assert_eq!((&models["data"][1]["id"], &models["data"][1]["parent"]), (&json!("tuned"), &json!("m")));

    let unload = json!({"lora_name": "tuned"});
    assert_eq!(client.post("/v1/unload_lora_adapter", &unload).await.status, 200);
    assert_eq!(client.post("/v1/chat/completions", &tuned).await.status, 404);
    assert_eq!(client.post("/v1/unload_lora_adapter", &unload).await.status, 404);
}
