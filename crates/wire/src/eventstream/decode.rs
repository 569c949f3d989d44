//! Reading frames back, as a client does.

use std::ops::Range;

use super::{CHECKSUM, PRELUDE, TEXT};

/// The longest frame that clients take.
const LONGEST_FRAME: usize = 16 << 20;

/// One frame, its checksums verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Names and values, in their order.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The payload.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// Bytes that are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// The lengths contradict each other, or a client's bound.
    #[error("a frame's lengths do not fit together: it is at least 16 bytes and below 16 MiB, and holds its headers")]
    Lengths,
    /// A checksum is wrong.
    #[error("a frame's checksum is wrong")]
    Checksum,
    /// A header goes beyond the headers' end, is not text, or is not UTF-8.
    #[error("a frame's header is cut short or is not UTF-8 text")]
    Header,
}

/// The first frame of `bytes`, and how many bytes it takes; `None` while it is not whole.
///
/// # Errors
///
/// [`BadFrame`] when no further bytes could make it one.
pub fn decode(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, BadFrame> {
    let Some(prelude) = bytes.get(..PRELUDE) else { return Ok(None) };
    if number(prelude, 8..12) != crc32fast::hash(&prelude[..8]) {
        return Err(BadFrame::Checksum);
    }
    let (total, header_length) = (number(prelude, 0..4) as usize, number(prelude, 4..8) as usize);
    if !(PRELUDE + CHECKSUM..LONGEST_FRAME).contains(&total) || header_length > total - PRELUDE - CHECKSUM {
        return Err(BadFrame::Lengths);
    }
    let Some(frame) = bytes.get(..total) else { return Ok(None) };
    let (content, checksum) = frame.split_at(total - CHECKSUM);
    if number(checksum, 0..4) != crc32fast::hash(content) {
        return Err(BadFrame::Checksum);
    }
    let (headers, payload) = content[PRELUDE..].split_at(header_length);
    Ok(Some((Frame { headers: all_headers(headers)?, payload }, total)))
}

fn all_headers(mut rest: &[u8]) -> Result<Vec<(&str, &str)>, BadFrame> {
    let mut headers = Vec::new();
    while let Some((&name_length, after)) = rest.split_first() {
        let (name, after) = text(after, usize::from(name_length))?;
        let (kind, after) = after.split_first().ok_or(BadFrame::Header)?;
        let (length, after) = after.split_at_checked(2).ok_or(BadFrame::Header)?;
        if *kind != TEXT {
            return Err(BadFrame::Header);
        }
        let (value, after) = text(after, usize::from(u16::from_be_bytes([length[0], length[1]])))?;
        headers.push((name, value));
        rest = after;
    }
    Ok(headers)
}

fn text(bytes: &[u8], length: usize) -> Result<(&str, &[u8]), BadFrame> {
    let (text, rest) = bytes.split_at_checked(length).ok_or(BadFrame::Header)?;
    Ok((std::str::from_utf8(text).map_err(|_| BadFrame::Header)?, rest))
}

/// A number in network order.
fn number(bytes: &[u8], place: Range<usize>) -> u32 {
    bytes[place].iter().fold(0, |number, &byte| number << 8 | u32::from(byte))
}
