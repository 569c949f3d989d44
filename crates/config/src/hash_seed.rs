//! `hash_seed`: the secret that keeps strangers from crafting prompts that share a home.

use isotherm_core::HashSeed;
use sha2::{Digest, Sha256};

/// The seed that a secret stands for: a decimal number is itself, as `hash_seed` would have it; of any other text it is
/// the first eight bytes of its SHA-256, big endian. Space around the text does not count. `None` for an empty text.
pub(crate) fn from_secret(text: &str) -> Option<HashSeed> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    Some(HashSeed(text.parse().unwrap_or_else(|_| {
        let hash = Sha256::digest(text.as_bytes());
        hash.iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_itself_and_a_text_is_hashed() {
        assert_eq!(from_secret(" 42\n"), Some(HashSeed(42)));
        // printf secret | sha256sum
        assert_eq!(from_secret("secret\n"), Some(HashSeed(0x2bb8_0d53_7b1d_a3e3)));
        assert_eq!(from_secret(" \n"), None);
    }
}
