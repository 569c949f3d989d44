//! Sentences: whether what stands behind a difference came before.

use std::ops::Range;

use crate::chain::{extend, text_units};
use crate::known::Known;
use crate::prompt::Prompt;

/// A shorter one is no sign of anything, in bytes.
const SHORTEST: usize = 24;

/// How many sentences behind a difference are looked at.
const MOST: usize = 512;

/// What is known behind a difference.
#[derive(Debug)]
pub(super) struct Behind {
    /// The sentence in which the difference is, within its piece.
    pub(super) difference: (usize, usize),
    /// That sentence came before.
    pub(super) difference_is_known: bool,
    /// How long the known sentences behind it are.
    pub(super) units: u64,
}

/// Looks at the sentences of a prompt behind an offset in one of its pieces.
pub(super) fn known_behind(prompt: &Prompt, piece: usize, offset: usize, known: &Known) -> Behind {
    let mut behind = Behind { difference: (offset, offset), difference_is_known: false, units: 0 };
    let mut seen = 0;
    for (number, of) in prompt.pieces.iter().enumerate().skip(piece) {
        let text = prompt.text(of);
        let from = if number == piece { start(text, offset) } else { 0 };
        each(text, from, |sentence| {
            seen += 1;
            let is_known = seen <= MOST && known.contains(hash(&text[sentence.clone()]));
            if seen == 1 {
                behind.difference = (sentence.start, sentence.end);
                behind.difference_is_known = is_known;
            } else if is_known {
                behind.units += u64::from(text_units(&text[sentence]));
            }
        });
    }
    behind
}

/// Names a sentence.
pub(super) fn hash(sentence: &[u8]) -> u64 {
    extend(0, sentence.trim_ascii())
}

/// Gives each sentence from an offset on that is long enough; they end with a line, or with a point and a space.
pub(super) fn each(text: &[u8], from: usize, mut take: impl FnMut(Range<usize>)) {
    let mut begin = from;
    for at in from..text.len() {
        let ends =
            text[at] == b'\n' || (text[at] == b' ' && at > 0 && matches!(text[at - 1], b'.' | b'!' | b'?' | b';'));
        if ends && at - begin >= SHORTEST {
            take(begin..at);
        }
        if ends {
            begin = at + 1;
        }
    }
    if text.len() - begin.min(text.len()) >= SHORTEST {
        take(begin..text.len());
    }
}

/// Where the sentence begins that an offset is in.
fn start(text: &[u8], offset: usize) -> usize {
    let before = &text[..offset.min(text.len())];
    before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1).max(
        before.windows(2).rposition(|pair| matches!(pair, [b'.' | b'!' | b'?' | b';', b' '])).map_or(0, |at| at + 2),
    )
}
