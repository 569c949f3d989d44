//! Strategies over the same seeds, side by side: figures, what varies, and the change against a baseline.

mod digest;
pub mod html;
pub mod picture;
mod resample;
mod text;

use serde::Serialize;

pub use self::digest::Digest;
pub use self::text::text;
use crate::measures::{Measures, change};
use crate::observation::Observation;
use crate::percentile::mean;
use crate::summary::{Change, Detail, Moment};
use crate::{Bound, Report, StrategySummary};

/// A report of runs that were repeated with several seeds, the same ones for each strategy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    #[serde(flatten)]
    pub report: Report,
    /// What it is about, in a line.
    pub title: String,
    /// How many seeds; the report's seed is the first, the others follow it.
    pub seeds: u32,
    /// Engine time of each run, and how much of it was warm-up.
    pub duration_seconds: f64,
    pub warm_up_seconds: f64,
    /// What no routing can beat; `None` if nothing was measured.
    pub bound: Option<Bound>,
    /// What counts as a good answer, and the price of an instance.
    pub objectives: Objectives,
    /// What was chosen so that the outcome fits a measurement of others.
    pub fitted: Vec<String>,
    /// What follows from the model.
    pub predicted: Vec<String>,
    /// What happened to the fleet.
    pub changes: Vec<FleetNote>,
}

/// What is wanted, and what it may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Objectives {
    /// The first token comes within this time.
    pub ttft_ms: Option<f64>,
    /// The tokens after it come at this mean distance or less.
    pub token_gap_ms: Option<f64>,
    /// In any currency.
    pub price_per_instance_hour: Option<f64>,
}

/// Something that happened to the fleet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetNote {
    /// Since the run's start.
    pub seconds: f64,
    /// In a few words.
    pub what: String,
}

impl Objectives {
    fn are_given(&self) -> bool {
        self.ttft_ms.is_some() || self.token_gap_ms.is_some()
    }

    fn are_met(&self, observation: &Observation) -> bool {
        let Some(ttft) = observation.ttft else { return false };
        let after = (observation.end - observation.send - ttft) as f64 / 1e6;
        let gap = after / f64::from(observation.output_tokens.saturating_sub(1).max(1));
        self.ttft_ms.is_none_or(|most| ttft as f64 / 1e6 <= most) && self.token_gap_ms.is_none_or(|most| gap <= most)
    }
}

/// Summarises runs: for each strategy its name and its runs, seed by seed. The first is what changes refer to.
pub fn summarise(strategies: &[(String, Vec<Digest>)]) -> Vec<StrategySummary> {
    let seeds = strategies.iter().map(|(_, digests)| digests.len()).min().unwrap_or(0);
    let picks = resample::picks(seeds);
    let mut baseline = None;
    let mut summaries = Vec::new();
    for (strategy, digests) in strategies {
        let figures: Vec<Measures<f64>> = digests.iter().map(|digest| digest.figures).collect();
        let measures = means(&figures);
        let draws = resample::draws(digests, &picks);
        let change = baseline.as_ref().map(|(before, drawn): &(Measures<f64>, Vec<Measures<f64>>)| {
            let changes: Vec<_> = drawn.iter().zip(&draws).map(|(before, after)| change(before, after)).collect();
            Change { measures: change(before, &measures), ci: crate::measures::bounds(&changes) }
        });
        summaries.push(StrategySummary {
            strategy: strategy.clone(),
            requests: digests.iter().map(|digest| digest.requests).sum(),
            errors: digests.iter().map(|digest| digest.errors).sum(),
            errors_by_kind: Default::default(),
            measures,
            predicted_hit_rate: None,
            ci: (!draws.is_empty()).then(|| crate::measures::bounds(&draws)),
            change,
            detail: Some(detail(digests)),
        });
        baseline.get_or_insert((measures, draws));
    }
    summaries
}

/// Every figure's mean over runs.
fn means(figures: &[Measures<f64>]) -> Measures<f64> {
    Measures::combined(figures, &|_, values| mean(&values))
}

fn detail(digests: &[Digest]) -> Detail {
    Detail {
        ttft_quantiles_ms: mean_of(digests, |digest| &digest.quantiles),
        instance_shares: mean_of(digests, |digest| &digest.shares),
        timeline: mean_timeline(digests),
    }
}

/// Place by place the mean of lists.
fn mean_of(digests: &[Digest], list: fn(&Digest) -> &Vec<f64>) -> Vec<f64> {
    let longest = digests.iter().map(|digest| list(digest).len()).max().unwrap_or(0);
    let at = |place: usize| digests.iter().filter_map(|digest| list(digest).get(place).copied()).collect::<Vec<_>>();
    (0..longest).filter_map(|place| mean(&at(place))).collect()
}

fn mean_timeline(digests: &[Digest]) -> Vec<Moment> {
    let Some(first) = digests.first() else { return Vec::new() };
    let at = |place: usize, of: fn(&Moment) -> Option<f64>| {
        let known: Vec<f64> = digests.iter().filter_map(|digest| of(&digest.timeline[place])).collect();
        mean(&known)
    };
    let moment = |(place, moment): (usize, &Moment)| Moment {
        seconds: moment.seconds,
        hit_rate: at(place, |moment| moment.hit_rate),
        ttft_p50_ms: at(place, |moment| moment.ttft_p50_ms),
        ttft_p90_ms: at(place, |moment| moment.ttft_p90_ms),
    };
    first.timeline.iter().enumerate().map(moment).collect()
}

#[cfg(test)]
mod tests;
