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
