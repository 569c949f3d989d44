//! The clairvoyant bound: one cache without limit for the whole fleet, and an idle instance for every request.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use isotherm_core::AlreadyHashed;
use isotherm_engine_model::step_time::StepWork;
use isotherm_engine_model::{BLOCK_TOKENS, Profile};
use isotherm_report::measures::Latency;
use isotherm_report::{Bound, latency};

use crate::prompt::Beginning;
use crate::scenario::Scenario;

/// Sees all requests as they are sent, and works out what each could have had.
#[derive(Debug)]
pub(crate) struct Clairvoyant {
    /// The kinds of instances; each request has the one that would be fastest for it.
    profiles: Vec<Arc<Profile>>,
    sent: HashSet<u64, BuildHasherDefault<AlreadyHashed>>,
    prompt_tokens: u64,
    cached_tokens: u64,
    ttft_ms: Vec<f64>,
}

impl Clairvoyant {
    pub(crate) fn new(scenario: &Scenario) -> Clairvoyant {
        Clairvoyant {
            profiles: scenario.fleet.groups.iter().map(|group| Arc::clone(&group.profile)).collect(),
            sent: HashSet::default(),
            prompt_tokens: 0,
            cached_tokens: 0,
            ttft_ms: Vec::new(),
        }
    }

    /// A request is sent whose prompt has the first `prompt_pieces` of these beginnings; the rest is its answer, which
    /// can come back in a later prompt.
    pub(crate) fn see(&mut self, beginnings: &[Beginning], prompt_pieces: usize, measured: bool) {
        let prompt = &beginnings[..prompt_pieces.min(beginnings.len())];
        let Some(whole) = prompt.last() else { return };
        if measured {
            let known = prompt.iter().rev().find(|beginning| self.sent.contains(&beginning.hash));
            let findable = whole.tokens.saturating_sub(1) / BLOCK_TOKENS;
            let cached = known.map_or(0, |known| (known.tokens / BLOCK_TOKENS).min(findable) * BLOCK_TOKENS);
            self.prompt_tokens += u64::from(whole.tokens);
            self.cached_tokens += u64::from(cached);
            let ttft = self.profiles.iter().map(|profile| ttft_ms(profile, whole.tokens, cached));
            self.ttft_ms.extend(ttft.reduce(f64::min));
        }
        self.sent.extend(beginnings.iter().map(|beginning| beginning.hash));
    }

    /// The bound over the measured requests; `None` if there were none.
    pub(crate) fn bound(self) -> Option<Bound> {
        let ttft_ms: Latency<f64> = latency(self.ttft_ms)?;
        Some(Bound { hit_rate: self.cached_tokens as f64 / self.prompt_tokens as f64, ttft_ms })
    }
}

/// TTFT of a prompt that is alone on an instance.
fn ttft_ms(profile: &Profile, prompt_tokens: u32, cached_tokens: u32) -> f64 {
    let mut time = profile.arrival_delay(prompt_tokens) + profile.overhead_after;
    let mut computed = cached_tokens;
    while computed < prompt_tokens {
        let tokens = (prompt_tokens - computed).min(profile.max_num_batched_tokens.max(1));
        let (new, before) = (f64::from(tokens), f64::from(computed));
        let work = StepWork { tokens, prefill_pairs: new * before + new * new / 2.0, decode_context: 0 };
        time += profile.step_duration(&work);
        computed += tokens;
    }
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isotherm_engine_model::{Engine, EngineRequest, Event, RequestId};

    use super::*;

    #[test]
    fn the_time_of_a_lone_prompt_is_what_the_engine_takes() {
        for prompt_tokens in [100, 5_900, 20_000] {
            let profile = Profile::default();
            let mut engine = Engine::new(profile.clone());
            let request =
                EngineRequest { id: RequestId(1), chain: Default::default(), prompt_tokens, output_tokens: 5 };
            engine.submit(Duration::ZERO, request).unwrap();
            let mut now = engine.next_arrival().unwrap();
            let mut events = Vec::new();
            while !events.iter().any(|event| matches!(event, Event::FirstToken { .. })) {
                now = engine.begin_step(now).unwrap();
                engine.end_step(&mut events);
            }
            let expected = (now + profile.overhead_after).as_secs_f64() * 1e3;
            assert!((ttft_ms(&profile, prompt_tokens, 0) - expected).abs() < 0.001);
        }
    }
}
