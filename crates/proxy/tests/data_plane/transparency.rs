//! Bytes pass unchanged both ways, however they are cut.

use crate::client::{chat, post};
use crate::origin::{END, EVENTS, Origin, Step, chunk, json};
use crate::router::Router;

/// Everything that a stream of events may hold, and nothing that a parser should lean on.
const STREAM: &str = ": comment\n\nevent: x\ndata: {\"choices\":[{\"delta\":{\"content\":\"h\u{e9}\"}}]}\n\n\
    data: line one\ndata: line two\r\n\r\ndata: cr\r\rid: 7\nretry: 5\n\n\
    data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"echo data: [DONE]\"}}]}}]}\n\n\
    data: {\"choices\":[{\"delta\":{\"content\":\"<\u{ff5c}tool\u{2581}calls\u{2581}begin\u{ff5c}>\"}}]}\n\n\
    data: [DONE]\n\n";

#[tokio::test]
async fn a_stream_passes_unchanged_whatever_the_chunks() {
    for size in [1, 2, 3, 7, 64, STREAM.len()] {
        let chunks: String = STREAM
            .as_bytes()
            .chunks(size)
            .map(|piece| format!("{:x}\r\n", piece.len()) + &latin(piece) + "\r\n")
            .collect();
        let answer = bytes(&format!("{EVENTS}{chunks}{END}"));
        for steps in [vec![Step::Send(answer.clone())], vec![Step::Drip(answer.clone())]] {
            let origin = Origin::start(move |_| steps.clone()).await;
            let router = Router::before(&[&origin], "");
            let answer = router.ask(chat("x")).await;
            assert_eq!(answer.status, 200);
            assert!(answer.complete);
            assert_eq!(answer.text(), STREAM, "in chunks of {size}");
            assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"));
            assert_eq!(answer.header("content-length"), None, "a stream tells no length, even when it is all there");
        }
    }
}

/// Bytes as characters of the same number, so that text can be cut within a character.
fn latin(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// The bytes behind [`latin`].
fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|character| u8::try_from(u32::from(character)).unwrap()).collect()
}

#[tokio::test]
async fn a_line_of_sixteen_mebibytes_passes_unchanged() {
    let line = "x".repeat(16 << 20);
    let stream =
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{line}\"}}}}]}}\n\n: {line}\n\ndata: [DONE]\n\n");
    let chunks: String = stream.as_bytes().chunks(100_000).map(|piece| chunk(&latin(piece))).collect();
    let origin = Origin::answering(&format!("{EVENTS}{chunks}{END}")).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(chat("x")).await;
    assert!(answer.complete && answer.body == stream.as_bytes());
}

#[tokio::test]
async fn each_event_passes_on_without_waiting_for_the_next() {
    let next = std::sync::Arc::new(tokio::sync::Notify::new());
    let steps = {
        let next = next.clone();
        move || {
            vec![
                Step::Send((EVENTS.to_owned() + &chunk("data: 1\n\n")).into_bytes()),
                Step::Wait(next.clone()),
                Step::Send((chunk("data: 2\n\n") + END).into_bytes()),
            ]
        }
    };
    let origin = Origin::start(move |_| steps()).await;
    let router = Router::before(&[&origin], "");
    let mut client = router.connect().await;
    client.send(chat("x")).await;
    client.until("data: 1\n\n").await;
    next.notify_one();
    assert_eq!(client.answer().await.text(), "data: 1\n\ndata: 2\n\n");
}

#[tokio::test]
async fn the_body_of_a_request_arrives_byte_for_byte() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let odd = "{ \"model\" :\t\"m\", \"x\":1e400, \"messages\":[{\"role\":\"user\",\"content\":\"\\ud83d\\ude00 \u{4f60}\"}] }\n";
    assert_eq!(router.ask(post("/v1/chat/completions", odd)).await.status, 200);
    // The same, chunked; the instance gets a length.
    let mut client = router.connect().await;
    client.send("POST /v1/chat/completions HTTP/1.1\r\nhost: r\r\ntransfer-encoding: chunked\r\n\r\n").await;
    for piece in odd.as_bytes().chunks(5) {
        client.send(format!("{:x}\r\n", piece.len())).await;
        client.send(piece).await;
        client.send("\r\n").await;
    }
    client.send(END).await;
    assert_eq!(client.answer().await.status, 200);
    for seen in origin.seen() {
        assert_eq!(String::from_utf8(seen.body.clone()).unwrap(), odd);
        assert_eq!(seen.header("content-length"), Some(odd.len().to_string()));
        assert_eq!(seen.header("transfer-encoding"), None);
    }
    assert_eq!(origin.seen().len(), 2);
}

#[tokio::test]
async fn large_bodies_pass_both_ways() {
    let large = "x".repeat(9 << 20);
    let answer = json(200, &format!(r#"{{"data":"{large}"}}"#));
    let origin = Origin::answering(&answer).await;
    let router = Router::before(&[&origin], "");
    let sent = format!(r#"{{"input":"{large}"}}"#);
    let answer = router.ask(post("/v1/embeddings", &sent)).await;
    assert_eq!(answer.body.len(), large.len() + 11);
    assert_eq!(answer.header("content-length"), Some((large.len() + 11).to_string().as_str()));
    assert!(answer.complete && origin.seen()[0].body == sent.as_bytes());
}

/// The paths of generation, and a body for each that has this text.
fn calls(text: &str) -> [(&'static str, String); 8] {
    let chat = format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let input = format!(r#"{{"input":"{text}"}}"#);
    [
        ("/v1/chat/completions", chat.clone()),
        ("/v1/completions", format!(r#"{{"prompt":"{text}"}}"#)),
        ("/v1/responses", input.clone()),
        ("/v1/embeddings", input),
        ("/v1/messages", chat.clone()),
        ("/v1/rerank", format!(r#"{{"query":"x","documents":["{text}"]}}"#)),
        ("/v1/score", format!(r#"{{"text_1":"x","text_2":"{text}"}}"#)),
        ("/invocations", chat),
    ]
}

#[tokio::test]
async fn bodies_up_to_the_limit_pass_on_every_path_and_larger_ones_are_413() {
    let (large, limit) = (json(200, &"y".repeat(3 << 20)), 32 << 20);
    for mebibytes in [1, 2, 8, 31, 33, 64] {
        // Of the largest, two paths are enough: reading them takes its time.
        let paths = if mebibytes > 8 { 2 } else { 8 };
        for (path, sent) in calls(&"x".repeat(mebibytes << 20)).into_iter().take(paths) {
            let origin = Origin::answering(&large).await;
            let router = Router::before(&[&origin], "");
            let answer = router.ask(post(path, &sent)).await;
            if sent.len() > limit {
                assert_eq!((answer.status, answer.header("content-type")), (413, Some("application/json")), "{path}");
                assert!(answer.text().contains("33554432 bytes") && origin.seen().is_empty(), "{}", answer.text());
                continue;
            }
            assert_eq!((answer.status, answer.body.len()), (200, 3 << 20), "{mebibytes} MiB to {path}");
            assert!(answer.complete && origin.seen()[0].body == sent.as_bytes(), "{mebibytes} MiB to {path}");
        }
    }
    let origin = Origin::answering(&large).await;
    let router = Router::before(&[&origin], "limits: { body: 65MiB }\n");
    let [(path, sent), ..] = calls(&"x".repeat(64 << 20));
    assert_eq!(router.ask(post(path, &sent)).await.status, 200);
    assert!(origin.seen()[0].body == sent.as_bytes());
}

#[tokio::test]
async fn forms_with_files_pass_byte_for_byte() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "allow_paths: [/v1/audio/transcriptions]\n");
    let file: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let begun = "--cut\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n";
    let body = [begun.as_bytes(), &file, b"\r\n--cut--\r\n"].concat();
    let head =
        "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: r\r\ncontent-type: multipart/form-data; boundary=cut\r\n";
    let mut client = router.connect().await;
    client.send(format!("{head}content-length: {}\r\n\r\n", body.len())).await;
    client.send(&body).await;
    assert_eq!(client.answer().await.status, 200);
    let seen = &origin.seen()[0];
    assert!(seen.body == body);
    assert_eq!(seen.header("content-type").as_deref(), Some("multipart/form-data; boundary=cut"));
}

#[tokio::test]
async fn native_bodies_need_no_json() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "");
    let mut client = router.connect().await;
    client
        .send("POST /invocations HTTP/1.1\r\nhost: r\r\ncontent-type: application/x-npy\r\ncontent-length: 4\r\n\r\n")
        .await;
    client.send([0xff, 0, b'{', 0x80]).await;
    assert_eq!(client.answer().await.status, 200);
    assert_eq!(origin.seen()[0].body, [0xff, 0, b'{', 0x80]);
    assert_eq!(origin.seen()[0].header("content-type").as_deref(), Some("application/x-npy"));
}

#[tokio::test]
async fn compressed_bodies_pass_opaque() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\n\x1f\x0b!";
    let origin = Origin::answering(answer).await;
    let router = Router::before(&[&origin], "");
    let request =
        "POST /v1/chat/completions HTTP/1.1\r\nhost: r\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\n\x1f\x0b?";
    let answer = router.ask(request).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"\x1f\x0b!"[..]));
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    assert_eq!(origin.seen()[0].header("content-encoding").as_deref(), Some("gzip"));
    assert_eq!(origin.seen()[0].body, b"\x1f\x0b?");
    // Nor is a bomb, a mebibyte that would be a gibibyte: nobody here can tell what is in it.
    for coding in ["gzip", "zstd", "br", "deflate"] {
        let bomb = "\0".repeat(1 << 20);
        let request =
            post("/v1/chat/completions", &bomb).replacen("host:", &format!("content-encoding: {coding}\r\nhost:"), 1);
        assert_eq!(router.ask(request).await.status, 200, "{coding}");
        assert!(origin.seen().last().unwrap().body == bomb.as_bytes(), "{coding}");
    }
}

#[tokio::test]
async fn an_answer_that_ends_with_its_connection_passes_whole() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nuntil the end";
    let steps = vec![Step::Send(answer.as_bytes().to_vec()), Step::Close];
    let origin = Origin::start(move |_| steps.clone()).await;
    let router = Router::before(&[&origin], "");
    let answer = router.ask(chat("x")).await;
    assert!(answer.complete);
    assert_eq!(answer.text(), "until the end");
    assert_eq!(router.ask(chat("x")).await.text(), "until the end", "and the connection is not used again");
}

#[tokio::test]
async fn answers_without_a_body_pass() {
    let origin = Origin::answering("HTTP/1.1 204 No Content\r\nx-a: 1\r\n\r\n").await;
    let router = Router::before(&[&origin], "");
    let mut client = router.connect().await;
    for _ in 0..2 {
        client.send("DELETE /v1/responses/resp_1 HTTP/1.1\r\nhost: r\r\n\r\n").await;
        client.until("\r\n\r\n").await;
    }
    assert!(client.so_far().starts_with("HTTP/1.1 204"), "{}", client.so_far());
    router.idle().await;
    assert_eq!(origin.connections(), 1);
}
