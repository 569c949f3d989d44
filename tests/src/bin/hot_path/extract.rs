//! What is read from the body of a chat of 32 KB: its prefix, or all of it block by block.

use std::hint::black_box;

use isotherm_core::{BlockHasher, HashSeed, KeyScope, PrefixHasher, PrefixKey, PrefixLength, Prompt, prefix_key};
use isotherm_tests::chat;
use isotherm_wire::api::Api;
use isotherm_wire::request::{Prefix, PromptSink, describe, render};

const SEED: HashSeed = HashSeed(1);
const SCOPE: KeyScope<'static> =
    KeyScope { endpoint: "default", variant: "AllTraffic", model: Some("m"), adapter: None, tenant: None };
/// So many tokens make 32 KB.
const TOKENS: usize = 7_800;

pub(crate) fn prefix() -> impl FnMut() {
    let body = body(0, 0);
    move || {
        black_box(key(black_box(&body)));
    }
}

pub(crate) fn blocks() -> impl FnMut() {
    let body = body(0, 0);
    move || {
        black_box(prompt(black_box(&body)));
    }
}

/// The chat that asks question `question` about document `document`.
pub(crate) fn body(document: u64, question: u64) -> Vec<u8> {
    chat(&isotherm_tests::document(document, TOKENS), &format!("Question {question}?")).to_string().into_bytes()
}

/// Its key under `PREFIX_AWARE`.
pub(crate) fn key(body: &[u8]) -> Option<PrefixKey> {
    let mut hasher = PrefixHasher::new(SEED);
    let mut update = |bytes: &[u8]| hasher.update(bytes);
    let mut prefix = Prefix::new(PrefixLength::default().get() as usize, &mut update);
    describe(body, Api::ChatCompletions, &mut prefix).ok()?;
    Some(prefix_key(SEED, &SCOPE, None, None, &hasher.finish()?))
}

/// Its blocks, for `ADAPTIVE`.
pub(crate) fn prompt(body: &[u8]) -> Option<Prompt> {
    let mut blocks = Blocks(BlockHasher::new(SEED));
    render(body, Api::ChatCompletions, &mut blocks).ok()?;
    Some(blocks.0.finish()?.within(SEED, &SCOPE, None, None))
}

struct Blocks(BlockHasher);

impl PromptSink for Blocks {
    fn prompt(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn end_message(&mut self) {
        self.0.end_message();
    }

    fn media(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}
