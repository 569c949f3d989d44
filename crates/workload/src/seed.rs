//! Independent random streams out of one seed: for each user, session and piece of text.

use rand::SeedableRng;
use rand_pcg::Pcg64;

/// What a stream is for, so that a user and a session with equal numbers do not draw the same numbers.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    User = 1,
    Text = 2,
    Session = 3,
    Arrivals = 4,
    Document = 5,
    Hot = 6,
}

/// The generator of one stream. PCG is value-stable: a seed means the same numbers on every machine and release.
pub(crate) fn stream(seed: u64, purpose: Purpose, number: u64) -> Pcg64 {
    let purpose = mix(purpose as u64);
    Pcg64::seed_from_u64(mix(seed ^ purpose).wrapping_add(mix(number)))
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection, so different numbers stay different.
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
