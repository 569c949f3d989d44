//! The hasher for keys that are hashes already.

use std::hash::Hasher;

/// Takes a key that is a 64-bit hash for what it is.
#[derive(Debug, Default)]
pub struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    // Only 64-bit keys are used; hashing keeps any other key right.
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxhash_rust::xxh3::xxh3_64_with_seed(bytes, self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn a_hash_is_taken_for_what_it_is_and_anything_else_is_hashed() {
        let hash = |key: &dyn Fn(&mut AlreadyHashed)| {
            let mut hasher = AlreadyHashed::default();
            key(&mut hasher);
            hasher.finish()
        };
        assert_eq!([0, 7, u64::MAX].map(|key: u64| hash(&|hasher| hasher.write_u64(key))), [0, 7, u64::MAX]);
        let builder = std::hash::BuildHasherDefault::<AlreadyHashed>::default();
        assert_ne!(builder.hash_one("one"), builder.hash_one("two"));
    }
}
