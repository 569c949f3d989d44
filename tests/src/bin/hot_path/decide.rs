//! One request of 32 KB among a hundred instances: chosen for one, its first token, its usage, its end.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Duration;

use isotherm_core::{
    InstanceSpec, PrefixAware, PrefixKey, Prompt, Report, Rollout, RouteRequest, Routing, Slot, Strategy, Time,
    VariantState,
};
use rand_pcg::Pcg64;

use crate::extract;

const INSTANCES: u32 = 100;
const DOCUMENTS: u64 = 64;
const QUESTIONS: u64 = 8;
/// Requests that are under way at any time.
const UNDER_WAY: usize = 200;

pub(crate) fn prefix_aware() -> impl FnMut() {
    let keys: Vec<PrefixKey> = bodies().iter().filter_map(|body| extract::key(body)).collect();
    let mut next = 0;
    let mut variant = Variant::new(Strategy::PrefixAware(PrefixAware::default()));
    move || {
        next = (next + 1) % keys.len();
        variant.serve(&RouteRequest { key: Some(keys[next]), ..RouteRequest::default() });
    }
}

pub(crate) fn adaptive() -> impl FnMut() {
    let prompts: Vec<Prompt> = bodies().iter().filter_map(|body| extract::prompt(body)).collect();
    let mut next = 0;
    let mut variant = Variant::new(Strategy::Adaptive);
    move || {
        next = (next + 1) % prompts.len();
        variant.serve(&RouteRequest { prompt: Some(&prompts[next]), ..RouteRequest::default() });
    }
}

/// In an order in which equal beginnings do not follow each other.
fn bodies() -> Vec<Vec<u8>> {
    (0..QUESTIONS).flat_map(|question| (0..DOCUMENTS).map(move |document| extract::body(document, question))).collect()
}

/// A variant under steady load: each request that comes ends the oldest one.
struct Variant {
    state: VariantState<u32>,
    under_way: VecDeque<Slot>,
    rng: Pcg64,
    now: Duration,
}

impl Variant {
    fn new(strategy: Strategy) -> Variant {
        let mut state =
            VariantState::new(Routing { strategy, rollout: Rollout::FULL }, Time::from_elapsed(Duration::ZERO));
        for ordinal in 0..INSTANCES {
            state.add(InstanceSpec::new(format!("instance-{ordinal}").as_str()), ordinal);
        }
        let rng = Pcg64::new(1, 2);
        Variant { state, under_way: VecDeque::with_capacity(UNDER_WAY + 1), rng, now: Duration::ZERO }
    }

    fn serve(&mut self, request: &RouteRequest<'_>) {
        self.now += Duration::from_millis(1);
        let now = Time::from_elapsed(self.now);
        if let Ok(choice) = self.state.choose(black_box(request), now, &mut self.rng) {
            black_box(&choice.decision);
            self.under_way.push_back(choice.slot);
        }
        if self.under_way.len() > UNDER_WAY
            && let Some(mut slot) = self.under_way.pop_front()
        {
            self.state.first_token(&mut slot, now);
            let report = Report { prompt_tokens: Some(7_800), cached_tokens: Some(7_000), output_tokens: Some(100) };
            self.state.report(&slot, &report);
            self.state.finish(slot);
        }
    }
}
