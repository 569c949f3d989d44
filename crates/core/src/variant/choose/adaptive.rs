//! `ADAPTIVE`: the instance where the request adds the least latency, by what each is believed to hold and to have before
//! it.

use rand::Rng;

use super::{Candidate, Open, Pick, nearest};
use crate::adaptive::{Adaptive, Load, Prompt, marginal_latency};
use crate::placement::distance;
use crate::{PrefixKey, Reason};

/// Instances within this part, or these milliseconds, of the best count as equal.
const TIE_SHARE: f64 = 0.05;
const TIE_MILLISECONDS: f64 = 2.0;
/// One choice in so many of a prompt that is new everywhere goes to any instance that is not much worse: it costs no hit,
/// and shows what an instance can do that was thought slow.
const EXPLORE_ONE_IN: u32 = 100;
const NOT_MUCH_WORSE: f64 = 2.0;

pub(super) fn pick<T, R: Rng>(
    open: &Open<'_, T>,
    adaptive: &mut Adaptive,
    prompt: &Prompt,
    rng: &mut R,
) -> Option<Pick> {
    let mut matches = std::mem::take(&mut adaptive.matches);
    let known = adaptive.index.look_up(&prompt.blocks, &mut matches);
    adaptive.matches = matches;
    let score = |instance: &crate::variant::Instance<T>| {
        let held = adaptive.matches[instance.beliefs.seat.0 as usize];
        marginal_latency(&Load {
            pace: instance.beliefs.pace.milliseconds_per_token(),
            queued: instance.beliefs.uncached,
            in_flight: f64::from(instance.in_flight) / instance.weight.get(),
            uncached: adaptive.uncached(prompt, held),
            prompt: adaptive.tokens(prompt.bytes),
            output: adaptive.output_tokens(),
        })
    };
    let best = open.iter().map(|(_, instance)| score(instance)).min_by(f64::total_cmp)?;
    let explore = known == 0 && rng.next_u32().is_multiple_of(EXPLORE_ONE_IN);
    let bound = if explore { best * NOT_MUCH_WORSE } else { best + (best * TIE_SHARE).max(TIE_MILLISECONDS) };

    // What is new in the prompt orders the equal ones: routers that have seen different prompts agree on a new one, and
    // prompts that part behind a common beginning spread over those who hold it.
    let new = prompt.blocks.get(known as usize).map_or(prompt.whole, |block| block.0);
    let key = PrefixKey::from_u128(u128::from(new) << 64 | u128::from(prompt.tenant ^ u64::from(explore)));
    let equal = open.iter().filter(|(_, instance)| score(instance) <= bound).map(|(candidate, instance)| Candidate {
        distance: distance(key, instance.hash, instance.weight),
        ..candidate
    });
    let chosen = nearest(equal)?;
    let seat = open.instances[chosen.index].beliefs.seat;
    let warm = adaptive.matches[seat.0 as usize].blocks > 0;
    Some(Pick::new(chosen, if warm { Reason::Warm } else { Reason::Cold }))
}
