//! What is noted of a response while it passes: the first token, the usage, the response's id. It never changes a byte.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use isotherm_wire::usage::Usage;
use isotherm_wire::{response, sse};

/// Watches the body of one response.
#[derive(Debug)]
pub(crate) enum Watch {
    /// Server-sent events.
    Events(Box<sse::Scanner>),
    /// One JSON text.
    Json(Box<response::Scanner>),
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
            Watch::Json(Box::default())
        } else {
            Watch::Opaque
        }
    }

    /// Looks at the next piece.
    pub(crate) fn scan(&mut self, piece: &[u8]) {
        match self {
            Watch::Events(scanner) => scanner.scan(piece),
            Watch::Json(scanner) => scanner.scan(piece),
            Watch::Opaque => {}
        }
    }

    /// The body has ended.
    pub(crate) fn end(&mut self) {
        if let Watch::Events(scanner) = self {
            scanner.end();
        }
    }

    /// Whether a generated token has passed; only streams tell.
    pub(crate) fn first_token_seen(&self) -> bool {
        matches!(self, Watch::Events(scanner) if scanner.first_token_seen())
    }

    /// The usage, as far as it has passed.
    pub(crate) fn usage(&self) -> Option<Usage> {
        match self {
            Watch::Events(scanner) => scanner.usage(),
            Watch::Json(scanner) => scanner.usage(),
            Watch::Opaque => None,
        }
    }

    /// The id under which the response may be stored, once it has passed.
    pub(crate) fn response_id(&self) -> Option<&str> {
        match self {
            Watch::Events(scanner) => scanner.response_id(),
            Watch::Json(scanner) => scanner.id(),
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
}
