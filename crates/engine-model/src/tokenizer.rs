//! Cuts text into uneven pieces and gives each a token id.

/// A token id. Ids of text pieces are hashes of the piece: equal pieces, equal ids; there is no vocabulary to look up.
pub type Token = u32;

/// One token of a text and the part of the text that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The characters; never cut inside of one. The texts of all pieces, joined, are the whole text.
    pub text: &'a str,
    /// Its id.
    pub token: Token,
}

/// The pieces of a text, in order.
pub fn pieces(text: &str) -> Pieces<'_> {
    Pieces { rest: text }
}

/// Appends the tokens of a text.
pub fn tokenize(text: &str, tokens: &mut Vec<Token>) {
    tokens.extend(pieces(text).map(|piece| piece.token));
}

/// How many tokens a text has.
pub fn count(text: &str) -> usize {
    pieces(text).count()
}

/// Iterator of [`pieces`].
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let _ = self.rest;
        todo!()
    }
}
