//! `ADAPTIVE`: the instance where the request adds the least latency, by what each is believed to hold and to have before
//! it.

use rand::Rng;

use super::{Candidate, Open, Pick, nearest};
use crate::adaptive::{Adaptive, Prompt};
use crate::placement::Distance;
use crate::variant::Instance;
use crate::{PrefixKey, Reason};

/// Instances within this part, or these milliseconds, of the best count as equal.
const TIE_SHARE: f64 = 0.05;
const TIE_MILLISECONDS: f64 = 2.0;
/// One choice in so many of a prompt that is new everywhere goes to any instance that is not much worse: it costs no hit,
/// and shows what an instance can do that was thought slow.
const EXPLORE_ONE_IN: u32 = 100;
const NOT_MUCH_WORSE: f64 = 2.0;

/// Picks by what is known of the prompt that was looked up last; anyone holds its first `known` blocks.
pub(super) fn pick<T, R: Rng>(
    open: &Open<'_, T>,
    adaptive: &Adaptive,
    prompt: &Prompt,
    known: u32,
    rng: &mut R,
) -> Option<Pick> {
    let explore = known == 0 && rng.next_u32().is_multiple_of(EXPLORE_ONE_IN);
    let chosen = best(open, adaptive, prompt, known, explore)?;
    let warm = adaptive.held(&open.instances[chosen.index].beliefs).blocks > 0;
    Some(Pick::new(chosen, if warm { Reason::Warm } else { Reason::Cold }))
}

/// The first in the prompt's order among those that count as equal to the best.
pub(super) fn best<T>(
    open: &Open<'_, T>,
    adaptive: &Adaptive,
    prompt: &Prompt,
    known: u32,
    explore: bool,
) -> Option<Candidate> {
    let score = |instance| score(adaptive, prompt, instance);
    let best = open.iter().map(|(_, instance)| score(instance)).min_by(f64::total_cmp)?;
    let bound = if explore { best * NOT_MUCH_WORSE } else { best + (best * TIE_SHARE).max(TIE_MILLISECONDS) };

    // What is new in the prompt orders the equal ones: routers that have seen different prompts agree on a new one, and
    // prompts that part behind a common beginning spread over those who hold it.
    let new = prompt.blocks.get(known as usize).map_or(prompt.whole, |block| block.0);
    let key = PrefixKey::from_u128(u128::from(new) << 64 | u128::from(prompt.tenant ^ u64::from(explore)));
    let equal = open.iter().filter(|(_, instance)| score(instance) <= bound).map(|(candidate, instance)| Candidate {
        distance: Distance::of(key, instance.standing, instance.weight),
        ..candidate
    });
    nearest(equal)
}

/// The latency in milliseconds that the prompt that was looked up last adds on an instance.
pub(super) fn score<T>(adaptive: &Adaptive, prompt: &Prompt, instance: &Instance<T>) -> f64 {
    let in_flight = f64::from(instance.in_flight) / instance.weight.get();
    adaptive.score(prompt, &instance.beliefs, adaptive.held(&instance.beliefs), in_flight)
}
