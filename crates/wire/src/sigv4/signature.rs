//! The signature itself: the key that follows from a secret, and what is signed with it.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::instant::Instant;

/// The name of the one algorithm.
pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// What every scope ends with.
pub(super) const TERMINATOR: &str = "aws4_request";

/// Whose signature it is and what it is good for: `KEY/DAY/REGION/SERVICE/aws4_request`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) access_key: String,
    pub(super) day: String,
    pub(super) region: String,
    pub(super) service: String,
}

/// A signature, compared in constant time.
#[derive(Clone, Copy, Eq)]
pub(super) struct Signature([u8; 32]);

impl Signature {
    /// Reads 64 hexadecimal digits.
    pub(super) fn parse(digits: &str) -> Option<Signature> {
        let mut signature = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in signature.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            let digit = |character: u8| char::from(character).to_digit(16);
            *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
        }
        Some(Signature(signature))
    }
}

impl PartialEq for Signature {
    fn eq(&self, other: &Signature) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// Does not tell it: for as long as it is good, it is as good as the secret for this request.
impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature(…)")
    }
}

/// The signature of a canonical request by the holder of the secret.
pub(super) fn sign(secret: &str, scope: &Scope, signed_at: Instant, canonical_request: &[u8]) -> Signature {
    let Scope { day, region, service, .. } = scope;
    let mut key = mac(format!("AWS4{secret}").as_bytes(), day.as_bytes());
    for part in [region.as_str(), service, TERMINATOR] {
        key = mac(&key, part.as_bytes());
    }
    let hash = hex(&Sha256::digest(canonical_request));
    let text = format!("{ALGORITHM}\n{signed_at}\n{day}/{region}/{service}/{TERMINATOR}\n{hash}");
    Signature(mac(&key, text.as_bytes()))
}

fn mac(key: &[u8], message: &[u8]) -> [u8; 32] {
    // HMAC takes a key of any length (RFC 2104), so there is no error to come; an empty one would match nothing.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// The hash of a payload, as it stands in a canonical request.
pub(super) fn payload_hash(payload: &[u8]) -> String {
    hex(&Sha256::digest(payload))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}
