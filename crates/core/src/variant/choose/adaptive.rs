//! `ADAPTIVE`: the instance where the request adds the least latency, by what each is believed to hold and to have before
//! it.

use rand::Rng;

use super::{Candidate, Open, Pick, nearest};
use crate::adaptive::{Adaptive, Prompt};
use crate::placement::Distance;
use crate::variant::Instance;
use crate::{PrefixKey, Reason, Time};

/// Instances within this part, or these milliseconds, of the best count as equal.
const TIE_SHARE: f64 = 0.05;
const TIE_MILLISECONDS: f64 = 2.0;
/// Within this part where the prompt is new: routers that know nothing of each other should send it to the same instance,
/// and a few streams more or less differ little.
const NEW_TIE_SHARE: f64 = 0.2;
/// But only where as much waits as at the best, or more by no more than this part of the prompt: that it waits for.
const NEW_TIE_WAIT: f64 = 0.05;
/// A prompt of which nobody holds more than this part counts as new.
const NEW: f64 = 0.2;
/// One choice in so many of a prompt that is new everywhere goes to any instance that is not much worse: it costs no hit,
/// and shows what an instance can do that was thought slow.
const EXPLORE_ONE_IN: u32 = 100;
const NOT_MUCH_WORSE: f64 = 2.0;

/// Picks by what is known of the prompt, which was looked up just before.
pub(super) fn pick<T, R: Rng>(
    open: &Open<'_, T>,
    adaptive: &mut Adaptive,
    prompt: &Prompt,
    rng: &mut R,
) -> Option<Pick> {
    let explore = adaptive.known_blocks() == 0 && rng.next_u32().is_multiple_of(EXPLORE_ONE_IN);
    let chosen = best(open, adaptive, prompt, explore)?;
    let warm = adaptive.held(&open.instances[chosen.index].beliefs).blocks > 0;
    Some(Pick::new(chosen, if warm { Reason::Warm } else { Reason::Cold }))
}

/// The first in the prompt's order among those that count as equal to the best.
pub(super) fn best<T>(
    open: &Open<'_, T>,
    adaptive: &mut Adaptive,
    prompt: &Prompt,
    explore: bool,
) -> Option<Candidate> {
    let mut scores = std::mem::take(&mut adaptive.scores);
    scores.clear();
    scores.extend(open.iter().map(|(_, instance)| score(adaptive, prompt, instance, open.now)));
    let is_new = prompt.bytes_of(adaptive.known_blocks()) as f64 <= NEW * prompt.bytes() as f64;
    let least = scores.iter().enumerate().min_by(|(_, one), (_, other)| one.total_cmp(other));
    let chosen = least.and_then(|(at, &best)| {
        let (share, waiting) = match is_new.then(|| open.iter().nth(at)).flatten() {
            Some((_, least)) => {
                (NEW_TIE_SHARE, least.beliefs.waiting.tokens() + NEW_TIE_WAIT * adaptive.tokens(prompt.bytes()))
            }
            None => (TIE_SHARE, f64::INFINITY),
        };
        let bound = if explore { best * NOT_MUCH_WORSE } else { best + (best * share).max(TIE_MILLISECONDS) };
        let is_equal = |instance: &Instance<T>, score: f64| {
            score <= bound && (explore || instance.beliefs.waiting.tokens() <= waiting)
        };
        let key = order_of_equals(adaptive, prompt, explore);
        let equal = open.iter().zip(&scores).filter(|((_, instance), score)| is_equal(instance, **score));
        nearest(equal.map(|((candidate, instance), _)| Candidate {
            distance: Distance::of(key, instance.standing, instance.weight),
            ..candidate
        }))
    });
    adaptive.scores = scores;
    chosen
}

/// What is new in the prompt orders the equal ones: routers that have seen different prompts agree on a new one, and
/// prompts that part behind a common beginning spread over those who hold it.
fn order_of_equals(adaptive: &Adaptive, prompt: &Prompt, explore: bool) -> PrefixKey {
    let new = prompt.blocks.get(adaptive.known_blocks() as usize).or(prompt.blocks.last());
    let new = new.map_or(0, |block| block.0);
    PrefixKey::from_u128(u128::from(new) << 64 | u128::from(prompt.tenant ^ u64::from(explore)))
}

/// The latency in milliseconds that the prompt that was looked up last adds on an instance.
pub(super) fn score<T>(adaptive: &Adaptive, prompt: &Prompt, instance: &Instance<T>, now: Time) -> f64 {
    let in_flight = instance.load(now) / instance.weight.get();
    adaptive.score(prompt, &instance.beliefs, in_flight, now)
}
