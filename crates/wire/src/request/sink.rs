//! Where the text of a request goes.

/// Takes the text of a request piece by piece, in logical order.
///
/// Where one piece ends and the next begins carries no meaning: only their concatenation does. A piece is never empty.
pub trait TextSink {
    /// Takes the next piece; returns `false` when no more is wanted.
    fn text(&mut self, piece: &str) -> bool;
}

impl<F: FnMut(&str) -> bool> TextSink for F {
    fn text(&mut self, piece: &str) -> bool {
        self(piece)
    }
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
