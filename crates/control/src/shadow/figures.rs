//! What shadow strategies tell: hit rates beside each other, what is saved, and whether another strategy would do better.

use isotherm_core::Strategy;
use isotherm_telemetry::Ended;
use serde::Serialize;

use super::Shadow;
use super::rival::{Rival, threshold};

/// Another strategy is recommended where it hits so much more.
const MARGIN: f64 = 0.03;

/// Nothing is recommended from fewer requests.
const ENOUGH_REQUESTS: f64 = 300.0;

/// Nothing is recommended where more than the rest was left out.
const ENOUGH_COVERAGE: f64 = 0.9;

/// A strategy whose busiest instance has so many times the share of that of the one in force is not recommended.
const MORE_SKEW: f64 = 1.5;

/// The strategies of a variant beside each other, over the last minutes.
#[derive(Debug, Serialize)]
pub(crate) struct ShadowFigures {
    /// Requests that were looked at, fading over minutes.
    pub(crate) requests: u64,
    /// Which share of the variant's requests that is, 0 to 1: where there are many, those of some beginnings.
    pub(crate) coverage: f64,
    /// What engines reported of these requests.
    pub(crate) reported_hit_rate: Option<f64>,
    /// What the same caches give for where the requests really went: how well they are reckoned.
    pub(crate) reckoned_hit_rate: Option<f64>,
    /// By hit rate, the best one first.
    pub(crate) strategies: Vec<RivalFigures>,
    /// What the strategy in force saves beside `RANDOM`.
    pub(crate) saved: Option<Saved>,
    /// Which strategy would do better, where one clearly would.
    pub(crate) better: Option<Better>,
}

/// One strategy.
#[derive(Debug, Serialize)]
pub(crate) struct RivalFigures {
    pub(crate) strategy: &'static str,
    pub(crate) prefix_length: Option<u32>,
    pub(crate) concurrency_threshold: Option<u32>,
    pub(crate) in_force: bool,
    pub(crate) hit_rate: Option<f64>,
    /// The share of requests of the busiest instance.
    pub(crate) busiest_share: Option<f64>,
}

/// What is saved in an hour like the last minutes.
#[derive(Debug, Serialize)]
pub(crate) struct Saved {
    /// Prompt tokens that need not be computed.
    pub(crate) tokens_per_hour: f64,
    /// How long an instance computes them; `None` before times to first token told its pace.
    pub(crate) instance_seconds_per_hour: Option<f64>,
    /// The same in money, where a price is set.
    pub(crate) money_per_hour: Option<f64>,
}

/// A strategy that would do better.
#[derive(Debug, Serialize)]
pub(crate) struct Better {
    pub(crate) strategy: String,
    /// By how much its hit rate is higher, 0 to 1.
    pub(crate) hit_rate_gain: f64,
}

impl ShadowFigures {
    pub(super) fn of(shadow: &Shadow, price: Option<f64>) -> Option<ShadowFigures> {
        let tally = &shadow.tally;
        if tally.requests < 1.0 {
            return None;
        }
        let coverage = tally.requests / (tally.requests + shadow.missed);
        let mut strategies: Vec<RivalFigures> =
            shadow.rivals.iter().enumerate().map(|(at, rival)| RivalFigures::of(rival, at == 0)).collect();
        strategies.sort_by(|one, other| other.hit_rate.unwrap_or(-1.0).total_cmp(&one.hit_rate.unwrap_or(-1.0)));
        Some(ShadowFigures {
            requests: tally.requests.round() as u64,
            coverage,
            reported_hit_rate: (tally.compared > 0.0).then(|| tally.reported / tally.compared),
            reckoned_hit_rate: (tally.compared > 0.0).then(|| tally.believed / tally.compared),
            strategies,
            saved: saved(shadow, coverage, price),
            better: better(shadow, coverage),
        })
    }
}

impl RivalFigures {
    fn of(rival: &Rival, in_force: bool) -> RivalFigures {
        let strategy = rival.strategy();
        RivalFigures {
            strategy: strategy.name().as_str(),
            prefix_length: match strategy {
                Strategy::PrefixAware(rules) => Some(rules.prefix_length.get()),
                _ => None,
            },
            concurrency_threshold: threshold(strategy).map(|threshold| threshold.get()),
            in_force,
            hit_rate: rival.hit_rate(),
            busiest_share: rival.busiest_share(),
        }
    }
}

/// What was looked at stands for all requests.
fn saved(shadow: &Shadow, coverage: f64, price: Option<f64>) -> Option<Saved> {
    let rate = |wanted: &dyn Fn(&Rival) -> bool| shadow.rivals.iter().find(|rival| wanted(rival))?.hit_rate();
    let random = rate(&|rival| rival.strategy() == Strategy::Random)?;
    let in_force = shadow.rivals.first()?.hit_rate()?;
    let tokens = (in_force - random) * shadow.tally.prompt / coverage / shadow.tally.seconds.max(1.0) * 3_600.0;
    let seconds = shadow.pace.seconds_per_token().map(|pace| tokens * pace);
    Some(Saved {
        tokens_per_hour: tokens,
        instance_seconds_per_hour: seconds,
        money_per_hour: seconds.zip(price).map(|(seconds, price)| seconds / 3_600.0 * price),
    })
}

/// Hit rates alone decide, where load is spread alike: latencies are for the simulator to tell.
fn better(shadow: &Shadow, coverage: f64) -> Option<Better> {
    if shadow.tally.requests < ENOUGH_REQUESTS || coverage < ENOUGH_COVERAGE {
        return None;
    }
    let in_force = shadow.rivals.first()?;
    let skew = in_force.busiest_share()?.max(1.0 / shadow.instances.max(1) as f64) * MORE_SKEW;
    let spreads = |rival: &&Rival| rival.busiest_share().is_some_and(|share| share <= skew);
    let best = shadow
        .rivals
        .iter()
        .filter(spreads)
        .max_by(|one, other| one.hit_rate().unwrap_or_default().total_cmp(&other.hit_rate().unwrap_or_default()))?;
    let gain = best.hit_rate()? - in_force.hit_rate()?;
    (gain >= MARGIN).then(|| Better { strategy: best.name().to_owned(), hit_rate_gain: gain })
}

/// Fading sums over requests that were answered.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) requests: f64,
    /// Seconds that the sums stand for.
    pub(super) seconds: f64,
    prompt: f64,
    bytes: f64,
    /// Prompt tokens of requests of which the engine told what was cached.
    compared: f64,
    believed: f64,
    reported: f64,
}

impl Tally {
    pub(super) fn take(&mut self, ended: &Ended, bytes: u32) {
        self.requests += 1.0;
        if let Some(tokens) = ended.prompt_tokens {
            self.prompt += tokens as f64;
            self.bytes += f64::from(bytes);
        }
    }

    pub(super) fn compare(&mut self, prompt: f64, believed: f64, reported: f64) {
        self.compared += prompt;
        self.believed += believed;
        self.reported += reported;
    }

    /// Those of English prose before engines have said.
    pub(super) fn tokens_per_byte(&self) -> f64 {
        if self.bytes > 0.0 { self.prompt / self.bytes } else { 1.0 / 4.2 }
    }

    pub(super) fn fade(&mut self, kept: f64) {
        self.seconds = self.seconds * kept + 1.0;
        for sum in [
            &mut self.requests,
            &mut self.prompt,
            &mut self.bytes,
            &mut self.compared,
            &mut self.believed,
            &mut self.reported,
        ] {
            *sum *= kept;
        }
    }
}

/// How long an instance takes for a token of a prompt: the slope of times to first token over uncached tokens.
#[derive(Debug, Default)]
pub(super) struct Pace {
    count: f64,
    tokens: f64,
    seconds: f64,
    tokens_squared: f64,
    product: f64,
}

impl Pace {
    pub(super) fn take(&mut self, ended: &Ended) {
        let (Some(first), Some(prompt), Some(cached)) =
            (ended.time_to_first_token, ended.prompt_tokens, ended.cached_tokens)
        else {
            return;
        };
        let (tokens, seconds) = (prompt.saturating_sub(cached) as f64, first.as_secs_f64());
        self.count += 1.0;
        self.tokens += tokens;
        self.seconds += seconds;
        self.tokens_squared += tokens * tokens;
        self.product += tokens * seconds;
    }

    pub(super) fn seconds_per_token(&self) -> Option<f64> {
        let spread = self.tokens_squared - self.tokens * self.tokens / self.count.max(1.0);
        let slope = (self.product - self.tokens * self.seconds / self.count.max(1.0)) / spread;
        (self.count >= 30.0 && spread > 0.0 && slope > 0.0).then_some(slope)
    }

    pub(super) fn fade(&mut self, kept: f64) {
        for sum in [&mut self.count, &mut self.tokens, &mut self.seconds, &mut self.tokens_squared, &mut self.product] {
            *sum *= kept;
        }
    }
}
