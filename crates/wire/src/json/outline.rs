//! Finding where containers end without judging what is in them: 64 bytes at a time, one bit each.

use super::{Cursor, Malformed};

const BLOCK: usize = 64;

impl Cursor<'_> {
    /// Passes to behind the bracket that closes the outermost of `depth` open containers. What a block costs hardly depends
    /// on what is in it, while a branch for each of a million brackets would be guessed wrong half of the time.
    pub(super) fn leave(&mut self, mut depth: usize) -> Result<(), Malformed> {
        let mut strings = Strings::default();
        while let Some(block) = self.block() {
            let kinds = Kinds::of(&block);
            if strings.escaped || kinds.any() {
                let outside = !strings.inside(&kinds);
                let (opening, closing) = (outside & kinds.each(Kinds::OPENS), outside & kinds.each(Kinds::CLOSES));
                if let Some(end) = end(opening, closing, &mut depth) {
                    self.at += end + 1;
                    return Ok(());
                }
            }
            self.at += BLOCK;
        }
        self.at = self.bytes.len();
        Err(self.malformed("the end of what is open"))
    }

    /// The bytes from here on, with spaces behind the last.
    fn block(&self) -> Option<[u8; BLOCK]> {
        let rest = self.bytes.get(self.at..)?;
        if let Some(whole) = rest.first_chunk() {
            return Some(*whole);
        }
        let mut block = [b' '; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        (!rest.is_empty()).then_some(block)
    }
}

/// What each byte of a block is, as one bit of eight: where it is none of these it is zero.
#[derive(Debug)]
struct Kinds([u64; BLOCK / 8]);

impl Kinds {
    const QUOTES: u32 = 0;
    const ESCAPES: u32 = 1;
    const OPENS: u32 = 2;
    const CLOSES: u32 = 3;

    /// No branch and no table, so that it vectorises.
    fn of(block: &[u8; BLOCK]) -> Kinds {
        let mut kinds = *block;
        for byte in &mut kinds {
            // Brackets and braces differ in one bit.
            let bracket = *byte | 0x20;
            *byte = u8::from(*byte == b'"') << Kinds::QUOTES
                | u8::from(*byte == b'\\') << Kinds::ESCAPES
                | u8::from(bracket == b'{') << Kinds::OPENS
                | u8::from(bracket == b'}') << Kinds::CLOSES;
        }
        let mut words = [0; BLOCK / 8];
        words.iter_mut().zip(kinds.as_chunks().0).for_each(|(word, eight)| *word = u64::from_le_bytes(*eight));
        Kinds(words)
    }

    /// Whether any byte may change what those behind it mean.
    fn any(&self) -> bool {
        self.0.iter().fold(0, |any, eight| any | eight) != 0
    }

    /// A bit for each byte of one kind.
    fn each(&self, kind: u32) -> u64 {
        self.0.iter().rev().fold(0, |bits, eight| bits << 8 | (eight >> kind & EACH).wrapping_mul(GATHER) >> 56)
    }
}

/// A one in each of eight bytes.
const EACH: u64 = 0x0101_0101_0101_0101;
/// Multiplied by it, the lowest bits of eight bytes come to stand in the uppermost byte, in their order.
const GATHER: u64 = 0x0102_0408_1020_4080;

/// Where the last of `depth` containers is closed, if that is in this block; `depth` becomes what is open behind it.
fn end(opening: u64, closing: u64, depth: &mut usize) -> Option<usize> {
    let (opened, closed) = (opening.count_ones() as usize, closing.count_ones() as usize);
    if closed < *depth {
        *depth = *depth + opened - closed;
        return None;
    }
    // What is empty ends nothing that was open before.
    let empty = opening & closing >> 1;
    let mut brackets = (opening | closing) & !(empty | empty << 1);
    while brackets != 0 {
        let at = brackets.trailing_zeros();
        brackets &= brackets - 1;
        let closes = (closing >> at & 1) as usize;
        *depth = *depth + 1 - 2 * closes;
        if *depth == 0 {
            return Some(at as usize);
        }
    }
    None
}

/// Which bytes stand in strings, block after block.
#[derive(Debug, Default)]
struct Strings {
    /// The last block ended within a string.
    open: bool,
    /// The last block ended with a backslash that escapes what follows.
    escaped: bool,
}

impl Strings {
    /// A bit for each byte of the next block that stands in a string; its opening quote is in it, the closing one is not.
    fn inside(&mut self, kinds: &Kinds) -> u64 {
        let quotes = kinds.each(Kinds::QUOTES) & !self.escaped_in(kinds.each(Kinds::ESCAPES));
        // Bit by bit, whether the quotes up to there are odd in number.
        let mut inside = quotes;
        for distance in [1, 2, 4, 8, 16, 32] {
            inside ^= inside << distance;
        }
        inside ^= u64::from(self.open).wrapping_neg();
        self.open = inside >> (BLOCK - 1) == 1;
        inside
    }

    /// A bit for each byte that a backslash escapes, without a step for each of them: of backslashes in a row those at every
    /// second place do, and adding a row to where it begins tells where it ends (Langdale and Lemire, "Parsing gigabytes of
    /// JSON per second", 2019, section 3.1.1).
    fn escaped_in(&mut self, backslashes: u64) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        let first = u64::from(self.escaped);
        let backslashes = backslashes & !first;
        let behind = backslashes << 1 | first;
        let begins_at_odd = backslashes & !EVEN & !behind;
        let (ends, beyond) = begins_at_odd.overflowing_add(backslashes);
        self.escaped = beyond;
        (EVEN ^ ends << 1) & behind
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The same, byte by byte.
    fn left_byte_by_byte(text: &[u8], mut depth: usize) -> Option<usize> {
        let (mut inside, mut escaped) = (false, false);
        for (at, byte) in text.iter().enumerate() {
            match byte {
                b'"' if !escaped => inside = !inside,
                b'[' | b'{' if !inside => depth += 1,
                b']' | b'}' if !inside => depth -= 1,
                _ => {}
            }
            escaped = *byte == b'\\' && !escaped;
            if depth == 0 {
                return Some(at + 1);
            }
        }
        None
    }

    #[test]
    fn each_byte_is_told_for_itself() {
        let all: Vec<u8> = (0..=255).collect();
        for (index, block) in all.as_chunks::<BLOCK>().0.iter().enumerate() {
            let kinds = Kinds::of(block);
            let wanted = |wanted: &[u8]| {
                let here = wanted.iter().filter(|&&byte| usize::from(byte) / BLOCK == index);
                here.fold(0_u64, |bits, &byte| bits | 1 << (usize::from(byte) % BLOCK))
            };
            assert_eq!(kinds.each(Kinds::QUOTES), wanted(b"\""));
            assert_eq!(kinds.each(Kinds::ESCAPES), wanted(b"\\"));
            assert_eq!(kinds.each(Kinds::OPENS), wanted(b"[{"));
            assert_eq!(kinds.each(Kinds::CLOSES), wanted(b"]}"));
        }
    }

    proptest! {
        #[test]
        fn ends_where_reading_byte_by_byte_ends(
            pieces in vec(prop_oneof![
                Just("[".to_owned()), Just("]".to_owned()), Just("{".to_owned()), Just("}".to_owned()),
                Just("\"".to_owned()), Just("\\".to_owned()), "[1,a ]{0,3}", "x{60,70}", "\\\\{1,70}\"?", "\\[{30,70}",
                "\\]{30,70}",
            ], 0..60),
            depth in 1_usize..80,
        ) {
            let text = pieces.concat();
            let mut cursor = Cursor::new(text.as_bytes());
            let left = cursor.leave(depth).ok().map(|()| cursor.at);
            prop_assert_eq!(left, left_byte_by_byte(text.as_bytes(), depth));
        }
    }
}
