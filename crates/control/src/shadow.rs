//! Shadow strategies: what each strategy would have had from the instances' caches, on the traffic as it comes.
//!
//! The requests that diagnostics keep run through the routing code that serves once more for each strategy, on caches that
//! are lists of hashes as long as the engines'. Once a second, on the control runtime, within a budget of time.

mod cache;
mod figures;
mod rival;
mod sample;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use isotherm_core::{Availability, InstanceId, InstanceSpec, Routing, Time};
use isotherm_fleet::{Fleet, Variant};
use isotherm_telemetry::{Ended, Metrics, TracedRequest};
use rustix::time::{ClockId, clock_gettime};

pub(crate) use self::figures::ShadowFigures;
use self::figures::{Pace, Tally};
use self::rival::{Believed, Rival, candidates};
use self::sample::Sample;

/// How much processor time all strategies together may take for the requests of one second. Beyond it a smaller sample is
/// taken from then on.
const BUDGET: Duration = Duration::from_millis(30);

/// How much they take at most until then.
const LIMIT: Duration = Duration::from_millis(120);

/// What is left after a second of what was counted: half of it in five minutes.
const KEPT_PER_SECOND: f64 = 0.997_692;

/// After so long a request that has not ended is given up.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(1_800);

/// The most requests under way that are followed.
const MOST_UNDER_WAY: usize = 20_000;

/// All variants' shadow strategies.
#[derive(Default)]
pub(crate) struct Shadows {
    /// How many requests were ever taken in, as far as they were looked at.
    taken: u64,
    missed: u64,
    under_way: Vec<Followed>,
    sample: Sample,
    variants: BTreeMap<Name, Shadow>,
}

/// An endpoint's and a variant's name.
pub(crate) type Name = (Arc<str>, Arc<str>);

/// How much of some prompts the instances were to have cached, by what had been sent to them before. In tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Predicted {
    pub(crate) cached: f64,
    pub(crate) prompts: f64,
}

/// A request that has arrived and is not over yet.
struct Followed {
    number: u64,
    request: Arc<TracedRequest>,
    /// Whether the strategies have seen it arrive; of others they hear nothing.
    is_looked_at: bool,
    has_first_token: bool,
}

/// One variant's shadow strategies.
struct Shadow {
    routing: Routing,
    rivals: Vec<Rival>,
    /// The requests where they really went: tells how well caches are reckoned.
    real: Believed,
    tally: Tally,
    pace: Pace,
    predicted: Predicted,
    instances: usize,
    missed: f64,
}

/// What happens to a request, in the order in which it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Ends,
    FirstToken,
    Arrives,
}

impl Shadows {
    /// Takes in what has happened since it was called last. Costs nothing while diagnostics are off.
    pub(crate) fn observe(&mut self, fleet: &Fleet, metrics: &Metrics) {
        if !metrics.traces().is_on() {
            *self = Shadows { taken: self.taken, ..Shadows::default() };
            return;
        }
        let now = fleet.clock().now();
        let fresh = metrics.traces().since(self.taken);
        let lost = fresh.taken.saturating_sub(self.taken).saturating_sub(fresh.requests.len() as u64);
        let missed = metrics.traces().missed();
        let first = fresh.taken - fresh.requests.len() as u64;
        self.taken = fresh.taken;
        self.follow(fleet, metrics);
        let arrived: Vec<Followed> = (first..)
            .zip(fresh.requests)
            .map(|(number, request)| Followed { number, request, is_looked_at: false, has_first_token: false })
            .collect();
        let newly_missed = missed.saturating_sub(std::mem::replace(&mut self.missed, missed)) + lost;
        self.advance(arrived, now, newly_missed as f64);
        self.publish(metrics);
    }

    /// Keeps up with the fleet: variants, their instances, what these hold.
    fn follow(&mut self, fleet: &Fleet, metrics: &Metrics) {
        let now = fleet.clock().now();
        let topology = fleet.topology();
        let mut there = BTreeMap::new();
        for variant in topology.variants() {
            there.insert((Arc::clone(variant.endpoint()), Arc::clone(variant.name())), variant);
        }
        let stays = |name: &Name, shadow: &Shadow| {
            there.get(name).is_some_and(|variant: &&Arc<Variant>| variant.routing() == shadow.routing)
        };
        let gone = self.variants.extract_if(.., |name, shadow| !stays(name, shadow));
        for ((endpoint, variant), _) in gone {
            metrics.shadows().forget(&endpoint, &variant);
        }
        for (name, variant) in there {
            let shadow = self.variants.entry(name).or_insert_with(|| Shadow::new(variant.routing()));
            shadow.follow(variant, self.sample.share(), now);
        }
    }

    /// What happened, in the order in which it did.
    fn advance(&mut self, arrived: Vec<Followed>, now: Time, missed: f64) {
        let begun = processor_time();
        let spent = || processor_time().saturating_sub(begun);
        let came = arrived.len();
        let arrived: Vec<Followed> =
            arrived.into_iter().filter(|followed| self.sample.takes(&followed.request.trail)).collect();
        let taken = arrived.len();
        let missed = missed + (came - taken) as f64;
        let room = MOST_UNDER_WAY.saturating_sub(self.under_way.len());
        let mut missed = missed + taken.saturating_sub(room) as f64;
        let mut steps: Vec<(Time, Step, usize)> = Vec::new();
        let before = self.under_way.len();
        self.under_way.extend(arrived.into_iter().take(room));
        for (index, followed) in self.under_way.iter_mut().enumerate() {
            let request = &followed.request;
            if index >= before {
                steps.push((request.arrived, Step::Arrives, index));
            }
            let Some(ended) = request.ended() else { continue };
            if let Some(elapsed) = ended.time_to_first_token
                && !std::mem::replace(&mut followed.has_first_token, true)
            {
                steps.push((request.arrived + elapsed, Step::FirstToken, index));
            }
            steps.push((ended.at, Step::Ends, index));
        }
        steps.sort_unstable_by_key(|(at, step, index)| (*at, *step, *index));
        for (at, step, index) in steps {
            let Followed { number, request, is_looked_at, .. } = &mut self.under_way[index];
            let name = (Arc::clone(&request.endpoint), Arc::clone(&request.variant));
            let Some(shadow) = self.variants.get_mut(&name) else { continue };
            match (step, request.ended()) {
                (Step::Arrives, _) if spent() > LIMIT => missed += 1.0,
                (Step::Arrives, _) => {
                    *is_looked_at = true;
                    shadow.arrives(*number, request, at);
                }
                _ if !*is_looked_at => {}
                (Step::FirstToken, _) => shadow.first_token(*number, request, at),
                (Step::Ends, Some(ended)) => shadow.ends(*number, request, ended),
                (Step::Ends, None) => {}
            }
        }
        let is_over = |followed: &Followed| {
            followed.request.ended().is_some() || now.since(followed.request.arrived) > GIVEN_UP_AFTER
        };
        for gone in self.under_way.extract_if(.., |followed| is_over(followed)) {
            let name = (Arc::clone(&gone.request.endpoint), Arc::clone(&gone.request.variant));
            if let Some(shadow) = self.variants.get_mut(&name) {
                shadow.rivals.iter_mut().for_each(|rival| rival.give_up(gone.number));
            }
        }
        self.sample.adjust(came, taken, spent(), BUDGET);
        let share = 1.0 / self.variants.len().max(1) as f64;
        for shadow in self.variants.values_mut() {
            shadow.fade(missed * share);
        }
    }

    fn publish(&mut self, metrics: &Metrics) {
        for ((endpoint, variant), shadow) in &mut self.variants {
            for rival in &mut shadow.rivals {
                let (prompt, cached) = rival.take_unpublished();
                metrics.shadows().count(endpoint, variant, rival.name(), prompt, cached);
            }
        }
    }

    /// What was predicted of each variant's requests since this was asked last.
    pub(crate) fn take_predictions(&mut self) -> BTreeMap<Name, Predicted> {
        let take = |(name, shadow): (&Name, &mut Shadow)| (name.clone(), std::mem::take(&mut shadow.predicted));
        self.variants.iter_mut().map(take).collect()
    }

    /// What each strategy would have had for a variant; `None` while nothing was seen of it.
    pub(crate) fn of(&self, endpoint: &Arc<str>, variant: &Arc<str>, price: Option<f64>) -> Option<ShadowFigures> {
        let shadow = self.variants.get(&(Arc::clone(endpoint), Arc::clone(variant)))?;
        ShadowFigures::of(shadow, price)
    }
}

impl Shadow {
    fn new(routing: Routing) -> Shadow {
        Shadow {
            routing,
            rivals: candidates(routing),
            real: Believed::default(),
            tally: Tally::default(),
            pace: Pace::default(),
            predicted: Predicted::default(),
            instances: 0,
            missed: 0.0,
        }
    }

    /// Keeps up with the instances. Of their caches, the part of the sample is theirs.
    fn follow(&mut self, variant: &Variant, sample: f64, now: Time) {
        let instances = variant.instances(now);
        self.instances = instances.iter().filter(|one| one.availability == Availability::Up).count();
        let known: Vec<(InstanceSpec, bool, Option<u64>)> = instances
            .iter()
            .map(|one| {
                let id: InstanceId = one.instance.id().clone();
                let spec =
                    InstanceSpec { weight: one.weight, max_in_flight: one.max_in_flight, ..InstanceSpec::new(id) };
                let figures = one.instance.engine().figures;
                let tokens = figures.and_then(|(figures, _)| figures.cache_tokens);
                let tokens = tokens.map(|tokens| (tokens as f64 * sample) as u64);
                (spec, one.availability == Availability::Up, tokens)
            })
            .collect();
        let tokens_per_byte = self.tally.tokens_per_byte();
        self.real.follow(known.iter().map(|(spec, _, tokens)| (&spec.id, *tokens)), tokens_per_byte);
        for rival in &mut self.rivals {
            rival.follow(&known, tokens_per_byte, self.real.learned_capacity());
        }
    }

    fn arrives(&mut self, number: u64, request: &TracedRequest, at: Time) {
        if let Some(chosen) = &request.chosen {
            self.real.arrives(number, chosen, &request.trail);
        }
        self.rivals.iter_mut().for_each(|rival| rival.arrives(number, request, at));
    }

    fn first_token(&mut self, number: u64, request: &TracedRequest, at: Time) {
        self.real.computed(number, &request.trail, 0);
        self.rivals.iter_mut().for_each(|rival| rival.first_token(number, request, at));
    }

    fn ends(&mut self, number: u64, request: &TracedRequest, ended: &Ended) {
        let is_answered = (200..300).contains(&ended.status);
        let bytes = request.trail.bytes();
        let prompt =
            ended.prompt_tokens.map_or(f64::from(bytes) * self.tally.tokens_per_byte(), |tokens| tokens as f64);
        let answer = (ended.output_tokens.unwrap_or_default() as f64 * f64::from(bytes) / prompt.max(1.0)) as u32;
        if is_answered {
            self.real.computed(number, &request.trail, answer);
        }
        let believed = self.real.ends(number);
        if is_answered {
            self.tally.take(ended, bytes);
            self.pace.take(ended);
            if let (Some(held), Some(reported), Some(_)) = (believed, ended.cached_tokens, ended.prompt_tokens) {
                let believed = cached(held, bytes, prompt);
                self.predicted.cached += believed;
                self.predicted.prompts += prompt;
                self.tally.compare(prompt, believed, reported as f64);
                self.real.learn(believed, reported as f64, prompt);
            }
        }
        for rival in &mut self.rivals {
            rival.ends(number, request, is_answered.then_some((prompt, answer, ended.output_tokens)));
        }
    }

    fn fade(&mut self, missed: f64) {
        self.missed = KEPT_PER_SECOND * self.missed + missed;
        self.tally.fade(KEPT_PER_SECOND);
        self.pace.fade(KEPT_PER_SECOND);
        self.rivals.iter_mut().for_each(|rival| rival.fade(KEPT_PER_SECOND));
    }
}

/// How long this thread has computed.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Cached tokens of a prompt of which so many bytes are held: whole blocks of 16, and never the last token.
fn cached(held_bytes: u32, bytes: u32, prompt_tokens: f64) -> f64 {
    let tokens = f64::from(held_bytes.min(bytes)) / f64::from(bytes.max(1)) * prompt_tokens;
    (tokens.min(prompt_tokens - 1.0) / 16.0).floor().max(0.0) * 16.0
}
