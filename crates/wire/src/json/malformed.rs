//! What is wrong with a JSON text, and where.

use std::fmt;

/// A text that is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid JSON at byte {offset}: expected {expected}, found {found}")]
pub struct Malformed {
    /// Where: bytes from the beginning of the body.
    pub offset: usize,
    /// What would have been right there.
    pub expected: &'static str,
    /// What stands there.
    pub found: Found,
}

/// What stands where something else was expected. One byte at most, so that no error repeats a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nothing: the body ends here.
    End,
    /// A byte.
    Byte(u8),
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::End => formatter.write_str("the end of the body"),
            Found::Byte(byte) if byte.is_ascii_graphic() => write!(formatter, "`{}`", char::from(*byte)),
            Found::Byte(byte) => write!(formatter, "the byte 0x{byte:02x}"),
        }
    }
}
