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
