//! SageMaker's bearer tokens: a presigned request in base64, which proves its holder's key and nothing else.
//!
//! The form is that of sagemaker-core's `token_generator`: whoever holds one may call until it expires, whatever the
//! body and the endpoint.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::SKEW;
use super::claim::{scope, signature};
use super::instant::Instant;
use super::query::{canonical_query, parameter};
use super::refusal::Refusal;
use super::signature::{ALGORITHM, Scope, Signature, payload_hash, sign};

/// What every token begins with.
const PREFIX: &str = "sagemaker-api-key-";
/// The request that a token holds goes to this host, whatever the router's own name.
const HOST: &str = "sagemaker.amazonaws.com";
/// Tokens are good for twelve hours at the most.
const LONGEST_LIFE: u64 = 12 * 60 * 60;

/// A bearer token as it came. Nothing of it is to be believed before [`BearerToken::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BearerToken {
    scope: Scope,
    signed_at: Instant,
    expires: Duration,
    signature: Signature,
    /// What is signed of it.
    query: String,
}

impl BearerToken {
    /// Whether a credential is meant as such a token.
    pub fn is_meant(credential: &[u8]) -> bool {
        credential.starts_with(PREFIX.as_bytes())
    }

    /// Reads a token.
    ///
    /// # Errors
    ///
    /// [`Refusal::BadToken`] for anything that the token generator would not make.
    pub fn parse(credential: &[u8]) -> Result<BearerToken, Refusal> {
        BearerToken::read(credential).ok_or(Refusal::BadToken)
    }

    fn read(credential: &[u8]) -> Option<BearerToken> {
        let encoded = credential.strip_prefix(PREFIX.as_bytes())?;
        let decoded = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
        let query = decoded.strip_prefix(HOST)?.strip_prefix("/?")?;
        let is = |name: &str, value: &str| parameter(query, name).as_deref() == Some(value);
        if !(is("Action", "CallWithBearerToken")
            && is("X-Amz-Algorithm", ALGORITHM)
            && is("X-Amz-SignedHeaders", "host"))
        {
            return None;
        }
        let scope = scope(&parameter(query, "X-Amz-Credential")?).ok()?;
        let signed_at = Instant::parse(&parameter(query, "X-Amz-Date")?)?;
        let seconds: u64 = parameter(query, "X-Amz-Expires")?.parse().ok()?;
        let sound =
            (1..=LONGEST_LIFE).contains(&seconds) && scope.service == "sagemaker" && scope.day == signed_at.day();
        sound.then_some(())?;
        Some(BearerToken {
            signed_at,
            expires: Duration::from_secs(seconds),
            signature: signature(&parameter(query, "X-Amz-Signature")?).ok()?,
            query: canonical_query(query, &["X-Amz-Signature", "Version"]),
            scope,
        })
    }

    /// The id of the access key that made it.
    pub fn access_key(&self) -> &str {
        &self.scope.access_key
    }

    /// The region that it was made for.
    pub fn region(&self) -> &str {
        &self.scope.region
    }

    /// Whether it may be used now. A clock that is up to 15 minutes ahead is forgiven, as it is with signatures.
    ///
    /// # Errors
    ///
    /// [`Refusal::TokenExpired`], [`Refusal::NotYet`].
    pub fn check_time(&self, now: SystemTime) -> Result<(), Refusal> {
        let now = Instant::from(now);
        if self.signed_at > now + SKEW {
            return Err(Refusal::NotYet { signed_at: self.signed_at.to_string(), now: now.to_string() });
        }
        if self.signed_at + self.expires < now { Err(Refusal::TokenExpired) } else { Ok(()) }
    }

    /// Whether the holder of `secret` made it. Compares in constant time.
    ///
    /// # Errors
    ///
    /// [`Refusal::Mismatch`].
    pub fn verify(&self, secret: &str) -> Result<(), Refusal> {
        let request = format!("POST\n/\n{}\nhost:{HOST}\n\nhost\n{}", self.query, payload_hash(b""));
        let expected = sign(secret, &self.scope, self.signed_at, request.as_bytes());
        if expected == self.signature { Ok(()) } else { Err(Refusal::Mismatch) }
    }
}
