//! A request's prompt taken apart: its pieces in the engine's order, and where each stands.

use std::fmt;

use isotherm_wire::api::Api;
use isotherm_wire::request::{Described, Malformed, Mark, PromptSink, render};
use serde::Serialize;

use crate::chain::{Block, TEXT_BLOCK_BYTES, UNITS_PER_TOKEN, characters, extend, text_units, units};

/// What an engine makes of one image or sound, in tokens: between the 256 to 2,000 that common models take.
const MEDIUM_TOKENS: u32 = 1_000;

/// What a chat template puts around a message, in tokens.
const MESSAGE_TOKENS: u32 = 4;

/// A prompt in pieces. One is filled again and again, so that reading a log allocates little.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    /// The text of all pieces; marks and media are left out.
    pub(crate) bytes: Vec<u8>,
    pub(crate) pieces: Vec<Piece>,
    media: Vec<u8>,
}

/// A part of a prompt of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) mark: Mark,
    /// Where its text begins in the prompt's bytes.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The number of its message, from 0, where it belongs to one.
    pub(crate) message: Option<u32>,
    pub(crate) role: Role,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    #[default]
    Other,
}

/// A place in prompts that people can find: the tools, a message, the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) kind: PlaceKind,
    pub(crate) message: Option<u32>,
    pub(crate) role: Role,
}

/// What kind of a place it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum PlaceKind {
    Template,
    Tools,
    System,
    Message,
    Prompt,
    Body,
}

impl Prompt {
    /// Takes the request apart.
    ///
    /// # Errors
    /// When its body is not what the API wants.
    pub(crate) fn fill<'b>(&mut self, body: &'b [u8], api: Api) -> Result<Described<'b>, Malformed> {
        self.bytes.clear();
        self.pieces.clear();
        self.media.clear();
        let described = render(body, api, self)?;
        self.close_piece();
        Ok(described)
    }

    /// The text of a piece.
    pub(crate) fn text(&self, piece: &Piece) -> &[u8] {
        &self.bytes[piece.start..piece.end]
    }

    /// The blocks of the prompt, chained from `scope` on. Blocks begin anew with every piece, so that a prompt that goes
    /// on where another ends has all of its blocks.
    pub(crate) fn chain(&self, scope: u64, into: &mut Vec<Block>) {
        into.clear();
        let mut hash = scope;
        for piece in &self.pieces {
            hash = chain_piece(hash, piece, self.text(piece), into);
        }
    }

    /// How many characters stand before an offset in a piece, within its place.
    pub(crate) fn characters_before(&self, piece: usize, offset: usize) -> usize {
        let Some(of) = self.pieces.get(piece) else { return 0 };
        let before = self.pieces[..piece].iter().filter(|before| before.is_text() && before.place() == of.place());
        let within = &self.bytes[of.start..(of.start + offset).min(of.end)];
        before.map(|before| characters(self.text(before)) as usize).sum::<usize>() + characters(within) as usize
    }

    fn close_piece(&mut self) {
        if self.pieces.last().is_some_and(|piece| piece.mark == Mark::Medium) {
            // Megabytes become a name; the engine computes a medium's own tokens.
            let name = extend(0, &self.media).to_be_bytes();
            self.bytes.extend(name.iter().flat_map(|byte| {
                [b"0123456789abcdef"[usize::from(byte >> 4)], b"0123456789abcdef"[usize::from(byte & 15)]]
            }));
            self.media.clear();
        }
        let end = self.bytes.len();
        if let Some(last) = self.pieces.last_mut() {
            last.end = end;
            if last.mark == Mark::Message {
                last.role = Role::of(&self.bytes[last.start..]);
            }
        }
    }

    fn open_piece(&mut self, mark: Mark) {
        self.close_piece();
        let before = self.pieces.last();
        let messages = before.and_then(|piece| piece.message);
        let (message, role) = match mark {
            Mark::Message => (Some(messages.map_or(0, |number| number + 1)), Role::Other),
            Mark::System => (None, Role::System),
            _ => (messages, before.map_or(Role::Other, |piece| piece.role)),
        };
        let start = self.bytes.len();
        self.pieces.push(Piece { mark, start, end: start, message, role });
    }
}

/// Appends the blocks of a piece with this text and returns what names the prompt up to its end.
pub(crate) fn chain_piece(mut hash: u64, piece: &Piece, text: &[u8], into: &mut Vec<Block>) -> u64 {
    hash = extend(hash, &[Mark::BYTE, piece.mark as u8]);
    let first = into.len();
    for part in text.chunks(TEXT_BLOCK_BYTES) {
        hash = extend(hash, part);
        let counted = if piece.is_text() { characters(part) } else { 0 };
        into.push(Block { hash, units: text_units(part), characters: counted, generated: false });
    }
    let more = match piece.mark {
        Mark::Message => MESSAGE_TOKENS * UNITS_PER_TOKEN,
        Mark::Medium => units(MEDIUM_TOKENS),
        _ => 0,
    };
    if into.len() == first {
        into.push(Block { hash, units: 0, characters: 0, generated: false });
    }
    into[first].units += more;
    hash
}

impl PromptSink for Prompt {
    fn prompt(&mut self, bytes: &[u8]) {
        let mark = match bytes {
            [Mark::BYTE, letter] => Mark::of(*letter),
            _ => None,
        };
        match mark {
            Some(mark) => self.open_piece(mark),
            None => self.bytes.extend_from_slice(bytes),
        }
    }

    fn media(&mut self, bytes: &[u8]) {
        self.media.extend_from_slice(bytes);
    }
}

impl Piece {
    /// It is part of what the request's text is for a router.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.mark, Mark::Text | Mark::Prompt | Mark::TokenIds | Mark::Bytes)
    }

    /// Where people find it.
    pub(crate) fn place(&self) -> Place {
        let kind = match self.mark {
            Mark::Template | Mark::TemplateArguments | Mark::ReasoningEffort | Mark::Documents | Mark::Continued => {
                PlaceKind::Template
            }
            Mark::Tools => PlaceKind::Tools,
            Mark::Prompt | Mark::TokenIds => PlaceKind::Prompt,
            Mark::Bytes => PlaceKind::Body,
            _ if self.message.is_none() && self.role == Role::System => PlaceKind::System,
            _ => PlaceKind::Message,
        };
        Place { kind, message: self.message, role: self.role }
    }
}

impl Role {
    fn of(name: &[u8]) -> Role {
        match name {
            b"system" => Role::System,
            b"developer" => Role::Developer,
            b"user" => Role::User,
            b"assistant" => Role::Assistant,
            b"tool" | b"function" => Role::Tool,
            _ => Role::Other,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Role::System => "system",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::Other => "other",
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.message) {
            (PlaceKind::Template, _) => formatter.write_str("template arguments"),
            (PlaceKind::Tools, _) => formatter.write_str("tools"),
            (PlaceKind::System, _) => formatter.write_str("system"),
            (PlaceKind::Prompt, _) => formatter.write_str("prompt"),
            (PlaceKind::Body, _) => formatter.write_str("body"),
            (PlaceKind::Message, Some(number)) => write!(formatter, "messages[{number}] ({})", self.role),
            (PlaceKind::Message, None) => formatter.write_str("input"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(body: &str) -> (Vec<Block>, Vec<String>) {
        let (mut prompt, mut blocks) = (Prompt::default(), Vec::new());
        prompt.fill(body.as_bytes(), Api::ChatCompletions).unwrap();
        prompt.chain(1, &mut blocks);
        let places = prompt.pieces.iter().map(|piece| piece.place().to_string()).collect();
        (blocks, places)
    }

    #[test]
    fn pieces_know_their_places() {
        let (_, places) = chain(
            r#"{"tools":[{"a":1}],"messages":[{"role":"system","content":"s"},{"role":"user","content":"hello"}]}"#,
        );
        let (system, user) = ("messages[0] (system)", "messages[1] (user)");
        assert_eq!(places, ["tools", system, system, user, user]);
    }

    #[test]
    fn a_conversation_that_goes_on_has_all_blocks_of_the_one_before() {
        let first = r#"{"role":"system","content":"be brief"},{"role":"user","content":"what is warm?"}"#;
        let (before, _) = chain(&format!(r#"{{"messages":[{first}]}}"#));
        let (after, _) = chain(&format!(
            r#"{{"messages":[{first},{{"role":"assistant","content":"this"}},{{"role":"user","content":"?"}}]}}"#
        ));
        assert_eq!(after[..before.len()], before);
        assert!(after.len() > before.len());
    }

    #[test]
    fn only_text_counts_as_characters_and_everything_as_tokens() {
        let text = "x".repeat(100);
        let (blocks, _) =
            chain(&format!(r#"{{"tools":[{{"name":"{text}"}}],"messages":[{{"role":"user","content":"{text}"}}]}}"#));
        assert_eq!(blocks.iter().map(|block| block.characters).sum::<u32>(), 100);
        let tokens: u32 = blocks.iter().map(|block| block.units).sum::<u32>() / UNITS_PER_TOKEN;
        assert!((50..65).contains(&tokens), "{tokens}");
    }
}
