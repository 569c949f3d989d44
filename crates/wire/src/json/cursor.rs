//! A place in a JSON text, and the tokens that are read there.

use memchr::memchr;

use super::{Found, Malformed, RawString, Value};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A place in a JSON text. Reading moves it; what it reads borrows from the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// How many values it has passed one by one.
    pub(super) values: u32,
}

impl<'a> Cursor<'a> {
    /// The beginning of `bytes`, behind a byte order mark if there is one.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let at = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        Cursor { bytes, at, values: 0 }
    }

    /// A place within `bytes`, so far from their beginning.
    pub(crate) fn within(bytes: &'a [u8], at: usize) -> Self {
        Cursor { bytes, at, values: 0 }
    }

    /// Where it is: bytes from the beginning of the text.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// The next byte that is no white space; the cursor comes to stand on it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        if !is_white_space(byte) {
            return Some(byte);
        }
        self.at += 1;
        // Behind a comma or a colon there is one space, if any.
        match self.bytes.get(self.at).copied() {
            Some(byte) if is_white_space(byte) => self.peek_behind_white_space(),
            other => other,
        }
    }

    /// The same where more white space stands, which may be megabytes.
    #[cold]
    fn peek_behind_white_space(&mut self) -> Option<u8> {
        let is_white = |byte: u8| (byte == b' ') | (byte == b'\t') | (byte == b'\n') | (byte == b'\r');
        let blocks = self.bytes[self.at..].as_chunks::<BLOCK>().0.iter();
        self.at +=
            BLOCK * blocks.take_while(|block| block.iter().fold(true, |all, &byte| all & is_white(byte))).count();
        self.at += self.bytes[self.at..].iter().take_while(|&&byte| is_white_space(byte)).count();
        self.bytes.get(self.at).copied()
    }

    /// Passes `wanted` if it comes next, white space aside.
    #[inline]
    pub(super) fn pass(&mut self, wanted: u8) -> bool {
        let passed = self.peek() == Some(wanted);
        self.at += usize::from(passed);
        passed
    }

    /// Nothing but white space follows.
    pub(crate) fn end(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.malformed("the end of the body")),
        }
    }

    /// The error that something else than `expected` stands here.
    pub(crate) fn malformed(&self, expected: &'static str) -> Malformed {
        let found = self.bytes.get(self.at).map_or(Found::End, |&byte| Found::Byte(byte));
        Malformed { offset: self.at, expected, found }
    }

    /// What was passed since `start`, if that is one value.
    pub(crate) fn since(&self, start: usize) -> Value<'a> {
        Value { upto: &self.bytes[..self.at], start }
    }

    /// A string with at least one character begins here. True also when the text breaks off inside it.
    pub(crate) fn at_filled_string(&mut self) -> bool {
        self.peek() == Some(b'"') && self.bytes.get(self.at + 1).is_some_and(|&byte| byte != b'"')
    }

    /// An array or an object with something in it begins here. True also when the text breaks off inside it.
    pub(crate) fn at_filled_container(&mut self) -> bool {
        let mut inside = *self;
        let Some(b'[' | b'{') = inside.peek() else { return false };
        inside.at += 1;
        !matches!(inside.peek(), None | Some(b']' | b'}'))
    }

    /// It has passed so many values that it went on without looking at each: a body of little but brackets, commas and
    /// digits, or of as many token ids.
    pub(crate) fn passed_many(&self) -> bool {
        self.values >= MANY
    }

    /// A string; the cursor stands on its opening quote. Looks only for the quote that closes it: what stands between is
    /// not judged here, and text full of escapes passes as fast as any other.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<RawString<'a>, Malformed> {
        self.at += 1;
        if let Some(length) = short_plain(&self.bytes[self.at..]) {
            let inside = &self.bytes[self.at..self.at + length];
            self.at += length + 1;
            return Ok(RawString::plain(inside));
        }
        self.long_string()
    }

    /// A string that is not short, or holds escapes; the cursor stands behind its opening quote.
    fn long_string(&mut self) -> Result<RawString<'a>, Malformed> {
        let start = self.at;
        while let Some(distance) = memchr(b'"', &self.bytes[self.at..]) {
            let inside = &self.bytes[start..self.at + distance];
            self.at += distance + 1;
            // A quote is escaped by an odd number of backslashes: each pair of them is one that stands for itself.
            let backslashes = inside.iter().rev().take_while(|&&byte| byte == b'\\').count();
            if backslashes % 2 == 0 {
                return Ok(RawString::new(inside));
            }
            // Where one quote is escaped, others follow: passed at once, they cost less than to be searched for.
            let pairs = self.bytes[self.at..].as_chunks::<2>().0;
            self.at += 2 * pairs.iter().take_while(|pair| pair[0] == b'\\').count();
        }
        self.at = self.bytes.len();
        Err(self.malformed("a closing `\"`"))
    }

    /// A number, or `-Infinity`; the cursor stands on its first byte.
    #[inline]
    pub(super) fn number(&mut self) -> Result<(), Malformed> {
        if self.bytes[self.at] == b'-' {
            self.at += 1;
            if self.bytes.get(self.at) == Some(&b'I') {
                return self.word(b"Infinity");
            }
        }
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// One digit or more.
    #[inline]
    fn digits(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while let Some(&eight) = self.bytes[self.at..].first_chunk::<8>() {
            let digits = leading_digits(eight);
            self.at += digits;
            if digits < 8 {
                break;
            }
        }
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { Err(self.malformed("a digit")) } else { Ok(()) }
    }

    /// The literal `word`; its first letter is already known to stand here.
    pub(super) fn word(&mut self, word: &'static [u8]) -> Result<(), Malformed> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(self.malformed("`true`, `false`, `null`, `NaN` or `Infinity`"));
        }
        self.at += word.len();
        Ok(())
    }
}

/// How much white space is passed at once where it goes on, in bytes.
const BLOCK: usize = 32;

#[inline]
fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// How many values are passed one by one. Beyond, only where the outermost of them ends is looked for.
const MANY: u32 = 1 << 17;

/// A one in each of eight bytes.
const EACH: u64 = 0x0101_0101_0101_0101;

/// How many of eight bytes are digits before the first that is not. All at once and without a branch: lengths of token
/// ids cannot be predicted.
#[inline]
fn leading_digits(bytes: [u8; 8]) -> usize {
    // A digit becomes its value; adding 0x76 sets the high bit of whatever is 10 or more.
    let values = u64::from_le_bytes(bytes) ^ (EACH * 0x30);
    let others = ((values & (EACH * 0x7F)) + EACH * 0x76) | values;
    (others & (EACH * 0x80)).trailing_zeros() as usize / 8
}

/// The length of the string whose closing quote is among the first [`SHORT`] bytes, if no backslash stands before it.
/// Most strings of a request are keys, roles and other words: a search would take longer to begin than this to end.
#[inline]
fn short_plain(bytes: &[u8]) -> Option<usize> {
    for (word, eight) in bytes.as_chunks::<8>().0.iter().take(SHORT / 8).enumerate() {
        let eight = u64::from_le_bytes(*eight);
        let found = zero_bytes(eight ^ (EACH * b'"' as u64)) | zero_bytes(eight ^ (EACH * b'\\' as u64));
        if found != 0 {
            let at = word * 8 + found.trailing_zeros() as usize / 8;
            return (bytes[at] == b'"').then_some(at);
        }
    }
    None
}

/// How far strings are looked at by eight bytes.
const SHORT: usize = 32;

/// Where a byte stands among eight for the first time.
#[inline]
pub(super) fn first_among_eight(eight: [u8; 8], wanted: u8) -> Option<usize> {
    let found = zero_bytes(u64::from_le_bytes(eight) ^ (EACH * u64::from(wanted)));
    (found != 0).then_some(found.trailing_zeros() as usize / 8)
}

/// Sets the high bit of bytes that are zero. The lowest bit that is set is right; above it others may be set too.
#[inline]
fn zero_bytes(eight: u64) -> u64 {
    eight.wrapping_sub(EACH) & !eight & (EACH * 0x80)
}
