//! Prompts that were chosen to meet on one instance, by somebody who does not know the seed.

use super::*;
use crate::{HashSeed, KeyScope, PrefixHasher, prefix_key};

const SCOPE: KeyScope<'static> =
    KeyScope { endpoint: "chat", variant: "AllTraffic", model: None, adapter: None, tenant: None };

fn key(seed: HashSeed, prompt: u64) -> PrefixKey {
    let mut hasher = PrefixHasher::new(seed);
    hasher.update(&prompt.to_le_bytes());
    prefix_key(seed, &SCOPE, None, None, &hasher.finish().unwrap())
}

#[test]
fn prompts_aimed_at_one_instance_spread_evenly_under_another_seed() {
    let state = variant(Strategy::default(), 8);
    let home = |seed, prompt| *state.order(key(seed, prompt), None, NOW)[0].instance.data;
    let (known, secret) = (HashSeed(0), HashSeed(0x5ec2_e7ed_0000_1234));
    let aimed: Vec<u64> = (0..).filter(|&prompt| home(known, prompt) == 3).take(10_000).collect();
    let mut counts = [0u32; 8];
    for &prompt in &aimed {
        counts[home(secret, prompt)] += 1;
    }
    let most = f64::from(*counts.iter().max().unwrap());
    assert!(most <= 1.1 * 10_000.0 / 8.0, "{counts:?}");
}

/// Lanes of XXH3's public secret, as bytes of a prompt: where a prompt has them, its other half is multiplied by nothing
/// and only added.
const LANES: [[u8; 4]; 2] = [[0xb8, 0xfe, 0x6c, 0x39], [0x7c, 0x01, 0x81, 0x2c]];

/// Prompts that all have one hash where the hash has no seed: what is added in one stripe is taken away in the next.
fn colliding(number: u32) -> Vec<u8> {
    let mut prompt = vec![b' '; 512];
    for (stripe, (lane, added)) in LANES.iter().zip([number, number.wrapping_neg()]).enumerate() {
        prompt[64 * stripe..][..4].copy_from_slice(lane);
        prompt[64 * stripe + 4..][..4].copy_from_slice(&added.to_le_bytes());
    }
    prompt
}

#[test]
fn ten_thousand_prompts_that_collide_without_a_seed_spread_evenly_with_a_secret_one() {
    let state = variant(Strategy::default(), 8);
    let of = |seed, prompt: u32| {
        let mut hasher = PrefixHasher::new(seed);
        hasher.update(&colliding(prompt));
        prefix_key(seed, &SCOPE, None, None, &hasher.finish().unwrap())
    };
    let keys = |seed| (0..10_000).map(|prompt| of(seed, prompt)).collect::<Vec<PrefixKey>>();
    let known = keys(HashSeed(0));
    assert!(known.iter().all(|key| *key == known[0]), "the attack is one");
    let mut counts = [0u32; 8];
    for key in keys(HashSeed(0x5ec2_e7ed_0000_1234)) {
        counts[*state.order(key, None, NOW)[0].instance.data] += 1;
    }
    let most = f64::from(*counts.iter().max().unwrap());
    assert!(most <= 1.3 * 10_000.0 / 8.0, "{counts:?}");
}
