//! A prompt as a trail of hashes: its blocks, and where its parts end. Only made where diagnostics are on.

use isotherm_core::{BlockHasher, HashSeed, PromptDigest};
use isotherm_telemetry::{Part, PartEnd, PartKind, Role, Trail};
use isotherm_wire::request::{Mark, PromptSink};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::blocks::Blocks;
use super::{Look, Prompt, Read};

/// So many parts are told one by one; behind them, each message is one.
const ONE_BY_ONE: usize = 64;

/// How much of a medium its part is named by.
const MEDIA_BYTES: usize = 4_096;

/// The most parts that are told; the last one takes in what comes beyond.
const MOST: usize = 1_024;

/// The trail of a body; `None` where there is nothing in it that routing would look at. What separates caches is not in
/// it yet.
pub(crate) fn trail(read: &Read, seed: HashSeed) -> Option<Trail> {
    let Read { body, form, look, prompt } = read;
    if *look == Look::Trail {
        return Some(Trail::new(prompt.blocks.as_ref()?, prompt.parts.clone()));
    }
    let Prompt { blocks, parts, .. } = Prompt::read(body, *form, Look::Trail, seed).ok()?;
    Some(Trail::new(&blocks?, parts))
}

/// The hash of a text that separates caches; 0 of none.
pub(crate) fn hash_of(seed: HashSeed, text: Option<&str>) -> u64 {
    text.map_or(0, |text| {
        let mut hasher = BlockHasher::new(seed);
        hasher.update(text.as_bytes());
        hasher.so_far().0.0
    })
}

/// Cuts and hashes a prompt, and notes where its parts end.
pub(super) struct Parts {
    blocks: Blocks,
    parts: Vec<PartEnd>,
    /// The part that is being given.
    part: Part,
    /// The role of the message comes next.
    in_head: bool,
    messages: u16,
    /// Names what was given of the part.
    own: u64,
    /// How much of a medium was looked at for that.
    media: usize,
}

impl Parts {
    pub(super) fn new(seed: HashSeed) -> Parts {
        let part = Part { kind: PartKind::Prompt, role: Role::Nobody, message: Part::NO_MESSAGE };
        let blocks = Blocks::new(seed);
        Parts { blocks, parts: Vec::new(), part, in_head: false, messages: 0, own: 0, media: 0 }
    }

    /// All of it, `None` without text, and where its parts end.
    pub(super) fn finish(mut self) -> (Option<PromptDigest>, Box<[PartEnd]>) {
        self.end_part();
        (self.blocks.finish(), self.parts.into())
    }

    /// A part ends here and another begins.
    fn begin(&mut self, mark: Mark) {
        self.end_part();
        if mark == Mark::Message {
            let message = self.messages;
            self.messages = message.saturating_add(1).min(Part::NO_MESSAGE - 1);
            self.part = Part { kind: PartKind::Head, role: Role::Other, message };
            self.in_head = true;
            return;
        }
        self.in_head = false;
        self.part.kind = match mark {
            Mark::Template | Mark::TemplateArguments | Mark::ReasoningEffort => PartKind::Template,
            Mark::Documents => PartKind::Documents,
            Mark::Tools => PartKind::Tools,
            Mark::Continued => PartKind::Continued,
            Mark::System => PartKind::System,
            Mark::Message | Mark::Name | Mark::Answers => PartKind::Head,
            // What stands before the messages is of one piece.
            Mark::Text if self.part.kind == PartKind::System => PartKind::System,
            Mark::Text => PartKind::Text,
            Mark::Reasoning => PartKind::Reasoning,
            Mark::Call => PartKind::Call,
            Mark::Result | Mark::ResultEnd => PartKind::ToolResult,
            Mark::Medium => PartKind::Medium,
            Mark::Prompt | Mark::TokenIds | Mark::Bytes => PartKind::Prompt,
        };
    }

    fn end_part(&mut self) {
        let (chain, end) = self.blocks.so_far();
        if end == self.parts.last().map_or(0, |last| last.end) {
            return;
        }
        let own = std::mem::take(&mut self.own);
        self.media = 0;
        let part = PartEnd { chain, end, own, part: self.part };
        let whole_message = PartEnd { part: Part { kind: PartKind::Message, ..self.part }, ..part };
        let count = self.parts.len();
        match self.parts.last_mut() {
            Some(last) if count >= MOST || count >= ONE_BY_ONE && last.part.message == self.part.message => {
                *last = whole_message;
            }
            _ => self.parts.push(part),
        }
    }
}

impl PromptSink for Parts {
    fn prompt(&mut self, bytes: &[u8]) {
        match bytes {
            [Mark::BYTE, letter] => {
                if let Some(mark) = Mark::of(*letter) {
                    self.begin(mark);
                }
            }
            role if std::mem::take(&mut self.in_head) => self.part.role = Role::of(role),
            text => self.own = xxh3_64_with_seed(text, self.own),
        }
        self.blocks.prompt(bytes);
    }

    fn media(&mut self, bytes: &[u8]) {
        // Files may be megabytes; their beginnings tell them apart well enough for what this is for.
        let looked_at = &bytes[..bytes.len().min(MEDIA_BYTES - self.media)];
        self.media += looked_at.len();
        self.own = xxh3_64_with_seed(looked_at, self.own);
        self.blocks.media(bytes);
    }

    fn end_message(&mut self) {
        self.end_part();
        self.blocks.end_message();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use isotherm_wire::api::Api;

    use super::super::Form;
    use super::*;

    const SEED: HashSeed = HashSeed(3);

    fn read(body: &str, look: Look) -> Read {
        Read::new(Bytes::copy_from_slice(body.as_bytes()), Form::Api(Api::ChatCompletions), look, SEED).unwrap()
    }

    fn of(body: &str) -> Trail {
        trail(&read(body, Look::Nowhere), SEED).unwrap()
    }

    #[test]
    fn one_reading_gives_the_blocks_and_the_trail_that_two_would() {
        let user = "Tell me all about it. ".repeat(40);
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"text","text":"{user}"}},
            {{"type":"image_url","image_url":{{"url":"data:AAAA"}}}}]}},{{"role":"assistant","content":"Yes."}}]}}"#
        );
        let (once, twice) = (read(&body, Look::Trail), read(&body, Look::Blocks));
        assert!(once.prompt.blocks.is_some() && once.prompt.blocks == twice.prompt.blocks);
        assert_eq!(trail(&once, SEED), trail(&twice, SEED));
        assert!(trail(&once, SEED).unwrap().parts.len() >= 5);
    }

    fn told(trail: &Trail) -> Vec<(PartKind, Role, u16)> {
        trail.parts.iter().map(|PartEnd { part, .. }| (part.kind, part.role, part.message)).collect()
    }

    #[test]
    fn parts_are_told_by_what_they_are_and_where_they_end() {
        let trail = of(r#"{"tools":[{"name":"f"}],"messages":[{"role":"system","content":"Be brief."},
            {"role":"user","content":[{"type":"text","text":"Hi"},{"type":"image_url","image_url":{"url":"data:A"}}]}]}"#);
        let none = Part::NO_MESSAGE;
        assert_eq!(
            told(&trail),
            [
                (PartKind::Tools, Role::Nobody, none),
                (PartKind::Head, Role::System, 0),
                (PartKind::Text, Role::System, 0),
                (PartKind::Head, Role::User, 1),
                (PartKind::Text, Role::User, 1),
                (PartKind::Medium, Role::User, 1),
            ]
        );
        assert!(trail.parts.is_sorted_by_key(|part| part.end));
        let last = trail.parts.last().unwrap();
        assert_eq!((last.end, Some(&last.chain)), (trail.bytes(), trail.blocks.last()));
    }

    #[test]
    fn equal_beginnings_have_equal_parts_and_the_first_difference_is_in_the_first_that_differs() {
        let of = |system: &str, user: &str| {
            of(&format!(
                r#"{{"messages":[{{"role":"system","content":"{system}"}},{{"role":"user","content":"{user}"}}]}}"#
            ))
        };
        let (one, other, system) = (of("Be brief.", "Hi"), of("Be brief.", "Ho"), of("Be brief!", "Hi"));
        let shared = |left: &Trail, right: &Trail| {
            left.parts.iter().zip(&right.parts).take_while(|(left, right)| left == right).count()
        };
        assert_eq!((shared(&one, &other), shared(&one, &system), shared(&one, &one)), (3, 1, 4));
    }

    #[test]
    fn a_long_conversation_is_told_message_by_message_and_within_bounds() {
        let message = r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#;
        let trail = of(&format!(r#"{{"messages":[{}]}}"#, vec![message; 3_000].join(",")));
        assert_eq!(trail.parts.len(), MOST);
        assert_eq!(trail.parts[200].part.kind, PartKind::Message);
        assert_eq!(trail.parts.last().map(|part| part.end), Some(trail.bytes()));
    }
}
