//! The keys by which clients are known: a file of names and hashes, looked up in constant time.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};

use crate::problem::{Origin, Place, Problems};

/// The bytes of a SHA-256 hash.
type Hash = [u8; 32];

/// What every key made by [`NewKey`] begins with, so that secret scanners and people recognise it.
const KEY_PREFIX: &str = "sk-isotherm-";

/// The keys that are let in. Holds hashes only; several keys may belong to one name, so that a key can be replaced
/// without a moment in which neither works.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyRing {
    keys: Arc<[(KeyName, Hash)]>,
}

/// Whom a key belongs to: the principal of a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName(Arc<str>);

impl KeyName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl KeyRing {
    /// Whom the token belongs to; `None` when it is no key of the ring.
    ///
    /// Compares with every key, each in constant time, so that the time tells nothing about the keys.
    pub fn authenticate(&self, token: &[u8]) -> Option<KeyName> {
        let hash: Hash = Sha256::digest(token).into();
        let mut found = u32::MAX;
        for (index, (_, known)) in (0..).zip(self.keys.iter()) {
            found.conditional_assign(&index, known.ct_eq(&hash));
        }
        self.keys.get(found as usize).map(|(name, _)| name.clone())
    }

    /// How many keys there are; at least one.
    #[expect(clippy::len_without_is_empty, reason = "a ring without keys is refused when it is read")]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Reads the text of a keys file: one key a line as `name sha256:HEX`; blank lines and lines that begin with `#`
    /// are passed over. Messages never repeat what stands where the hash should be: it may be a key in the clear.
    pub(crate) fn parse(path: &Path, text: &str, problems: &mut Problems) -> Option<KeyRing> {
        let mut keys = Vec::new();
        let mut lines: HashMap<Hash, usize> = HashMap::new();
        let mut sound = true;
        for (index, line) in text.lines().enumerate() {
            let mut refuse = |column: usize, message: &str| {
                let place = Place { line: index as u64 + 1, column: column as u64 };
                problems.add(Origin::File { path: path.to_owned(), place: Some(place) }, message);
                sound = false;
            };
            match parse_line(line) {
                Ok(None) => {}
                Ok(Some((name, hash))) => match lines.insert(hash, index + 1) {
                    None => keys.push((name, hash)),
                    Some(first) => refuse(1, &format!("the same key as in line {first}")),
                },
                Err((column, message)) => refuse(column, message),
            }
        }
        if keys.is_empty() && sound {
            let message = "holds no key; allowed: one a line, as `name sha256:HEX` (`isotherm config key` makes one)";
            problems.add(Origin::File { path: path.to_owned(), place: None }, message);
            return None;
        }
        sound.then(|| KeyRing { keys: keys.into() })
    }
}

/// Tells how many keys there are, and none of them.
impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRing({} keys)", self.keys.len())
    }
}

/// The key of one line; `None` when the line holds none. An error is a column and what is wrong there.
fn parse_line(line: &str) -> Result<Option<(KeyName, Hash)>, (usize, &'static str)> {
    let column_of = |tail: &str| line.chars().count() - tail.chars().count() + 1;
    let content = line.trim_start();
    if content.is_empty() || content.starts_with('#') {
        return Ok(None);
    }
    let (name, rest) = content.split_once(char::is_whitespace).unwrap_or((content, ""));
    if name.starts_with("sha256:") || name.starts_with(KEY_PREFIX) {
        return Err((column_of(content), "a name is missing; allowed: `name sha256:HEX`, never the key itself"));
    }
    if name.chars().count() > 128 || name.chars().any(char::is_control) {
        return Err((column_of(content), "a name is at most 128 characters, none of them a control character"));
    }
    let rest = rest.trim_start();
    match rest.trim_end().strip_prefix("sha256:").map(decode) {
        Some(Some(hash)) => Ok(Some((KeyName(name.into()), hash))),
        Some(None) => Err((column_of(rest), "after `sha256:` come 64 hexadecimal digits and nothing else")),
        None => Err((column_of(rest), "no hash after the name; allowed: `name sha256:HEX`, never the key itself")),
    }
}

fn decode(digits: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    if digits.len() != 2 * hash.len() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let digit = |character: u8| char::from(character).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(hash)
}

fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A key that was just made: the text for the client, and the line for the keys file.
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
        match parse_line(&line) {
            Ok(Some((parsed, _))) if parsed.as_str() == name => Ok(NewKey { text, line }),
            _ => Err(KeyNameError(name.to_owned())),
        }
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

/// A name that a keys file cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no name for a key; \
     allowed: 1 to 128 characters without spaces, not beginning with #, sha256: or sk-isotherm-"
)]
pub struct KeyNameError(String);

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<KeyRing, Vec<String>> {
        let mut problems = Problems::default();
        let ring = KeyRing::parse(Path::new("keys"), text, &mut problems);
        match problems.into_result() {
            Ok(()) => Ok(ring.expect("a ring or a problem")),
            Err(error) => {
                assert_eq!(ring, None);
                Err(error.problems().iter().map(ToString::to_string).collect())
            }
        }
    }

    #[test]
    fn a_key_that_was_made_is_let_in_under_its_name() {
        let [alice, bob, spare] =
            [("alice", 1), ("bob", 2), ("alice", 3)].map(|(name, byte)| NewKey::from_random(name, [byte; 32]).unwrap());
        let ring = parse(&format!("# team\n\n{}\n  {}  \n{}\r\n", alice.line(), bob.line(), spare.line())).unwrap();
        assert_eq!(ring.len(), 3);
        for (key, name) in [(&alice, "alice"), (&bob, "bob"), (&spare, "alice")] {
            assert_eq!(ring.authenticate(key.text().as_bytes()).unwrap().as_str(), name);
        }
        for stranger in ["", "sk-isotherm-", &alice.text().to_uppercase(), &format!("{} ", alice.text()), alice.line()]
        {
            assert_eq!(ring.authenticate(stranger.as_bytes()), None, "{stranger}");
        }
    }

    #[test]
    fn the_form_of_a_key_does_not_change_between_releases() {
        let key = NewKey::from_random("alice", [0xab; 32]).unwrap();
        assert_eq!(key.text(), format!("sk-isotherm-{}", "ab".repeat(32)));
        assert_eq!(key.line(), "alice sha256:da149e904e890c443f00dd7d9775690a4b37e3407f40a7c1e56ab9409ab44863");
    }

    #[test]
    fn every_bad_line_is_named_and_never_repeated() {
        let hash = "0".repeat(64);
        let text = format!(
            "alice sha256:{hash}\nsha256:{hash}\nbob sk-isotherm-secret\ncarol sha256:xyz\n dave  sha256:{hash}\nerin\n"
        );
        assert_eq!(
            parse(&text).unwrap_err(),
            [
                "keys:2:1: a name is missing; allowed: `name sha256:HEX`, never the key itself",
                "keys:3:5: no hash after the name; allowed: `name sha256:HEX`, never the key itself",
                "keys:4:7: after `sha256:` come 64 hexadecimal digits and nothing else",
                "keys:5:1: the same key as in line 1",
                "keys:6:5: no hash after the name; allowed: `name sha256:HEX`, never the key itself",
            ]
        );
    }

    #[test]
    fn a_file_without_keys_is_refused() {
        assert_eq!(
            parse("# none yet\n\n").unwrap_err(),
            ["keys: holds no key; allowed: one a line, as `name sha256:HEX` (`isotherm config key` makes one)"]
        );
    }

    #[test]
    fn names_that_the_file_cannot_hold_make_no_key() {
        for name in ["", "a b", "#a", "sha256:a", "sk-isotherm-a", "a\nb", &"a".repeat(129)] {
            assert!(NewKey::from_random(name, [0; 32]).is_err(), "{name:?}");
        }
    }

    #[test]
    fn debug_output_tells_no_key() {
        let key = NewKey::from_random("alice", [7; 32]).unwrap();
        let ring = parse(key.line()).unwrap();
        assert_eq!(format!("{ring:?}"), "KeyRing(1 keys)");
        assert!(!format!("{key:?}").contains(key.text()));
    }
}
