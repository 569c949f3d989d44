//! One line of a keys file: a name, a key, and what its holder may do.

use std::sync::Arc;

use jiff::Timestamp;

use super::holder::{KeyHolder, KeyName};
use super::new_key::KEY_PREFIX;
use crate::name::Name;

/// The bytes of a SHA-256 hash.
pub(super) type Hash = [u8; 32];

/// What a line holds.
pub(super) struct Line {
    pub(super) key: Key,
    pub(super) holder: KeyHolder,
}

/// The key of a line.
pub(super) enum Key {
    /// The hash of an opaque key.
    Opaque(Hash),
    /// A key to sign with.
    Signing {
        /// Its id.
        access_key: Box<str>,
        /// Its secret, in the clear.
        secret: Box<str>,
    },
}

/// By what two lines are known to hold one key.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum KeyId {
    Opaque(Hash),
    Signing(Box<str>),
}

impl Key {
    pub(super) fn id(&self) -> KeyId {
        match self {
            Key::Opaque(hash) => KeyId::Opaque(*hash),
            Key::Signing { access_key, .. } => KeyId::Signing(access_key.clone()),
        }
    }
}

/// A column, and what is wrong there.
type Refused = (usize, String);

/// The key of one line; `None` when the line holds none.
pub(super) fn parse_line(line: &str) -> Result<Option<Line>, Refused> {
    let at = |tail: &str, message: &str| (line.chars().count() - tail.chars().count() + 1, message.to_owned());
    let content = line.trim_start();
    if content.is_empty() || content.starts_with('#') {
        return Ok(None);
    }
    let (name, rest) = content.split_once(char::is_whitespace).unwrap_or((content, ""));
    if ["sha256:", "aws:", KEY_PREFIX].iter().any(|key| name.starts_with(key)) {
        return Err(at(content, "a name is missing; allowed: `name sha256:HEX`, never the key itself"));
    }
    if name.chars().count() > 128 || name.chars().any(char::is_control) {
        return Err(at(content, "a name is at most 128 characters, none of them a control character"));
    }
    let rest = rest.trim_start();
    let (key, options) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let key = parse_key(key).map_err(|message| at(rest, message))?;
    let name = KeyName(name.into());
    let mut holder = KeyHolder { name, tenant: None, endpoints: None, account: None, expires: None };
    let mut options = options.trim_start();
    while !options.is_empty() {
        let (option, next) = options.split_once(char::is_whitespace).unwrap_or((options, ""));
        set_option(&mut holder, option).map_err(|message| at(options, &message))?;
        options = next.trim_start();
    }
    Ok(Some(Line { key, holder }))
}

fn parse_key(text: &str) -> Result<Key, &'static str> {
    if let Some(digits) = text.strip_prefix("sha256:") {
        return decode(digits).map(Key::Opaque).ok_or("after `sha256:` come 64 hexadecimal digits and nothing else");
    }
    let Some(pair) = text.strip_prefix("aws:") else {
        return Err("no key after the name; allowed: `name sha256:HEX` or `name aws:ACCESS_KEY_ID:SECRET`, never an \
                    opaque key itself");
    };
    let sound_id = |id: &str| (3..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let sound_secret =
        |secret: &str| (16..=128).contains(&secret.len()) && secret.bytes().all(|byte| byte.is_ascii_graphic());
    match pair.split_once(':') {
        Some((id, secret)) if sound_id(id) && sound_secret(secret) => {
            Ok(Key::Signing { access_key: id.into(), secret: secret.into() })
        }
        _ => Err("after `aws:` come the access key's id (3 to 128 letters and digits), a colon and the secret (16 to \
                  128 visible ASCII characters)"),
    }
}

/// Sets `tenant=…`, `endpoints=…`, `account=…` or `expires=…`. What stands in an option is no secret.
fn set_option(holder: &mut KeyHolder, option: &str) -> Result<(), String> {
    let known = "allowed: tenant=NAME, endpoints=NAME,NAME, account=TWELVE_DIGITS, expires=TIME";
    let (option, value) = option.split_once('=').ok_or_else(|| format!("no option; {known}"))?;
    let given_before = match option {
        "tenant" => {
            if value.is_empty() || value.chars().count() > 128 || value.chars().any(char::is_control) {
                return Err("a tenant is 1 to 128 characters, none of them a control character".to_owned());
            }
            holder.tenant.replace(value.into()).is_some()
        }
        "endpoints" => {
            let names: Result<Arc<[Name]>, _> = value.split(',').map(str::parse).collect();
            holder.endpoints.replace(names.map_err(|error| format!("endpoints: {error}"))?).is_some()
        }
        "account" => {
            let account = value.parse().map_err(|error| format!("account: {error}"))?;
            holder.account.replace(account).is_some()
        }
        "expires" => {
            let time: Timestamp = value.parse().map_err(|_| {
                format!("expires: {value:?} is no time; allowed: one with its offset, such as 2027-01-31T12:00:00Z")
            })?;
            holder.expires.replace(time.into()).is_some()
        }
        other => return Err(format!("{other:?} is no option; {known}")),
    };
    if given_before { Err(format!("{option} is given a second time")) } else { Ok(()) }
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
