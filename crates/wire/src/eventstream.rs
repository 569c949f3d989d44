//! Frames of `application/vnd.amazon.eventstream`, in which SageMaker's streaming responses come.
//!
//! A frame is `total length | headers' length | CRC of these eight bytes | headers | payload | CRC of all before it`,
//! numbers in network order, CRC-32 as zlib has it. A header is `name's length | name | type | value's length | value`;
//! of the types only text (7) occurs here.

mod decode;

use crc32fast::Hasher;

pub use decode::{BadFrame, Frame, decode};

/// The media type of a response in frames.
pub const MEDIA_TYPE: &str = "application/vnd.amazon.eventstream";

/// The most bytes of payload that one frame carries: clients take frames below 16 MiB.
pub const LONGEST_PAYLOAD: usize = 8 << 20;

/// Length of the prelude: two lengths and their checksum.
const PRELUDE: usize = 12;
/// Length of the checksum at the end.
const CHECKSUM: usize = 4;
/// The type of a header whose value is text.
const TEXT: u8 = 7;

/// An error by which a stream ends that has begun, as SageMaker's model has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamException {
    /// `ModelStreamError`: the container's stream broke off.
    StreamBroken,
    /// `ModelStreamError`: the container took too long.
    ModelInvocationTimeExceeded,
    /// `InternalStreamFailure`: the router cannot go on.
    InternalFailure,
}

impl StreamException {
    /// The value of `:exception-type`, by which clients choose the exception.
    pub fn name(self) -> &'static str {
        match self {
            StreamException::StreamBroken | StreamException::ModelInvocationTimeExceeded => "ModelStreamError",
            StreamException::InternalFailure => "InternalStreamFailure",
        }
    }

    /// `ErrorCode` of the payload, where the exception has one.
    pub fn code(self) -> Option<&'static str> {
        match self {
            StreamException::StreamBroken => Some("StreamBroken"),
            StreamException::ModelInvocationTimeExceeded => Some("ModelInvocationTimeExceeded"),
            StreamException::InternalFailure => None,
        }
    }
}

/// Appends bytes of a container's response as `PayloadPart` events: one, or several where one would be too long; none
/// for no bytes.
pub fn payload_parts(bytes: &[u8], out: &mut Vec<u8>) {
    const HEADERS: [(&str, &str); 3] =
        [(":event-type", "PayloadPart"), (":content-type", "application/octet-stream"), (":message-type", "event")];
    for part in bytes.chunks(LONGEST_PAYLOAD) {
        frame(&HEADERS, part, out);
    }
}

/// Appends an exception of the model: the last frame of a stream that broke off.
pub fn exception(exception: StreamException, message: &str, out: &mut Vec<u8>) {
    let headers =
        [(":exception-type", exception.name()), (":content-type", "application/json"), (":message-type", "exception")];
    let payload = match exception.code() {
        Some(code) => serde_json::json!({ "Message": message, "ErrorCode": code }),
        None => serde_json::json!({ "Message": message }),
    };
    frame(&headers, payload.to_string().as_bytes(), out);
}

/// Appends an error that no model knows, such as a fault of the router.
pub fn error(code: &str, message: &str, out: &mut Vec<u8>) {
    frame(&[(":message-type", "error"), (":error-code", code), (":error-message", message)], &[], out);
}

/// Appends one frame. Names are cut to 255 bytes and values to 65,535: longer ones have no room in a header.
fn frame(headers: &[(&str, &str)], payload: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let header_length: usize =
        headers.iter().map(|(name, value)| 4 + cut(name, 255).len() + cut(value, 65_535).len()).sum();
    let total = PRELUDE + header_length + payload.len() + CHECKSUM;
    out.reserve(total);
    out.extend_from_slice(&(total as u32).to_be_bytes());
    out.extend_from_slice(&(header_length as u32).to_be_bytes());
    let checksum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&checksum.to_be_bytes());
    for (name, value) in headers {
        let (name, value) = (cut(name, 255), cut(value, 65_535));
        out.push(name.len() as u8);
        out.extend_from_slice(name.as_bytes());
        out.push(TEXT);
        out.extend_from_slice(&(value.len() as u16).to_be_bytes());
        out.extend_from_slice(value.as_bytes());
    }
    out.extend_from_slice(payload);
    let mut hasher = Hasher::new();
    hasher.update(&out[start..]);
    out.extend_from_slice(&hasher.finalize().to_be_bytes());
}

/// The beginning of a text, at most so many bytes.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests;
