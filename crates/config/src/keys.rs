//! The keys by which clients are known: opaque ones as hashes, looked up in constant time, and those that AWS's clients
//! sign with.

mod holder;
mod line;
mod new_key;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};

pub use self::holder::{KeyHolder, KeyName};
use self::line::{Hash, Key, Line, parse_line};
pub use self::new_key::{KeyNameError, NewKey, NewSigningKey};
use crate::problem::{Origin, Place, Problems};

/// The keys that are let in. Several keys may belong to one name, so that a key can be replaced without a moment in
/// which neither works.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyRing {
    opaque: Arc<[(Arc<KeyHolder>, Hash)]>,
    signing: Arc<HashMap<Box<str>, SigningKey>>,
}

/// What an access key's id stands for.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    secret: Box<str>,
    holder: Arc<KeyHolder>,
}

impl SigningKey {
    /// The secret in the clear, to check signatures with.
    pub fn expose_secret(&self) -> &str {
        &self.secret
    }

    /// Whom it belongs to.
    pub fn holder(&self) -> &Arc<KeyHolder> {
        &self.holder
    }
}

/// Does not tell the secret.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({:?})", self.holder)
    }
}

impl KeyRing {
    /// Whom the opaque key belongs to; `None` when it is no key of the ring.
    ///
    /// Compares with every key, each in constant time, so that the time tells nothing about the keys.
    pub fn authenticate(&self, token: &[u8]) -> Option<Arc<KeyHolder>> {
        let hash: Hash = Sha256::digest(token).into();
        let mut found = u32::MAX;
        for (index, (_, known)) in (0..).zip(self.opaque.iter()) {
            found.conditional_assign(&index, known.ct_eq(&hash));
        }
        self.opaque.get(found as usize).map(|(holder, _)| Arc::clone(holder))
    }

    /// The key of this id, which is no secret; what is signed with it is still to be checked.
    pub fn signing_key(&self, access_key: &str) -> Option<&SigningKey> {
        self.signing.get(access_key)
    }

    /// Whom a name stands for: the holder of the first key of that name.
    pub fn holder_named(&self, name: &str) -> Option<Arc<KeyHolder>> {
        let opaque = self.opaque.iter().map(|(holder, _)| holder);
        let mut holders = opaque.chain(self.signing.values().map(|key| &key.holder));
        holders.find(|holder| holder.name().as_str() == name).cloned()
    }

    /// How many keys there are; at least one.
    #[expect(clippy::len_without_is_empty, reason = "a ring without keys is refused when it is read")]
    pub fn len(&self) -> usize {
        self.opaque.len() + self.signing.len()
    }

    /// Whether clients send a key itself, not only what they signed with one.
    pub(crate) fn holds_opaque_keys(&self) -> bool {
        !self.opaque.is_empty()
    }

    /// Whether the file that it was read from holds secrets, not only hashes of keys.
    pub(crate) fn holds_secrets(&self) -> bool {
        !self.signing.is_empty()
    }

    /// Reads the text of a keys file: one key a line, as `name sha256:HEX` or `name aws:ACCESS_KEY_ID:SECRET`, with what
    /// its holder may do behind it; blank lines and lines that begin with `#` are passed over. Messages never repeat
    /// what stands where the hash or the secret should be: it may be a key in the clear.
    pub(crate) fn parse(path: &Path, text: &str, problems: &mut Problems) -> Option<KeyRing> {
        let mut reader = Reader { path, problems, sound: true, opaque: Vec::new(), signing: HashMap::new() };
        let mut first_lines = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            match parse_line(line) {
                Ok(None) => {}
                Ok(Some(parsed)) => match first_lines.insert(parsed.key.id(), index + 1) {
                    None => reader.keep(parsed),
                    Some(first) => reader.refuse(index + 1, 1, &format!("the same key as in line {first}")),
                },
                Err((column, message)) => reader.refuse(index + 1, column, &message),
            }
        }
        reader.ring()
    }
}

/// Collects the keys of a file.
struct Reader<'r> {
    path: &'r Path,
    problems: &'r mut Problems,
    sound: bool,
    opaque: Vec<(Arc<KeyHolder>, Hash)>,
    signing: HashMap<Box<str>, SigningKey>,
}

impl Reader<'_> {
    fn keep(&mut self, line: Line) {
        let holder = Arc::new(line.holder);
        match line.key {
            Key::Opaque(hash) => self.opaque.push((holder, hash)),
            Key::Signing { access_key, secret } => {
                self.signing.insert(access_key, SigningKey { secret, holder });
            }
        }
    }

    fn refuse(&mut self, line: usize, column: usize, message: &str) {
        let place = Place { line: line as u64, column: column as u64 };
        self.problems.add(Origin::File { path: self.path.to_owned(), place: Some(place) }, message);
        self.sound = false;
    }

    fn ring(self) -> Option<KeyRing> {
        if self.opaque.is_empty() && self.signing.is_empty() && self.sound {
            let message = "holds no key; allowed: one a line, as `name sha256:HEX` (`isotherm config key` makes one), or \
                           as `name aws:ACCESS_KEY_ID:SECRET`";
            self.problems.add(Origin::File { path: self.path.to_owned(), place: None }, message);
            return None;
        }
        self.sound.then(|| KeyRing { opaque: self.opaque.into(), signing: self.signing.into() })
    }
}

/// Tells how many keys there are, and none of them.
impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRing({} keys)", self.len())
    }
}

#[cfg(test)]
mod tests;
