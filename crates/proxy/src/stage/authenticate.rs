//! The second stage: who asks. Covers every path but those that only say whether the router is well.

use http::header::{AUTHORIZATION, HeaderMap};

use super::accept::Accepted;
use super::finish::Record;
use crate::headers::API_KEY;
use crate::rescue::Failure;

/// A request whose sender may ask; the record knows whose key it came with.
#[derive(Debug)]
pub(crate) struct Authenticated {
    /// The request.
    pub(crate) request: Accepted,
    /// Whether the client's credentials pass to the instance: only where the router does not authenticate.
    pub(crate) credentials_pass: bool,
}

/// Lets a request in, or says why not.
pub(crate) fn authenticate(request: Accepted, record: &mut Record) -> Result<Authenticated, Failure> {
    let Some(keys) = &record.rules.keys else {
        return Ok(Authenticated { request, credentials_pass: true });
    };
    if !request.route.is_health() {
        let token = token(&request.head.headers).ok_or(Failure::NoKey)?;
        record.principal = Some(keys.authenticate(token).ok_or(Failure::UnknownKey)?);
    }
    Ok(Authenticated { request, credentials_pass: false })
}

/// The credential as OpenAI's clients send it, or as Anthropic's do.
fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.as_bytes().split_at_checked("Bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
    });
    bearer.or_else(|| headers.get(API_KEY).map(|value| value.as_bytes())).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &'static str, value: &'static str) -> Option<Vec<u8>> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        token(&headers).map(<[u8]>::to_vec)
    }

    #[test]
    fn both_forms_of_credentials_are_read() {
        assert_eq!(of("authorization", "Bearer sk-1"), Some(b"sk-1".to_vec()));
        assert_eq!(of("authorization", "bearer  sk-1 "), Some(b"sk-1".to_vec()));
        assert_eq!(of("x-api-key", "sk-1"), Some(b"sk-1".to_vec()));
    }

    #[test]
    fn anything_else_is_no_credential() {
        for value in ["", "Bearer ", "Bearer", "Basic c2stMQ==", "sk-1", "é"] {
            assert_eq!(of("authorization", value), None, "{value:?}");
        }
    }
}
