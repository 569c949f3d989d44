//! A change of a body at one place, for what the router adds to a request.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::Cursor;

/// A change of a body at one place; every other byte stays as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The bytes that are replaced; an empty range where something is only put in.
    pub replaced: Range<usize>,
    /// What stands there instead.
    pub by: Cow<'static, str>,
}

impl Splice {
    /// Puts a member, `"key":value`, in front of all others of the object that the body is.
    pub(super) fn first_member(body: &[u8], member: &str) -> Splice {
        let mut cursor = Cursor::new(body);
        cursor.peek();
        let separator = if cursor.at_filled_container() { "," } else { "" };
        let at = cursor.offset() + 1;
        Splice { replaced: at..at, by: format!("{member}{separator}").into() }
    }

    /// The body with the change made.
    pub fn apply(&self, body: &[u8]) -> Vec<u8> {
        [&body[..self.replaced.start], self.by.as_bytes(), &body[self.replaced.end..]].concat()
    }
}
