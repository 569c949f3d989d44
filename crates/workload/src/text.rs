//! Writes the text of a prompt: plausible English of a given number of tokens, different from the first characters on.

use rand::Rng;
use rand_pcg::Pcg64;

use crate::Piece;
use crate::seed::{Purpose, mix, stream};
use crate::words::{COMMON, SYLLABLES};

/// How many characters a token has in English text, on average: the figure by which lengths in tokens become lengths
/// in characters unless the caller has a better one for its engine.
pub const CHARACTERS_PER_TOKEN: f64 = 4.2;

/// Turns pieces into text. Equal seed and piece give equal text.
#[derive(Clone, Debug)]
pub struct TextWriter {
    seed: u64,
    characters_per_token: f64,
}

impl TextWriter {
    /// Another seed gives other text for the same plan: engines that kept their caches from an earlier run know none
    /// of it.
    pub fn new(seed: u64) -> TextWriter {
        TextWriter { seed, characters_per_token: CHARACTERS_PER_TOKEN }
    }

    /// For an engine whose tokens are known to be longer or shorter; the figure is brought into 0.5 to 20.
    #[must_use]
    pub fn with_characters_per_token(mut self, characters_per_token: f64) -> TextWriter {
        self.characters_per_token = characters_per_token.clamp(0.5, 20.0);
        self
    }

    /// The whole prompt: its pieces as paragraphs. ASCII, so that characters are bytes.
    pub fn prompt(&self, pieces: &[Piece]) -> String {
        let length: usize = pieces.iter().map(|piece| self.length(*piece) + 2).sum();
        let mut text = String::with_capacity(length);
        for piece in pieces {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            self.write(*piece, &mut text);
        }
        text
    }

    /// Appends one piece: a word that no other piece has, then sentences, cut at the piece's length.
    fn write(&self, piece: Piece, text: &mut String) {
        let end = text.len() + self.length(piece);
        push_unique_word(mix(mix(self.seed) ^ piece.id.0), text);
        let mut rng = stream(self.seed, Purpose::Text, piece.id.0);
        while text.len() < end {
            push_sentence(&mut rng, text);
        }
        text.truncate(end);
    }

    /// A piece's length in characters, so that it has as many tokens as planned.
    fn length(&self, piece: Piece) -> usize {
        let longer = self.characters_per_token / CHARACTERS_PER_TOKEN;
        ((f64::from(piece.characters) * longer).round() as usize).max(1)
    }
}

/// Spells a number in letters: different numbers differ, and nearly always from the first letter on.
fn push_unique_word(number: u64, text: &mut String) {
    let mut rest = number;
    let mut first = b'A';
    while rest > 0 || first == b'A' {
        text.push(char::from(first + (rest % 26) as u8));
        rest /= 26;
        first = b'a';
    }
    text.push(':');
}

/// Appends a sentence of 7 to 22 words. Three words in sixteen are names of rare syllables, which tokenizers cut into
/// several tokens: with the common words, one token each, that comes to 4.20 characters
/// a token of cl100k_base and 4.32 of o200k_base, measured on 40,000 tokens.
fn push_sentence(rng: &mut Pcg64, text: &mut String) {
    let mut words = 7 + rng.next_u32() % 16;
    while words > 0 {
        let mut bits = rng.next_u64();
        for _ in 0..words.min(4) {
            text.push(' ');
            let (kind, word) = (bits & 15, bits >> 4);
            if kind < 3 {
                push_name(word, text)
            } else {
                text.push_str(COMMON[word as usize % COMMON.len()])
            }
            bits >>= 16;
        }
        words = words.saturating_sub(4);
    }
    text.push('.');
}

/// Appends a made-up name of two syllables.
fn push_name(bits: u64, text: &mut String) {
    for shift in [0, 6] {
        text.push_str(SYLLABLES[(bits >> shift) as usize % SYLLABLES.len()]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{CHARACTERS_PER_TOKEN, TextWriter};
    use crate::{Piece, PieceId};

    fn piece(id: u64, tokens: u32) -> Piece {
        Piece::new(PieceId(id), tokens)
    }

    #[test]
    fn a_prompt_is_as_long_as_its_pieces_say() {
        let document = piece(1, 8_000);
        let question = piece(2, 130);
        let prompt = TextWriter::new(1).prompt(&[document, question]);
        assert_eq!(prompt.len(), 33_600 + 2 + 546);
        assert_eq!(prompt.len() - 2, (8_130.0 * CHARACTERS_PER_TOKEN) as usize);
        let longer = TextWriter::new(1).with_characters_per_token(5.0).prompt(&[document]);
        assert_eq!(longer.len(), 40_000);
    }

    #[test]
    fn equal_pieces_are_equal_text_and_the_rest_differs() {
        let writer = TextWriter::new(7);
        let (first, second) =
            (writer.prompt(&[piece(1, 900), piece(2, 50)]), writer.prompt(&[piece(1, 900), piece(3, 50)]));
        let document = writer.prompt(&[piece(1, 900)]);
        assert!(first.starts_with(&document) && second.starts_with(&document));
        assert_ne!(first[document.len() + 2..][..8], second[document.len() + 2..][..8]);
    }

    #[test]
    fn pieces_and_seeds_differ_within_the_first_characters() {
        let mut beginnings = HashSet::new();
        for seed in 0..4 {
            for id in 0..2_000 {
                beginnings.insert(TextWriter::new(seed).prompt(&[piece(id, 20)])[..10].to_owned());
            }
        }
        assert_eq!(beginnings.len(), 8_000);
    }

    #[test]
    fn text_is_plain_and_does_not_move_between_releases() {
        let text = TextWriter::new(1).prompt(&[piece(0, 4_000)]);
        assert!(text.bytes().all(|byte| byte.is_ascii_alphabetic() || b" .:".contains(&byte)));
        assert_eq!(&text[..60], "Ixqkfvoggmmetc: such who might few development these yormund");
    }
}
