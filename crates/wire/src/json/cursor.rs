//! A place in a JSON text, and the tokens that are read there.

use memchr::memchr2;

use super::{Found, Malformed, RawString};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A place in a JSON text. Reading moves it; what it reads borrows from the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    /// The beginning of `bytes`, behind a byte order mark if there is one.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let at = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        Cursor { bytes, at }
    }

    /// The next byte that is no white space; the cursor comes to stand on it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
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

    /// A string; the cursor stands on its opening quote. Looks only at quotes and backslashes.
    #[inline]
    pub(super) fn string(&mut self) -> Result<RawString<'a>, Malformed> {
        self.at += 1;
        let start = self.at;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    let raw = RawString::new(&self.bytes[start..self.at]);
                    self.at += 1;
                    return Ok(raw);
                }
                // Escapes come in runs (text in an Asian language, escaped to ASCII): no search between them.
                Some(b'\\') => self.escape()?,
                _ => match memchr2(b'"', b'\\', &self.bytes[self.at..]) {
                    Some(distance) => self.at += distance,
                    None => {
                        self.at = self.bytes.len();
                        return Err(self.malformed("a closing `\"`"));
                    }
                },
            }
        }
    }

    /// An escape in a string; the cursor stands on its backslash.
    #[inline]
    fn escape(&mut self) -> Result<(), Malformed> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                self.at += 2;
                for _ in 0..4 {
                    if !self.bytes.get(self.at).is_some_and(u8::is_ascii_hexdigit) {
                        return Err(self.malformed("four hexadecimal digits after `\\u`"));
                    }
                    self.at += 1;
                }
            }
            _ => {
                self.at += 1;
                return Err(self.malformed("one of `\"`, `\\`, `/`, `b`, `f`, `n`, `r`, `t`, `u` after `\\`"));
            }
        }
        Ok(())
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
