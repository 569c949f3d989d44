//! Decoding JSON strings.

use std::borrow::Cow;

use memchr::memchr;

use super::cursor::first_among_eight;

/// The longest piece in which text is decoded: bounds the work done for a reader that wants only a beginning.
const PIECE: usize = 4096;

/// Runs without escapes that are shorter than this are gathered, so that a reader gets few pieces of fair size.
const WORTH_A_PIECE: usize = 128;

/// Shorter strings are looked through before a search would have begun.
const WORTH_A_SEARCH: usize = 16;

/// How much of a piece may be replaced.
const MOST_INVALID: usize = 256;

/// Room for a key without its escapes, as long as any that means something.
#[derive(Debug, Default)]
pub(crate) struct Name([u8; 32]);

/// A string between its quotes, as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawString<'a> {
    raw: &'a [u8],
    /// It is known to hold no backslash.
    is_plain: bool,
}

impl<'a> RawString<'a> {
    pub(super) fn new(raw: &'a [u8]) -> Self {
        RawString { raw, is_plain: false }
    }

    /// A string that holds no backslash.
    pub(super) fn plain(raw: &'a [u8]) -> Self {
        RawString { raw, is_plain: true }
    }

    fn has_escapes(self) -> bool {
        match self.raw {
            _ if self.is_plain => false,
            short if short.len() < WORTH_A_SEARCH => short.contains(&b'\\'),
            long => memchr(b'\\', long).is_some(),
        }
    }

    /// What stands between its quotes.
    pub(crate) fn as_written(self) -> &'a [u8] {
        self.raw
    }

    /// The string with its escapes resolved, to be compared with a name; written into `space` if it has escapes. One that is
    /// too long for that is given as it is written: with a backslash, which no name has.
    pub(crate) fn name<'n>(self, space: &'n mut Name) -> &'n [u8]
    where
        'a: 'n,
    {
        if !self.has_escapes() {
            return self.raw;
        }
        let (mut rest, mut length) = (self.raw, 0);
        while let Some(&byte) = rest.first() {
            let mut utf8 = [byte, 0, 0, 0];
            let (written, width) = match byte {
                b'\\' => {
                    let (character, width) = escape(rest);
                    (character.encode_utf8(&mut utf8).len(), width)
                }
                _ => (1, 1),
            };
            let Some(place) = space.0.get_mut(length..length + written) else { return self.raw };
            place.copy_from_slice(&utf8[..written]);
            length += written;
            rest = &rest[width..];
        }
        &space.0[..length]
    }

    /// The string with its escapes resolved, as bytes. What is not UTF-8 stays as it is unless there are escapes.
    pub(crate) fn decoded(self) -> Cow<'a, [u8]> {
        if !self.has_escapes() {
            return Cow::Borrowed(self.raw);
        }
        Cow::Owned(self.unescape().into_bytes())
    }

    /// The string with its escapes resolved. Lone surrogates and what is not UTF-8 become U+FFFD.
    pub(crate) fn decode(self) -> Cow<'a, str> {
        if !self.has_escapes() {
            return String::from_utf8_lossy(self.raw);
        }
        Cow::Owned(self.unescape())
    }

    fn unescape(self) -> String {
        let mut text = String::with_capacity(self.raw.len());
        self.pieces(&mut Vec::new(), &mut |piece| {
            text.push_str(piece);
            true
        });
        text
    }

    /// Gives the decoded string to `take`, in pieces that are not empty, until `take` wants no more (then the answer is
    /// `false`). Decodes little more than what is taken. `scratch` is memory to gather short runs in; it ends empty.
    pub(crate) fn pieces(self, scratch: &mut Vec<u8>, take: &mut dyn FnMut(&str) -> bool) -> bool {
        let mut rest = self.raw;
        loop {
            if scratch.len() >= PIECE || rest.is_empty() {
                let wants_more = valid_parts(scratch, take);
                scratch.clear();
                if rest.is_empty() || !wants_more {
                    return wants_more;
                }
            }
            while scratch.len() < PIECE && rest.first() == Some(&b'\\') {
                rest = unescape_first(rest, scratch);
            }
            let window = whole_characters(rest, PIECE);
            let (run, behind) = rest.split_at(memchr(b'\\', window).unwrap_or(window.len()));
            rest = behind;
            if run.len() < WORTH_A_PIECE {
                scratch.extend_from_slice(run);
            } else {
                let wants_more = valid_parts(scratch, take) && valid_parts(run, take);
                scratch.clear();
                if !wants_more {
                    return false;
                }
            }
        }
    }
}

/// Writes the character of the escape at the beginning of `rest`, and what stands behind it if another escape is so near
/// that a search for it would not have begun by then; what follows.
#[inline]
fn unescape_first<'a>(rest: &'a [u8], text: &mut Vec<u8>) -> &'a [u8] {
    let behind = match rest.get(1).copied().and_then(simple_escape) {
        Some(character) => {
            text.push(character);
            &rest[2..]
        }
        None => {
            let (character, width) = escape(rest);
            text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            &rest[width..]
        }
    };
    if behind.first() == Some(&b'\\') {
        return behind;
    }
    let near = behind.first_chunk().and_then(|eight| first_among_eight(*eight, b'\\'));
    let (plain, rest) = behind.split_at(near.unwrap_or(0));
    plain.iter().for_each(|&byte| text.push(byte));
    rest
}

/// The beginning of `bytes`, at most `limit` long (4 or more), that splits no UTF-8 sequence.
fn whole_characters(bytes: &[u8], limit: usize) -> &[u8] {
    if bytes.len() <= limit {
        return bytes;
    }
    // A sequence has at most three continuation bytes; more of them in a row belong to none.
    let within = (limit - 3..=limit).rev().find(|&at| !is_continuation(bytes[at]));
    &bytes[..within.unwrap_or(limit)]
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Gives `bytes` to `take` as UTF-8, with U+FFFD for what is not, as `String::from_utf8_lossy` does. Behind so much of it
/// that it is no text at all, the rest is left out: no engine takes it.
pub(crate) fn valid_parts(bytes: &[u8], take: &mut dyn FnMut(&str) -> bool) -> bool {
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return text.is_empty() || take(text);
    }
    bytes.utf8_chunks().take(MOST_INVALID).all(|chunk| {
        (chunk.valid().is_empty() || take(chunk.valid())) && (chunk.invalid().is_empty() || take("\u{FFFD}"))
    })
}

/// The character that the escape at the beginning of `rest` stands for, and the escape's length.
fn escape(rest: &[u8]) -> (char, usize) {
    if let Some(b'u') = rest.get(1) {
        return unicode_escape(rest);
    }
    let character = rest.get(1).copied().and_then(simple_escape);
    (character.map_or(char::REPLACEMENT_CHARACTER, char::from), rest.len().min(2))
}

/// The ASCII character that a backslash and a letter stand for.
#[inline]
fn simple_escape(letter: u8) -> Option<u8> {
    match letter {
        b'"' | b'\\' | b'/' => Some(letter),
        b'b' => Some(8),
        b'f' => Some(0xC),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        _ => None,
    }
}

/// `\uXXXX`, or two of them that are a surrogate pair.
fn unicode_escape(rest: &[u8]) -> (char, usize) {
    let Some(unit) = code_unit(rest) else {
        return (char::REPLACEMENT_CHARACTER, rest.len().min(2));
    };
    if let (0xD800..=0xDBFF, Some(low @ 0xDC00..=0xDFFF)) = (unit, code_unit(&rest[6..])) {
        let scalar = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        return (char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}

/// The number in `\uXXXX` at the beginning of `rest`.
fn code_unit(rest: &[u8]) -> Option<u32> {
    let &[b'\\', b'u', digits @ ..] = rest.first_chunk::<6>()? else { return None };
    let [a, b, c, d] = digits.map(|digit| u32::from(HEXADECIMAL[usize::from(digit)]));
    (a | b | c | d <= 0xF).then_some(a << 12 | b << 8 | c << 4 | d)
}

/// The value of each byte as a hexadecimal digit; what is none has a bit above the lowest four.
const HEXADECIMAL: [u8; 256] = {
    let mut values = [0x10; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};
