//! The first characters of a text, forwarded as bytes.

use std::fmt;

use super::TextSink;

/// A [`TextSink`] that forwards the UTF-8 bytes of the first `limit` Unicode characters (scalar values) of a text and
/// never splits one. It asks for text until it has seen one character beyond the cut, so that it can tell whether the
/// text goes on.
///
/// On the way it notes the client's last breakpoint within the cut. One behind which the model has answered within the
/// cut counts no more: what repeats then is the conversation, and its turns are told apart from those of others only by
/// what stands behind the breakpoint.
pub struct Prefix<'s> {
    limit: usize,
    characters: usize,
    continued: bool,
    breakpoint: Option<usize>,
    forward: &'s mut dyn PrefixSink,
}

/// Takes the bytes of a prefix as they come.
pub trait PrefixSink {
    /// Takes the next bytes.
    fn bytes(&mut self, bytes: &[u8]);

    /// A breakpoint of the client's stands behind what was given so far.
    fn breakpoint(&mut self) {}
}

impl<F: FnMut(&[u8])> PrefixSink for F {
    fn bytes(&mut self, bytes: &[u8]) {
        self(bytes);
    }
}

impl<'s> Prefix<'s> {
    /// Forwards the first `limit` characters to `forward`, in pieces of any size.
    pub fn new(limit: usize, forward: &'s mut dyn PrefixSink) -> Self {
        Prefix { limit, characters: 0, continued: false, breakpoint: None, forward }
    }

    /// The characters before the breakpoint that ends the prefix, if one does: where the last call of
    /// [`PrefixSink::breakpoint`] was made.
    pub fn breakpoint(&self) -> Option<usize> {
        self.breakpoint
    }

    /// The characters forwarded so far, at most the limit.
    pub fn characters(&self) -> usize {
        self.characters
    }

    /// The text has characters beyond the cut. `false` means that the prefix covers the whole text.
    pub fn continued(&self) -> bool {
        self.continued
    }
}

impl TextSink for Prefix<'_> {
    fn text(&mut self, piece: &str) -> bool {
        let wanted = self.limit - self.characters;
        let (head, taken) = first_characters(piece, wanted);
        if !head.is_empty() {
            self.forward.bytes(head.as_bytes());
            self.characters += taken;
        }
        self.continued = head.len() < piece.len();
        !self.continued
    }

    fn breakpoint(&mut self) {
        if self.characters > 0 && self.breakpoint != Some(self.characters) {
            self.breakpoint = Some(self.characters);
            self.forward.breakpoint();
        }
    }

    fn answer(&mut self) {
        if self.characters < self.limit {
            self.breakpoint = None;
        }
    }
}

/// The first `wanted` characters of `text`, or all of it, and how many they are.
fn first_characters(text: &str, wanted: usize) -> (&str, usize) {
    // No text has more characters than bytes, so most pieces need counting only.
    if text.len() <= wanted {
        return (text, text.chars().count());
    }
    let mut rest = text.chars();
    let taken = match wanted.checked_sub(1) {
        None => return ("", 0),
        Some(before_last) if rest.nth(before_last).is_some() => wanted,
        Some(_) => text.chars().count(),
    };
    (&text[..text.len() - rest.as_str().len()], taken)
}

impl fmt::Debug for Prefix<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Prefix")
            .field("limit", &self.limit)
            .field("characters", &self.characters)
            .field("continued", &self.continued)
            .field("breakpoint", &self.breakpoint)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(pieces: &[&str], limit: usize) -> (String, usize, bool) {
        let mut bytes = Vec::new();
        let mut forward = |piece: &[u8]| bytes.extend_from_slice(piece);
        let mut prefix = Prefix::new(limit, &mut forward);
        let mut wants_more = true;
        for piece in pieces {
            if !wants_more {
                break;
            }
            wants_more = prefix.text(piece);
        }
        let (characters, continued) = (prefix.characters(), prefix.continued());
        (String::from_utf8(bytes).expect("whole characters"), characters, continued)
    }

    #[test]
    fn cuts_between_characters_of_every_width() {
        let text = "aé你😀z";
        let cuts = ["", "a", "aé", "aé你", "aé你😀", "aé你😀z", "aé你😀z"];
        for (limit, expected) in cuts.into_iter().enumerate() {
            assert_eq!(cut(&[text], limit), (expected.to_owned(), limit.min(5), limit < 5), "limit {limit}");
        }
    }

    #[test]
    fn a_text_that_ends_at_the_cut_does_not_continue() {
        assert_eq!(cut(&["ab", "cd"], 4), ("abcd".to_owned(), 4, false));
        assert_eq!(cut(&["ab", "cd", "e"], 4), ("abcd".to_owned(), 4, true));
    }

    #[test]
    fn the_last_breakpoint_within_the_cut_counts_until_the_model_has_answered() {
        enum Step {
            Text(&'static str),
            Breakpoint,
            Answer,
        }
        use Step::{Answer, Breakpoint, Text};
        let cases: [(&[Step], Option<usize>); 8] = [
            (&[Text("system"), Breakpoint, Text("question")], Some(6)),
            (&[Text("system"), Breakpoint, Text("doc"), Breakpoint, Text("question")], Some(9)),
            (&[Breakpoint, Text("question")], None),
            (&[Text("ab"), Breakpoint, Answer, Text("cd")], None),
            (&[Text("ab"), Breakpoint, Answer, Text("cd"), Breakpoint, Text("e")], Some(4)),
            (&[Text("0123456789"), Breakpoint, Text("x")], Some(10)),
            (&[Text("0123456789"), Breakpoint, Answer, Text("x")], Some(10)),
            (&[Text("012345678"), Text("9+")], None),
        ];
        for (index, (steps, expected)) in cases.into_iter().enumerate() {
            let mut forward = |_: &[u8]| {};
            let mut prefix = Prefix::new(10, &mut forward);
            for step in steps {
                match step {
                    Text(piece) => _ = prefix.text(piece),
                    Breakpoint => TextSink::breakpoint(&mut prefix),
                    Answer => prefix.answer(),
                }
            }
            assert_eq!(prefix.breakpoint(), expected, "case {index}");
        }
    }

    proptest! {
        #[test]
        fn forwards_the_first_characters_of_any_text(text in "\\PC{0,40}", split in 0usize..40, limit in 0usize..50) {
            let split = text.char_indices().nth(split).map_or(text.len(), |(at, _)| at);
            let (head, tail) = text.split_at(split);
            let pieces: Vec<&str> = [head, tail].into_iter().filter(|piece| !piece.is_empty()).collect();
            let length = text.chars().count();
            let expected: String = text.chars().take(limit).collect();
            prop_assert_eq!(cut(&pieces, limit), (expected, length.min(limit), length > limit));
        }
    }
}
