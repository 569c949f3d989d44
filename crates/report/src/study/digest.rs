//! What is kept of a run: its figures, and the sums of its parts from which other figures can be drawn.

use super::Objectives;
use crate::measures::{Latency, Measures, Share, latency};
use crate::observation::{FleetPart, Observation, PARTS, Run};
use crate::percentile::percentile;
use crate::summary::Moment;

/// A run in a few kilobytes.
#[derive(Clone, Debug)]
pub struct Digest {
    pub(super) figures: Measures<f64>,
    pub(super) requests: u64,
    pub(super) errors: u64,
    pub(super) parts: Vec<Part>,
    pub(super) timeline: Vec<Moment>,
    pub(super) shares: Vec<f64>,
    pub(super) quantiles: Vec<f64>,
    objectives: Objectives,
}

/// Into how many stretches a run's course is cut.
const STRETCHES: usize = 60;

impl Digest {
    /// Works out the figures of a run.
    pub fn of(run: &Run, objectives: &Objectives) -> Digest {
        let mut parts = vec![Part::default(); PARTS];
        for (part, fleet) in parts.iter_mut().zip(&run.parts) {
            part.fleet = *fleet;
            part.seconds = (run.window.end - run.window.start) as f64 / 1e9 / PARTS as f64;
        }
        let mut times = Vec::new();
        for observation in &run.observations {
            if let Some(part) = run.part(observation.send) {
                parts[part].send(observation, run.instances.len());
                times.extend(observation.ttft.filter(|_| !observation.failed).map(milliseconds));
            }
            if let Some(part) = run.part(observation.end) {
                parts[part].end(observation, objectives);
            }
        }
        let mut total = Part::default();
        parts.iter_mut().for_each(|part| {
            part.times.sort_unstable();
            total.add(part, 1.0);
        });
        times.sort_unstable_by(f64::total_cmp);
        let quantiles = (0..=100).filter_map(|percent| percentile(&times, f64::from(percent))).collect();
        Digest {
            figures: total.figures(latency(times), objectives),
            requests: total.requests as u64,
            errors: total.failed as u64,
            timeline: timeline(run),
            shares: total.instances.iter().map(|count| count / total.instances.iter().sum::<f64>()).collect(),
            quantiles,
            parts,
            objectives: *objectives,
        }
    }

    /// The figures of a run in which each part happened as often as `weights` says.
    pub(super) fn weighted(&self, weights: &[u8; PARTS], histogram: &mut Histogram) -> Measures<f64> {
        let mut total = Part::default();
        histogram.clear();
        for (part, &weight) in self.parts.iter().zip(weights).filter(|(_, weight)| **weight > 0) {
            total.add(part, f64::from(weight));
            part.times.iter().for_each(|&bin| histogram.add(bin, u32::from(weight)));
        }
        total.figures(histogram.latency(), &self.objectives)
    }
}

/// The sums of one part of the measured time, or of several.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    seconds: f64,
    requests: f64,
    failed: f64,
    spilled: f64,
    /// Of the requests whose cached tokens are known.
    prompt_tokens: f64,
    cached_tokens: f64,
    completed: f64,
    good: f64,
    tokens: f64,
    output_tokens: f64,
    instances: Vec<f64>,
    fleet: FleetPart,
    /// The times to first token, as bins of a [`Histogram`], ascending.
    times: Vec<u16>,
    instance_seconds: f64,
    evicted_blocks: Option<f64>,
    accelerator_seconds: Option<f64>,
    busy_seconds: Option<f64>,
}

impl Part {
    fn send(&mut self, observation: &Observation, instances: usize) {
        self.requests += 1.0;
        self.failed += f64::from(u8::from(observation.failed));
        self.spilled += f64::from(u8::from(observation.spilled));
        self.instances.resize(instances, 0.0);
        if let Some(instance) = observation.instance {
            self.instances[instance as usize] += 1.0;
        }
        if observation.failed {
            return;
        }
        if let Some(cached_tokens) = observation.cached_tokens {
            self.prompt_tokens += f64::from(observation.prompt_tokens);
            self.cached_tokens += f64::from(cached_tokens);
        }
        self.times.extend(observation.ttft.map(Histogram::bin));
    }

    fn end(&mut self, observation: &Observation, objectives: &Objectives) {
        if !observation.failed {
            self.completed += 1.0;
            self.output_tokens += f64::from(observation.output_tokens);
            self.tokens += f64::from(observation.output_tokens) + f64::from(observation.prompt_tokens);
            self.good += f64::from(u8::from(objectives.are_met(observation)));
        }
    }

    fn add(&mut self, other: &Part, weight: f64) {
        let mut add = |sum: fn(&mut Part) -> &mut f64, value: f64| *sum(self) += value * weight;
        add(|part| &mut part.seconds, other.seconds);
        add(|part| &mut part.requests, other.requests);
        add(|part| &mut part.failed, other.failed);
        add(|part| &mut part.spilled, other.spilled);
        add(|part| &mut part.prompt_tokens, other.prompt_tokens);
        add(|part| &mut part.cached_tokens, other.cached_tokens);
        add(|part| &mut part.completed, other.completed);
        add(|part| &mut part.good, other.good);
        add(|part| &mut part.tokens, other.tokens);
        add(|part| &mut part.output_tokens, other.output_tokens);
        add(|part| &mut part.instance_seconds, other.fleet.instance_time as f64 / 1e9);
        let add_known = |sum: &mut Option<f64>, value: Option<u64>, unit: f64| {
            if let Some(value) = value {
                *sum.get_or_insert(0.0) += value as f64 / unit * weight;
            }
        };
        add_known(&mut self.evicted_blocks, other.fleet.evicted_blocks, 1.0);
        add_known(&mut self.accelerator_seconds, other.fleet.accelerator_time, 1e9);
        add_known(&mut self.busy_seconds, other.fleet.busy_accelerator_time, 1e9);
        if self.instances.len() < other.instances.len() {
            self.instances.resize(other.instances.len(), 0.0);
        }
        self.instances.iter_mut().zip(&other.instances).for_each(|(sum, count)| *sum += count * weight);
    }

    fn figures(&self, ttft_ms: Option<Latency<f64>>, objectives: &Objectives) -> Measures<f64> {
        let per = |sum: f64, whole: f64| (whole > 0.0).then(|| sum / whole);
        let served: f64 = self.instances.iter().sum();
        let extreme = |pick: fn(f64, f64) -> f64| self.instances.iter().copied().reduce(pick);
        let cost = objectives.price_per_instance_hour.map(|price| price * self.instance_seconds / 3_600.0);
        Measures {
            ttft_ms,
            hit_rate: per(self.cached_tokens, self.prompt_tokens),
            requests_per_second: per(self.completed, self.seconds),
            output_tokens_per_second: per(self.output_tokens, self.seconds),
            spill_rate: per(self.spilled, self.requests),
            instance_share: extreme(f64::min)
                .zip(extreme(f64::max))
                .filter(|_| served > 0.0)
                .map(|(min, max)| Share { min: min / served, max: max / served }),
            goodput_per_second: per(self.good, self.seconds).filter(|_| objectives.are_given()),
            evicted_blocks_per_second: self.evicted_blocks.and_then(|blocks| per(blocks, self.seconds)),
            gpu_utilisation: self.busy_seconds.and_then(|busy| per(busy, self.accelerator_seconds?)),
            gpu_seconds_per_million_tokens: self.accelerator_seconds.and_then(|time| per(1e6 * time, self.tokens)),
            cost_per_million_tokens: cost.and_then(|cost| per(1e6 * cost, self.tokens)),
        }
    }
}

/// Times to first token, counted in bins of a quarter percent.
#[derive(Debug)]
pub(super) struct Histogram {
    counts: Vec<u32>,
    total: u64,
}

/// Bins per factor e.
const BINS: f64 = 400.0;
/// The upper end of the lowest bin, in milliseconds.
const LEAST: f64 = 0.1;

impl Histogram {
    pub(super) fn new() -> Histogram {
        Histogram { counts: vec![0; usize::from(u16::MAX)], total: 0 }
    }

    fn bin(nanoseconds: u64) -> u16 {
        ((milliseconds(nanoseconds) / LEAST).max(1.0).ln() * BINS) as u16
    }

    fn clear(&mut self) {
        self.counts.clear();
        self.total = 0;
    }

    fn add(&mut self, bin: u16, count: u32) {
        let bin = usize::from(bin);
        if self.counts.len() <= bin {
            self.counts.resize(bin + 1, 0);
        }
        self.counts[bin] += count;
        self.total += u64::from(count);
    }

    fn latency(&self) -> Option<Latency<f64>> {
        let mut bounds = [50.0, 90.0, 95.0, 99.0].map(|percent: f64| (percent / 100.0 * self.total as f64, 0.0));
        let (mut before, mut sum, mut next) = (0.0, 0.0, 0);
        for (bin, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = f64::from(count);
            sum += count * LEAST * ((bin as f64 + 0.5) / BINS).exp();
            while let Some((rank, value)) = bounds.get_mut(next).filter(|(rank, _)| *rank <= before + count) {
                let place = (*rank - before) / count;
                *value = LEAST * ((bin as f64 + place) / BINS).exp();
                next += 1;
            }
            before += count;
        }
        let [p50, p90, p95, p99] = bounds.map(|(_, value)| value);
        (self.total > 0).then(|| Latency { p50, p90, p95, p99, mean: sum / self.total as f64 })
    }
}

fn timeline(run: &Run) -> Vec<Moment> {
    let end = run.window.end.max(1);
    let mut stretches = vec![(0.0, 0.0, Vec::new()); STRETCHES];
    for observation in run.observations.iter().filter(|observation| observation.send < end && !observation.failed) {
        let place = (u128::from(observation.send) * STRETCHES as u128 / u128::from(end)) as usize;
        let (prompt_tokens, cached_tokens, times) = &mut stretches[place];
        if let Some(cached) = observation.cached_tokens {
            *prompt_tokens += f64::from(observation.prompt_tokens);
            *cached_tokens += f64::from(cached);
        }
        times.extend(observation.ttft.map(milliseconds));
    }
    let moments = stretches.into_iter().enumerate().map(|(place, (prompt_tokens, cached_tokens, times))| {
        let ttft = latency(times);
        Moment {
            seconds: (place as f64 + 0.5) * end as f64 / 1e9 / STRETCHES as f64,
            hit_rate: (prompt_tokens > 0.0).then(|| cached_tokens / prompt_tokens),
            ttft_p50_ms: ttft.map(|ttft| ttft.p50),
            ttft_p90_ms: ttft.map(|ttft| ttft.p90),
        }
    });
    moments.collect()
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_knows_percentiles_within_its_bins() {
        let mut histogram = Histogram::new();
        histogram.clear();
        (1..=10_000_u64).for_each(|step| histogram.add(Histogram::bin(step * 100_000), 1));
        let ttft = histogram.latency().unwrap();
        for (value, expected) in [(ttft.p50, 500.0), (ttft.p90, 900.0), (ttft.p99, 990.0), (ttft.mean, 500.0)] {
            assert!((value / expected - 1.0).abs() < 0.003, "{value} {expected}");
        }
        histogram.clear();
        assert_eq!(histogram.latency(), None);
    }
}
