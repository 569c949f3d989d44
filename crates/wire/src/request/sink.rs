//! Where the text of a request goes, or its prompt.

/// Takes the text of a request piece by piece, in logical order.
///
/// Where one piece ends and the next begins carries no meaning: only their concatenation does. A piece is never empty.
pub trait TextSink {
    /// Takes the next piece; returns `false` when no more is wanted.
    fn text(&mut self, piece: &str) -> bool;

    /// The client marks what was given so far as a beginning that it will send again: OpenAI's `prompt_cache_breakpoint`,
    /// Anthropic's `cache_control`.
    fn breakpoint(&mut self) {}

    /// What comes next the model has said itself, in an earlier turn.
    fn answer(&mut self) {}
}

impl<F: FnMut(&str) -> bool> TextSink for F {
    fn text(&mut self, piece: &str) -> bool {
        self(piece)
    }
}

/// Takes the prompt of a request piece by piece, as the engine computes it.
///
/// Where one piece ends and the next begins carries no meaning, with one exception: what is given as media between two
/// bytes of the prompt is one medium.
pub trait PromptSink {
    /// Takes the next bytes: text as UTF-8, and marks that no text can hold.
    fn prompt(&mut self, bytes: &[u8]);

    /// Takes the next bytes of what tells an image, a sound or a file from others. They may be megabytes, of which the
    /// engine makes a thousand tokens or so.
    fn media(&mut self, bytes: &[u8]);

    /// A message has ended: a later prompt that goes on from here begins with all that was given so far.
    fn end_message(&mut self) {}
}

/// Counts the Unicode characters (scalar values) of a whole text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CharacterCount(usize);

impl CharacterCount {
    /// The characters counted so far.
    pub fn characters(self) -> usize {
        self.0
    }
}

impl TextSink for CharacterCount {
    fn text(&mut self, piece: &str) -> bool {
        self.0 += piece.chars().count();
        true
    }
}
