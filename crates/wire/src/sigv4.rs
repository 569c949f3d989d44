//! AWS Signature Version 4: who signed a request, and whether they did.
//!
//! The rules are those of AWS's "Signature Version 4 signing process", as far as SageMaker's clients use them: headers
//! or a presigned query, one chunk, HMAC. A [`Claim`] is what a request says of itself. It is checked before the body is
//! read ([`Claim::check_service`], [`Claim::check_time`]), so that only a holder's body is waited for, and proven with the
//! body and the secret ([`Claim::verify`]).

mod bearer;
mod canonical;
mod claim;
mod instant;
mod query;
mod refusal;
mod signature;

use std::time::{Duration, SystemTime};

use http::request::Parts;

pub use self::bearer::BearerToken;
use self::canonical::{canonical_request, signed_payload};
use self::instant::Instant;
pub(crate) use self::query::{pairs as form_pairs, parameter as form_parameter};
pub use self::refusal::Refusal;
use self::signature::{Scope, Signature, sign};

/// How far a signature's time may be from the router's, either way.
const SKEW: Duration = Duration::from_secs(15 * 60);

/// What a signed request says of itself. Nothing of it is to be believed before [`Claim::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    scope: Scope,
    signed_at: Instant,
    /// How long a presigned request may be used; a request with signed headers may be for [`SKEW`].
    expires: Option<Duration>,
    /// In the client's order, lower case.
    signed_headers: Vec<String>,
    signature: Signature,
}

impl Claim {
    /// The claim in the head of a request: its `Authorization` header, or its query if that is presigned. `None` where
    /// nothing is signed this way.
    ///
    /// # Errors
    ///
    /// [`Refusal::Incomplete`] and its kin: it claims to be signed and does not say how.
    pub fn of(head: &Parts) -> Result<Option<Claim>, Refusal> {
        claim::read(head)
    }

    /// The access key's id.
    pub fn access_key(&self) -> &str {
        &self.scope.access_key
    }

    /// The region that it was signed for.
    pub fn region(&self) -> &str {
        &self.scope.region
    }

    /// The name of the service that it was signed for.
    pub fn service(&self) -> &str {
        &self.scope.service
    }

    /// Whether it stands in the query, and not in the headers.
    pub fn is_presigned(&self) -> bool {
        self.expires.is_some()
    }

    /// Whether it was signed for this service, by its signing name.
    ///
    /// # Errors
    ///
    /// [`Refusal::WrongService`].
    pub fn check_service(&self, service: &str) -> Result<(), Refusal> {
        if self.scope.service == service { Ok(()) } else { Err(Refusal::WrongService(service.to_owned())) }
    }

    /// Whether it may be used now: within 15 minutes of its signing, or, presigned, until it expires.
    ///
    /// # Errors
    ///
    /// [`Refusal::Expired`], [`Refusal::NotYet`].
    pub fn check_time(&self, now: SystemTime) -> Result<(), Refusal> {
        let now = Instant::from(now);
        if self.signed_at > now + SKEW {
            return Err(Refusal::NotYet { signed_at: self.signed_at.to_string(), now: now.to_string() });
        }
        let expired = match self.expires {
            None => self.signed_at < now - SKEW,
            Some(expires) => self.signed_at + expires < now,
        };
        match (expired, self.expires) {
            (false, _) => Ok(()),
            (true, None) => Err(Refusal::Expired {
                signed_at: self.signed_at.to_string(),
                earliest: (now - SKEW).to_string(),
                now: now.to_string(),
            }),
            (true, Some(expires)) => {
                Err(Refusal::PresignedExpired { at: (self.signed_at + expires).to_string(), now: now.to_string() })
            }
        }
    }

    /// Whether the holder of `secret` signed this head and this body, as they came (compressed if it came so). Compares
    /// in constant time.
    ///
    /// # Errors
    ///
    /// [`Refusal::Unsigned`] when something that matters is not part of the signature, [`Refusal::Payload`] when the body
    /// is not the one that was signed, [`Refusal::Mismatch`] when anything else is not.
    pub fn verify(&self, head: &Parts, body: &[u8], secret: &str) -> Result<(), Refusal> {
        let payload = signed_payload(head, body)?;
        let request = canonical_request(head, &self.signed_headers, &payload)?;
        let expected = sign(secret, &self.scope, self.signed_at, &request);
        if expected == self.signature { Ok(()) } else { Err(Refusal::Mismatch) }
    }
}

#[cfg(test)]
mod tests;
