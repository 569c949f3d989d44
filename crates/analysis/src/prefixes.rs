//! How many prefixes of each length there are and how often they come: what a PrefixLength would tell apart.

use std::collections::HashMap;

use serde::Serialize;

use crate::chain::{Block, extend};
use crate::known::AlreadyHashed;
use crate::prompt::Prompt;

/// The lengths that are counted, in characters.
pub(crate) const LENGTHS: [u32; 9] = [256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536];

/// How many prefixes of one length are kept track of.
const MOST_PREFIXES: usize = 1 << 16;

/// The prefix that decides in the default configuration; the hottest of these are told.
const HOT_LENGTH: u32 = 4_096;

/// The prefixes of one request, by [`LENGTHS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixHashes {
    pub(crate) hashes: [u64; LENGTHS.len()],
    /// Characters of the whole text, at most the longest length.
    pub(crate) characters: u32,
}

/// Counts prefixes.
#[derive(Debug)]
pub(crate) struct Prefixes {
    lengths: Vec<Counted>,
    hot: HashMap<u64, Uses, AlreadyHashed>,
    requests: u64,
}

/// How often a prefix came.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    requests: u64,
    /// Whether it is known by a router's own key.
    is_key: bool,
}

/// The prefixes of one length; a sample of them, by their hashes, where they are too many.
#[derive(Debug)]
struct Counted {
    uses: HashMap<u64, u32, AlreadyHashed>,
    /// Hashes up to this are counted.
    threshold: u64,
    sampled_requests: u64,
    repeated_requests: u64,
    /// Requests whose text is not longer than the prefix.
    shorter: u64,
}

impl Prefixes {
    pub(crate) fn new() -> Prefixes {
        let counted = || Counted {
            uses: HashMap::default(),
            threshold: u64::MAX,
            sampled_requests: 0,
            repeated_requests: 0,
            shorter: 0,
        };
        Prefixes { lengths: LENGTHS.iter().map(|_| counted()).collect(), hot: HashMap::default(), requests: 0 }
    }

    /// Counts a request's prefixes; the hottest are named by the router's key where there is one.
    pub(crate) fn take(&mut self, prefixes: &PrefixHashes, key: Option<u64>) {
        self.requests += 1;
        for ((counted, &hash), &length) in self.lengths.iter_mut().zip(&prefixes.hashes).zip(&LENGTHS) {
            counted.shorter += u64::from(prefixes.characters <= length);
            counted.take(hash);
            if length == HOT_LENGTH {
                let uses = self.hot.entry(key.unwrap_or(hash)).or_default();
                (uses.requests, uses.is_key) = (uses.requests + 1, key.is_some());
            }
        }
        if self.hot.len() > MOST_PREFIXES {
            // What came once is nothing that is hot; what comes often has come again before this happens.
            self.hot.retain(|_, uses| uses.requests > 1);
            if self.hot.len() > MOST_PREFIXES / 2 {
                self.hot.retain(|_, uses| uses.requests > 4);
            }
        }
    }

    /// What was found of each length.
    pub(crate) fn by_length(&self) -> Vec<PrefixCount> {
        let requests = self.requests.max(1) as f64;
        let row = |(counted, &length): (&Counted, &u32)| {
            let share = counted.threshold as f64 / u64::MAX as f64;
            let distinct = counted.uses.len() as f64 / share;
            PrefixCount {
                length,
                distinct: distinct.round() as u64,
                requests_per_prefix: requests / distinct.max(1.0),
                repeated: counted.repeated_requests as f64 / counted.sampled_requests.max(1) as f64,
                shorter: counted.shorter as f64 / requests,
            }
        };
        self.lengths.iter().zip(&LENGTHS).map(row).collect()
    }

    /// The prefixes that most requests have, the hottest first.
    pub(crate) fn hottest(&self, count: usize) -> Vec<HotPrefix> {
        let mut hot: Vec<(u64, Uses)> = self.hot.iter().map(|(hash, uses)| (*hash, *uses)).collect();
        hot.sort_unstable_by_key(|(hash, uses)| (std::cmp::Reverse(uses.requests), *hash));
        let told = |(hash, Uses { requests, is_key }): (u64, Uses)| HotPrefix {
            hash: format!("{hash:016x}"),
            is_key,
            requests,
            share: requests as f64 / self.requests.max(1) as f64,
        };
        hot.into_iter().take(count).filter(|(_, uses)| uses.requests > 1).map(told).collect()
    }
}

impl Counted {
    fn take(&mut self, hash: u64) {
        if hash > self.threshold {
            return;
        }
        self.sampled_requests += 1;
        let uses = self.uses.entry(hash).or_default();
        self.repeated_requests += u64::from(*uses > 0);
        *uses = uses.saturating_add(1);
        while self.uses.len() > MOST_PREFIXES {
            self.threshold /= 2;
            let threshold = self.threshold;
            self.uses.retain(|hash, _| *hash <= threshold);
            // Counts of what is left out go with it, in proportion.
            self.sampled_requests /= 2;
            self.repeated_requests /= 2;
        }
    }
}

/// The prefixes of one length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PrefixCount {
    /// In characters.
    pub length: u32,
    /// How many there are; estimated where they are more than 65,536.
    pub distinct: u64,
    /// How often one comes, on average.
    pub requests_per_prefix: f64,
    /// Share of the requests whose prefix came before.
    pub repeated: f64,
    /// Share of the requests whose whole text is not longer.
    pub shorter: f64,
}

/// A prefix that many requests have: of 4,096 characters, or as long as the router's that has given it a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HotPrefix {
    /// Names it; no text can be told from it.
    pub hash: String,
    /// Whether that is the beginning of the router's key, as `x-isotherm-key`, dashboard and `isotherm top` show it; else
    /// it holds within this analysis only.
    pub is_key: bool,
    /// How often it came.
    pub requests: u64,
    /// Which share of the requests that is.
    pub share: f64,
}

/// The prefixes of a request's text as a router cuts them: characters of the text, or bytes of a native body.
pub(crate) fn of_text(prompt: &Prompt, native_body: Option<&[u8]>, scope: u64, text: &mut Vec<u8>) -> PrefixHashes {
    const MOST: usize = LENGTHS[LENGTHS.len() - 1] as usize;
    text.clear();
    match native_body {
        Some(body) => text.extend_from_slice(&body[..body.len().min(MOST)]),
        None => {
            for piece in prompt.pieces.iter().filter(|piece| piece.is_text()) {
                if text.len() < 4 * MOST {
                    text.extend_from_slice(prompt.text(piece));
                }
            }
        }
    }
    let (mut characters, mut cut, mut hash) = (0, 0, scope);
    let is_native = native_body.is_some();
    let mut hashes = [0; LENGTHS.len()];
    for (into, &length) in hashes.iter_mut().zip(&LENGTHS) {
        let start = cut;
        while characters < length && cut < text.len() {
            cut += 1;
            while !is_native && text.get(cut).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {
                cut += 1;
            }
            characters += 1;
        }
        hash = if cut > start { extend(hash, &text[start..cut]) } else { hash };
        *into = hash;
    }
    PrefixHashes { hashes, characters }
}

/// The prefixes of a chain: cut at the end of the block in which the length is reached.
pub(crate) fn of_chain(blocks: &[Block]) -> PrefixHashes {
    let (mut characters, mut place) = (0_u32, 0);
    let mut hashes = [0; LENGTHS.len()];
    for (into, &length) in hashes.iter_mut().zip(&LENGTHS) {
        while characters < length && place < blocks.len() {
            characters = characters.saturating_add(blocks[place].characters);
            place += 1;
        }
        *into = place.checked_sub(1).map_or(0, |last| blocks[last].hash);
    }
    PrefixHashes { hashes, characters }
}

#[cfg(test)]
mod tests {
    use isotherm_wire::api::Api;

    use super::*;
    use crate::chain::extend_by_id;

    fn of_body(content: &str) -> PrefixHashes {
        let body = serde_json::json!({ "messages": [{ "role": "user", "content": content }] }).to_string();
        let mut prompt = Prompt::default();
        prompt.fill(body.as_bytes(), Api::ChatCompletions).unwrap();
        of_text(&prompt, None, 1, &mut Vec::new())
    }

    #[test]
    fn prefixes_are_equal_exactly_as_far_as_the_characters_are() {
        let common = "ü".repeat(600);
        let (left, right) = (of_body(&format!("{common}left")), of_body(&format!("{common}right, and longer")));
        assert_eq!(left.hashes[..2], right.hashes[..2], "256 and 512 characters are common");
        assert!((2..LENGTHS.len()).all(|place| left.hashes[place] != right.hashes[place]));
        assert_eq!(left.characters, 604);
    }

    #[test]
    fn counts_tell_how_many_there_are_and_how_often_they_come() {
        let mut prefixes = Prefixes::new();
        for number in 0..300_000_u64 {
            // A third of the requests has one prefix, the others come three times each.
            let hash = if number % 3 == 0 { 1 << 40 } else { extend_by_id(0, number / 9 * 3 + number % 3) };
            prefixes.take(&PrefixHashes { hashes: [hash; LENGTHS.len()], characters: 500 }, None);
        }
        let found = prefixes.by_length()[0];
        assert!((found.distinct as f64 - 66_667.0).abs() < 1_500.0, "{found:?}");
        assert_eq!((found.shorter, prefixes.by_length()[1].shorter), (0.0, 1.0));
        let hot = prefixes.hottest(3);
        assert_eq!((hot[0].requests, hot[0].share), (100_000, 1.0 / 3.0));
    }

    #[test]
    fn a_prefix_with_a_routers_key_is_counted_and_named_by_it() {
        let mut prefixes = Prefixes::new();
        for number in 0..10 {
            prefixes
                .take(&PrefixHashes { hashes: [number; LENGTHS.len()], characters: 500 }, Some(0xdcec_c780_6d15_82cf));
        }
        let hot = prefixes.hottest(3);
        assert_eq!(hot.len(), 1);
        assert_eq!((hot[0].hash.as_str(), hot[0].is_key, hot[0].requests), ("dcecc7806d1582cf", true, 10));
    }
}
