//! What is read of a stream of 200 tokens while it passes, one event after the other.

use std::hint::black_box;

use isotherm_wire::sse::Scanner;

const TOKENS: usize = 200;
const TOKEN: &[u8] = concat!(
    r#"data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1764460800,"model":"m","#,
    r#""choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}"#,
    "\n\n"
)
.as_bytes();
const USAGE: &[u8] = concat!(
    r#"data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1764460800,"model":"m","#,
    r#""choices":[],"usage":{"prompt_tokens":7800,"total_tokens":8000,"completion_tokens":200}}"#,
    "\n\n"
)
.as_bytes();

pub(crate) fn stream() -> impl FnMut() {
    || {
        let mut scanner = Scanner::new();
        for _ in 0..TOKENS {
            scanner.scan(black_box(TOKEN));
            black_box(scanner.first_token_seen());
        }
        scanner.scan(USAGE);
        scanner.scan(b"data: [DONE]\n\n");
        scanner.end();
        black_box((scanner.usage(), scanner.done_seen()));
    }
}
