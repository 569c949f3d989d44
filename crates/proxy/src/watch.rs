//! What is noted of a response while it passes: the first token, the usage, the response's id. It never changes a byte.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use isotherm_wire::usage::Usage;
use isotherm_wire::{response, sse};

/// Watches the body of one response.
#[derive(Debug)]
pub(crate) enum Watch {
    /// Server-sent events.
    Events(Box<sse::Scanner>),
    /// One JSON text of which no piece has come, or one: most come in one, which is read at the end where it is.
    Json(Bytes),
    /// One JSON text that comes in several pieces.
    JsonInPieces(Box<response::Scanner>),
    /// Compressed, or of a type that says nothing.
    Opaque,
}

impl Watch {
    /// The watch for a response with this head.
    pub(crate) fn of(headers: &HeaderMap) -> Watch {
        let identity = |coding: &http::HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
        if !headers.get(CONTENT_ENCODING).is_none_or(identity) {
            return Watch::Opaque;
        }
        let media_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let media_type = media_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        if media_type.eq_ignore_ascii_case(b"text/event-stream") {
            Watch::Events(Box::default())
        } else if media_type.eq_ignore_ascii_case(b"application/json") {
            Watch::Json(Bytes::new())
        } else {
            Watch::Opaque
        }
    }

    /// Looks at the next piece.
    pub(crate) fn scan(&mut self, piece: &Bytes) {
        match self {
            Watch::Events(scanner) => scanner.scan(piece),
            Watch::Json(first) if first.is_empty() => *first = piece.clone(),
            Watch::Json(first) => {
                let mut scanner = Box::new(response::Scanner::new());
                scanner.scan(first);
                scanner.scan(piece);
                *self = Watch::JsonInPieces(scanner);
            }
            Watch::JsonInPieces(scanner) => scanner.scan(piece),
            Watch::Opaque => {}
        }
    }

    /// The body has ended.
    pub(crate) fn end(&mut self) {
        if let Watch::Events(scanner) = self {
            scanner.end();
        }
    }

    /// Whether all has passed that a client waits for, though the body may not have ended; only streams tell.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self, Watch::Events(scanner) if scanner.done_seen() && scanner.between_events())
    }

    /// Whether a generated token has passed; only streams tell.
    pub(crate) fn first_token_seen(&self) -> bool {
        matches!(self, Watch::Events(scanner) if scanner.first_token_seen())
    }

    /// The usage, as far as it has passed.
    pub(crate) fn usage(&self) -> Option<Usage> {
        match self {
            Watch::Events(scanner) => scanner.usage(),
            Watch::Json(whole) => Usage::from_json(whole),
            Watch::JsonInPieces(scanner) => scanner.usage(),
            Watch::Opaque => None,
        }
    }

    /// The id under which the response may be stored, once it has passed.
    pub(crate) fn response_id(&self) -> Option<String> {
        match self {
            Watch::Events(scanner) => scanner.response_id().map(str::to_owned),
            Watch::Json(first) => {
                let mut scanner = response::Scanner::new();
                scanner.scan(first);
                scanner.id().map(str::to_owned)
            }
            Watch::JsonInPieces(scanner) => scanner.id().map(str::to_owned),
            Watch::Opaque => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(content_type: &str, coding: Option<&str>) -> Watch {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
        if let Some(coding) = coding {
            headers.insert(CONTENT_ENCODING, coding.parse().unwrap());
        }
        Watch::of(&headers)
    }

    #[test]
    fn only_what_can_be_read_is_watched() {
        assert!(matches!(watch("text/event-stream; charset=utf-8", None), Watch::Events(_)));
        assert!(matches!(watch("Application/JSON", Some("identity")), Watch::Json(_)));
        assert!(matches!(watch("text/event-stream", Some("gzip")), Watch::Opaque));
        assert!(matches!(watch("audio/mpeg", None), Watch::Opaque));
        assert!(matches!(Watch::of(&HeaderMap::new()), Watch::Opaque));
    }

    #[test]
    fn a_json_text_tells_its_usage_however_it_is_cut() {
        let text = br#"{"id":"resp_1","usage":{"prompt_tokens":9,"completion_tokens":2}}"#;
        for size in [1, 7, text.len()] {
            let mut watch = watch("application/json", None);
            for piece in text.chunks(size) {
                watch.scan(&Bytes::copy_from_slice(piece));
            }
            watch.end();
            assert_eq!(watch.response_id().as_deref(), Some("resp_1"), "pieces of {size}");
            let usage = watch.usage().unwrap();
            assert_eq!((usage.prompt_tokens, usage.completion_tokens), (Some(9), Some(2)), "pieces of {size}");
        }
    }
}
