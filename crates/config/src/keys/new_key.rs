//! Keys that are made for clients: the text for the client, and the line for the keys file.

use std::fmt;

use sha2::{Digest, Sha256};

use super::line::parse_line;

/// What every opaque key begins with, so that secret scanners and people recognise it.
pub(super) const KEY_PREFIX: &str = "sk-isotherm-";
/// What every access key's id begins with: long-lived keys of AWS begin so, and tools look for it.
const ACCESS_KEY_PREFIX: &str = "AKIA";

/// An opaque key that was just made.
pub struct NewKey {
    text: String,
    line: String,
}

impl NewKey {
    /// A key for a client of this name out of random bytes, which must come from the system's generator.
    ///
    /// Refuses a name that a keys file cannot hold: empty, too long, with spaces, or beginning like a comment or a key.
    pub fn from_random(name: &str, random: [u8; 32]) -> Result<NewKey, KeyNameError> {
        let text = format!("{KEY_PREFIX}{}", encode(&random));
        let line = format!("{name} sha256:{}", encode(&Sha256::digest(text.as_bytes())));
        check_name(name, &line)?;
        Ok(NewKey { text, line })
    }

    /// What the client sends as its API key. Shown once, kept nowhere.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line for the keys file, without its end.
    pub fn line(&self) -> &str {
        &self.line
    }
}

/// Does not tell the key.
impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewKey({:?})", self.line)
    }
}

/// A key to sign with that was just made.
pub struct NewSigningKey {
    access_key: String,
    secret: String,
    line: String,
}

impl NewSigningKey {
    /// A key for a client of this name out of random bytes, which must come from the system's generator.
    ///
    /// Refuses what [`NewKey::from_random`] refuses.
    pub fn from_random(name: &str, random: [u8; 46]) -> Result<NewSigningKey, KeyNameError> {
        let (id, secret) = random.split_at(16);
        let access_key = format!("{ACCESS_KEY_PREFIX}{}", spell(id, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"));
        // 30 bytes are 40 characters of 6 bits each, as long as AWS's own secrets.
        let groups = secret.chunks_exact(3).flat_map(|three| {
            let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
            [18, 12, 6, 0].map(|shift| (bits >> shift & 63) as u8)
        });
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let secret = spell(&groups.collect::<Vec<u8>>(), alphabet);
        let line = format!("{name} aws:{access_key}:{secret}");
        check_name(name, &line)?;
        Ok(NewSigningKey { access_key, secret, line })
    }

    /// `AWS_ACCESS_KEY_ID` for the client.
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    /// `AWS_SECRET_ACCESS_KEY` for the client.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The line for the keys file, without its end; it holds the secret, too.
    pub fn line(&self) -> &str {
        &self.line
    }
}

/// Does not tell the secret.
impl fmt::Debug for NewSigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewSigningKey({:?})", self.access_key)
    }
}

/// A name that a keys file cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no name for a key; \
     allowed: 1 to 128 characters without spaces, not beginning with #, sha256:, aws: or sk-isotherm-"
)]
pub struct KeyNameError(String);

fn check_name(name: &str, line: &str) -> Result<(), KeyNameError> {
    match parse_line(line) {
        Ok(Some(parsed)) if parsed.holder.name().as_str() == name => Ok(()),
        _ => Err(KeyNameError(name.to_owned())),
    }
}

/// A letter for each byte, whose highest bits do not count.
fn spell(bytes: &[u8], alphabet: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(alphabet[usize::from(*byte) % alphabet.len()])).collect()
}

fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
