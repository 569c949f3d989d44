//! What may not be asked for: answered here, in the caller's dialect, and told to no instance.

use crate::client::post;
use crate::origin::{Origin, json};
use crate::router::Router;

#[tokio::test]
async fn what_asks_for_more_than_it_may_is_400_and_reaches_nobody() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let guards = "guards: { max_tokens: 100, choices: 4, logprobs: 5, media_urls: public }\n";
    let router = Router::before(&[&origin], guards);
    for (path, body, told) in [
        ("/v1/chat/completions", r#"{"messages":[],"n":129}"#, "`n` may be at most 4 here"),
        ("/v1/completions", r#"{"prompt":"a","best_of":5}"#, "`best_of` may be at most 4 here"),
        ("/v1/messages", r#"{"messages":[],"max_tokens":101}"#, "`max_tokens` may be at most 100 here"),
        ("/endpoints/chat/invocations", r#"{"prompt":"a","logprobs":6}"#, "`logprobs` may be at most 5 here"),
        (
            "/v1/chat/completions",
            r#"{"messages":[{"content":[{"image_url":{"url":"http://169.254.169.254/latest"}}]}]}"#,
            "a media URL must name a host of the internet",
        ),
    ] {
        let answer = router.ask(post(path, body)).await;
        assert_eq!(answer.status, 400, "{path} {body}: {}", answer.text());
        assert!(answer.text().contains(told), "{}", answer.text());
    }
    assert!(origin.seen().is_empty());
    let answer = router.ask(post("/v1/messages", r#"{"messages":[],"max_tokens":100}"#)).await;
    assert_eq!(answer.status, 200);
}
