//! Prefix keys: the hash that decides a request's home.

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

/// Separates the key spaces of routers that must not agree; routers with one seed agree on every key.
///
/// XXH3 is not a cryptographic hash: set the seed from a secret where clients are not trusted, so that nobody can craft
/// prompts that share a home.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct HashSeed(pub u64);

/// Does not tell the seed, which may be a secret.
impl fmt::Debug for HashSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashSeed(…)")
    }
}

/// What a key never mixes: equal prefixes in different scopes have unrelated homes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyScope<'a> {
    /// The endpoint's name.
    pub endpoint: &'a str,
    /// The production variant's name.
    pub variant: &'a str,
    /// The model that the request names, if it names one.
    pub model: Option<&'a str>,
    /// The adapter (LoRA) that the request names, if it names one apart from the model.
    pub adapter: Option<&'a str>,
    /// The authenticated tenant, if keys carry one.
    pub tenant: Option<&'a str>,
}

/// 128-bit hash of (scope, tenant id, salt, prefix).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixKey(u128);

impl PrefixKey {
    /// A key from its number, as printed by `Display` in hexadecimal.
    pub const fn from_u128(key: u128) -> PrefixKey {
        PrefixKey(key)
    }

    /// The key as a number.
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Display for PrefixKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for PrefixKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrefixKey({self})")
    }
}

/// Hashes a prefix as it arrives, in pieces of any size; only the bytes' sequence counts, not how it was cut.
pub struct PrefixHasher {
    hasher: Xxh3,
    length: u64,
}

impl PrefixHasher {
    /// A hasher of an empty prefix.
    pub fn new(seed: HashSeed) -> PrefixHasher {
        PrefixHasher { hasher: Xxh3::with_seed(seed.0), length: 0 }
    }

    /// Appends bytes to the prefix.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
    }

    /// The digest of the bytes so far; `None` when there were none, for then there is nothing to be warm for.
    pub fn finish(&self) -> Option<PrefixDigest> {
        (self.length > 0).then(|| self.digest())
    }

    /// The digest of the bytes so far, of none too.
    pub(crate) fn digest(&self) -> PrefixDigest {
        PrefixDigest { hash: self.hasher.digest128(), length: self.length }
    }
}

impl fmt::Debug for PrefixHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrefixHasher").field("length", &self.length).finish_non_exhaustive()
    }
}

/// The hash of a prefix alone, before its scope is known (`model` may follow the messages in a body).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixDigest {
    hash: u128,
    length: u64,
}

/// The key of a prefix within its scope.
///
/// Every field is hashed with its length in front, and an absent field differs from an empty one, so that no two lists
/// of fields can collide by concatenation.
pub fn prefix_key(
    seed: HashSeed,
    scope: &KeyScope<'_>,
    tenant_id: Option<&str>,
    salt: Option<&str>,
    prefix: &PrefixDigest,
) -> PrefixKey {
    let KeyScope { endpoint, variant, model, adapter, tenant } = *scope;
    let mut hasher = Xxh3::with_seed(seed.0);
    for field in [Some(endpoint), Some(variant), model, adapter, tenant, tenant_id, salt] {
        match field {
            Some(text) => {
                hasher.update(&(text.len() as u64 + 1).to_le_bytes());
                hasher.update(text.as_bytes());
            }
            None => hasher.update(&0u64.to_le_bytes()),
        }
    }
    hasher.update(&prefix.length.to_le_bytes());
    hasher.update(&prefix.hash.to_le_bytes());
    PrefixKey(hasher.digest128())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digest(text: &str) -> PrefixDigest {
        let mut hasher = PrefixHasher::new(HashSeed(0));
        hasher.update(text.as_bytes());
        hasher.finish().unwrap()
    }

    fn scope() -> KeyScope<'static> {
        KeyScope { endpoint: "chat", variant: "AllTraffic", ..KeyScope::default() }
    }

    /// A release that moves these keys sends every prompt of every user to a cold instance.
    #[test]
    fn golden_keys_stay_where_they_are() {
        let key = |seed, scope: &KeyScope<'_>, tenant_id, salt, text: &str| {
            let mut hasher = PrefixHasher::new(HashSeed(seed));
            hasher.update(text.as_bytes());
            prefix_key(HashSeed(seed), scope, tenant_id, salt, &hasher.finish().unwrap()).to_string()
        };
        let full = KeyScope { model: Some("llama"), adapter: Some("sql"), tenant: Some("acme"), ..scope() };
        let golden = [
            key(0, &scope(), None, None, "You are a helpful assistant."),
            key(1, &scope(), None, None, "You are a helpful assistant."),
            key(0, &full, Some("user-1"), Some("salt"), "You are a helpful assistant."),
            key(0, &scope(), None, None, "你是一个乐于助人的助手。"),
        ];
        assert_eq!(golden, GOLDEN);
    }

    const GOLDEN: [&str; 4] = [
        "af3ced397d269baf7195363f90812c1d",
        "95f93937617db592016b6fb12437e99c",
        "2ee2897a7edfb3e26acdfe894126d2d1",
        "9001725d79bfed5e3b9d73188cdca935",
    ];

    #[test]
    fn an_empty_prefix_has_no_key() {
        assert_eq!(PrefixHasher::new(HashSeed(0)).finish(), None);
    }

    #[test]
    fn fields_cannot_collide_by_concatenation() {
        let text = digest("text");
        let key = |model, adapter, tenant_id| {
            prefix_key(HashSeed(0), &KeyScope { model, adapter, ..scope() }, tenant_id, None, &text)
        };
        let keys = [
            key(Some("ab"), Some("c"), None),
            key(Some("a"), Some("bc"), None),
            key(Some("abc"), None, None),
            key(None, Some("abc"), None),
            key(None, None, Some("abc")),
            key(Some(""), None, None),
            key(None, None, None),
        ];
        for (i, a) in keys.iter().enumerate() {
            for b in &keys[i + 1..] {
                assert_ne!(a, b);
            }
        }
    }

    proptest! {
        #[test]
        fn the_digest_does_not_depend_on_how_the_text_is_cut(text in ".{1,400}", cuts in prop::collection::vec(0usize..400, 0..6)) {
            let mut hasher = PrefixHasher::new(HashSeed(7));
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let mut from = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                hasher.update(&text.as_bytes()[from..cut]);
                from = cut;
            }
            let mut whole = PrefixHasher::new(HashSeed(7));
            whole.update(text.as_bytes());
            prop_assert_eq!(hasher.finish(), whole.finish());
        }
    }
}
