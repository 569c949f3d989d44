//! Walking the members of an object and the elements of an array, one at a time.

use super::{Cursor, Malformed, Name, RawString};

impl<'a> Cursor<'a> {
    /// Enters the object that begins here; `None`, without moving, when something else does.
    pub(crate) fn members(&mut self) -> Option<Members<'_, 'a>> {
        self.pass(b'{').then_some(Members { cursor: self, state: Walk::Entered })
    }

    /// In front of a key: reads its value, and is right to do so if nothing but further members follows it up to the end of
    /// the text. Then the object is the outermost one.
    pub(crate) fn last_members(
        &mut self,
        read: impl FnOnce(&mut Cursor<'a>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let mut members = Members { cursor: self, state: Walk::Entered };
        members.next_key()?;
        read(members.cursor())?;
        while members.next_key()?.is_some() {}
        self.end()
    }

    /// Enters the array that begins here; `None`, without moving, when something else does.
    pub(crate) fn elements(&mut self) -> Option<Elements<'_, 'a>> {
        self.pass(b'[').then_some(Elements { cursor: self, state: Walk::Entered })
    }

    /// Passes over one value and returns it.
    pub(crate) fn value(&mut self) -> Result<Value<'a>, Malformed> {
        self.peek();
        let start = self.at;
        self.skip_value()?;
        Ok(self.since(start))
    }
}

/// How far a walk through a container has come.
#[derive(Debug, Clone, Copy)]
enum Walk {
    /// Behind the opening bracket.
    Entered,
    /// In front of the value that begins at this offset, if the cursor still stands there; else behind it.
    Value(usize),
    /// Behind the closing bracket.
    Left,
}

/// A walk through an object. The value of each key may be read or left: what is left is passed over.
#[derive(Debug)]
pub(crate) struct Members<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    state: Walk,
}

impl<'a> Members<'_, 'a> {
    /// The next key; `None` behind the last.
    pub(crate) fn next_key(&mut self) -> Result<Option<RawString<'a>>, Malformed> {
        if !step(self.cursor, &mut self.state, b'}', "`,` or `}`")? {
            return Ok(None);
        }
        if self.cursor.peek() != Some(b'"') {
            return Err(self.cursor.malformed("a key in double quotes"));
        }
        let key = self.cursor.string()?;
        self.cursor.colon()?;
        self.cursor.peek();
        self.state = Walk::Value(self.cursor.at);
        Ok(Some(key))
    }

    /// The value of the last key.
    pub(crate) fn value(&mut self) -> Result<Value<'a>, Malformed> {
        self.cursor.value()
    }

    /// In front of the value of the last key, to be read at once or left.
    pub(crate) fn cursor(&mut self) -> &mut Cursor<'a> {
        self.cursor
    }
}

/// A walk through an array. Each element may be read or left: what is left is passed over.
#[derive(Debug)]
pub(crate) struct Elements<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    state: Walk,
}

impl<'a> Elements<'_, 'a> {
    /// In front of the next element; `None` behind the last.
    pub(crate) fn next_element(&mut self) -> Result<Option<&mut Cursor<'a>>, Malformed> {
        if !step(self.cursor, &mut self.state, b']', "`,` or `]`")? {
            return Ok(None);
        }
        self.cursor.peek();
        self.state = Walk::Value(self.cursor.at);
        Ok(Some(self.cursor))
    }
}

/// Goes on to the next member or element: true when there is one.
fn step(cursor: &mut Cursor<'_>, state: &mut Walk, close: u8, expected: &'static str) -> Result<bool, Malformed> {
    match *state {
        Walk::Left => return Ok(false),
        Walk::Entered => {
            if !cursor.pass(close) {
                return Ok(true);
            }
        }
        Walk::Value(start) => {
            if cursor.at == start {
                cursor.skip_value()?;
            }
            if cursor.pass(b',') {
                return Ok(true);
            }
            if !cursor.pass(close) {
                return Err(cursor.malformed(expected));
            }
        }
    }
    *state = Walk::Left;
    Ok(false)
}

/// A whole value inside a JSON text, not yet looked into. Offsets of errors stay those of the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'a> {
    /// The text up to the value's end.
    pub(super) upto: &'a [u8],
    /// Where the value begins.
    pub(super) start: usize,
}

impl<'a> Value<'a> {
    /// In front of the value.
    pub(crate) fn cursor(self) -> Cursor<'a> {
        Cursor::within(self.upto, self.start)
    }

    /// The value as it is written.
    pub(crate) fn bytes(self) -> &'a [u8] {
        &self.upto[self.start..]
    }

    /// Where the value stands in the text.
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start..self.upto.len()
    }

    /// The string that this is, if it is one.
    pub(crate) fn string(self) -> Option<RawString<'a>> {
        let inside = self.bytes().strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        Some(RawString::new(inside))
    }

    /// It is `true`.
    pub(crate) fn is_true(self) -> bool {
        self.bytes() == b"true"
    }

    /// The number that this is, if it is a whole one from 0 to 2⁶⁴ − 1, written without fraction and exponent.
    pub(crate) fn integer(self) -> Option<u64> {
        // A sign or a quote is no digit, so `parse` sees what JSON calls an integer only.
        let digits = self.bytes();
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// The number that this is, if it is a whole one that 64 bits hold with its sign.
    pub(crate) fn signed_integer(self) -> Option<i64> {
        let digits = self.bytes();
        let (sign, digits) = digits.strip_prefix(b"-").map_or(("", digits), |digits| ("-", digits));
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        format!("{sign}{}", std::str::from_utf8(digits).ok()?).parse().ok()
    }

    /// The value of the last member called `name`, if this is an object that has one. Of an object with more members than
    /// anybody writes none is looked at.
    pub(crate) fn member(self, name: &[u8]) -> Result<Option<Value<'a>>, Malformed> {
        let mut found = None;
        let mut cursor = self.cursor();
        let mut space = Name::default();
        if let Some(mut members) = cursor.members() {
            while let Some(key) = members.next_key()? {
                if members.cursor().passed_many() {
                    return Ok(None);
                }
                if key.name(&mut space) == name {
                    found = Some(members.value()?);
                }
            }
        }
        Ok(found)
    }
}
