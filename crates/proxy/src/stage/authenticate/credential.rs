//! What a request brings to say who sends it.

use http::header::{AUTHORIZATION, HeaderMap};
use http::request::Parts;
use isotherm_wire::sigv4::{BearerToken, Claim, Refusal};

use crate::headers::API_KEY;

/// A credential, not yet proven.
pub(super) enum Credential<'h> {
    /// A key of the router's own.
    Opaque(&'h [u8]),
    /// One of SageMaker's bearer tokens.
    Token(BearerToken),
    /// A signature of AWS's kind.
    Signature(Claim),
}

impl Credential<'_> {
    /// The credential of a request; `None` where it brings none.
    pub(super) fn of(head: &Parts) -> Result<Option<Credential<'_>>, Refusal> {
        if let Some(claim) = Claim::of(head)? {
            return Ok(Some(Credential::Signature(claim)));
        }
        match token(&head.headers) {
            Some(token) if BearerToken::is_meant(token) => Ok(Some(Credential::Token(BearerToken::parse(token)?))),
            token => Ok(token.map(Credential::Opaque)),
        }
    }
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
