//! Which models an instance serves, compared as hashes.

use xxhash_rust::xxh3::xxh3_64;

/// A model's name as a number, so that comparing it under a lock costs one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelHash(u64);

impl ModelHash {
    /// The hash of a model's name.
    pub fn of(name: &str) -> ModelHash {
        ModelHash(xxh3_64(name.as_bytes()))
    }
}

/// What an instance's last `/v1/models` listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Models {
    /// It was not asked yet, or does not say: it may serve any model.
    #[default]
    Unknown,
    /// These, sorted.
    Listed(Box<[ModelHash]>),
}

impl Models {
    /// The listing of these names.
    pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> Models {
        let mut hashes: Vec<ModelHash> = names.into_iter().map(ModelHash::of).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Models::Listed(hashes.into())
    }

    /// Whether a request for this model (or for none in particular) may go there.
    pub fn may_serve(&self, model: Option<ModelHash>) -> bool {
        match (self, model) {
            (Models::Unknown, _) | (_, None) => true,
            (Models::Listed(hashes), Some(model)) => hashes.binary_search(&model).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_listing_serves_all_and_a_known_one_what_it_lists() {
        let llama = Some(ModelHash::of("llama"));
        assert!(Models::Unknown.may_serve(llama));
        assert!(Models::listed(["qwen", "llama"]).may_serve(llama));
        assert!(!Models::listed(["qwen"]).may_serve(llama));
        assert!(Models::listed(["qwen"]).may_serve(None));
    }
}
