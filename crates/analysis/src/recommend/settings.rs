//! Searches the lengths and thresholds of `PREFIX_AWARE` that are good, and takes the middle of them.

use std::collections::HashMap;

use isotherm_core::{ConcurrencyThreshold, PrefixLength};
use isotherm_sim::{InvalidScenario, Rule, Scenario, Watch, compare};
use isotherm_workload::{Recorded, Workload};

use super::{Figures, TOLERANCE, Tried};
use crate::chain::extend_by_id;
use crate::prefixes::LENGTHS;

/// Thresholds that are tried, in this order, so that lengths that are far from good are soon left.
const THRESHOLDS: [u32; 9] = [16, 4, 64, 8, 32, 12, 128, 2, 1_024];

/// After two thresholds, lengths that miss the best by more than this share are left.
const HOPELESS: f64 = 0.3;

/// Around the best, these shares of its threshold are tried too.
const NEIGHBOURS: [f64; 4] = [0.7, 0.85, 1.2, 1.4];

/// What the search gave.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Searched {
    pub(super) tried: Vec<Tried>,
    /// The best setting that was found: the one whose worst figure misses the best of that figure by least.
    pub(super) best: Tried,
    /// The best of each figure, whatever the others are there.
    pub(super) each_best: Figures,
    /// The middle of the good range; it has been simulated itself.
    pub(super) chosen: Tried,
    /// The lengths that are good at its threshold.
    pub(super) lengths: [u32; 2],
    /// The thresholds that are good at its length.
    pub(super) thresholds: [u32; 2],
}

impl Searched {
    /// Simulates settings until the best are known; `None` where nothing was measured.
    pub(super) fn search(
        scenario: &Scenario,
        jobs: usize,
        watch: &dyn Watch,
    ) -> Result<Option<Searched>, InvalidScenario> {
        let Workload::Recorded(log) = &scenario.workload else { return Ok(None) };
        let mut search = Search { scenario, jobs, watch, tried: Vec::new() };
        let lengths = distinct_lengths(log);
        let mut open: Vec<u32> = lengths.clone();
        for (round, threshold) in THRESHOLDS.into_iter().enumerate() {
            let differs = |length: &&u32| !search.spills_nothing_below(**length, threshold);
            search.simulate(open.iter().filter(differs).map(|&length| (length, threshold)).collect())?;
            if round > 0 {
                open.retain(|&length| search.may_be_good(length));
            }
        }
        if let Some(best) = search.least_shortfall() {
            let near = NEIGHBOURS.map(|share| (f64::from(best.concurrency_threshold) * share).round().max(1.0) as u32);
            search.simulate(near.iter().map(|&threshold| (best.prefix_length, threshold)).collect())?;
        }
        search.spread_over(&LENGTHS, log);
        let Some(found) = search.choose() else { return Ok(None) };
        search.go_to_middle(found, log).map(Some)
    }
}

/// A threshold from what has been simulated.
pub(super) fn threshold(number: u32) -> ConcurrencyThreshold {
    ConcurrencyThreshold::new(number.into()).unwrap_or_default()
}

struct Search<'a> {
    scenario: &'a Scenario,
    jobs: usize,
    watch: &'a dyn Watch,
    tried: Vec<Tried>,
}

impl Search<'_> {
    fn simulate(&mut self, mut settings: Vec<(u32, u32)>) -> Result<(), InvalidScenario> {
        settings.retain(|(length, threshold)| self.find(*length, *threshold).is_none());
        settings.dedup();
        if settings.is_empty() {
            return Ok(());
        }
        let rule = |(length, number): &(u32, u32)| {
            Rule::prefix_aware(PrefixLength::new((*length).into()).unwrap_or_default(), threshold(*number))
        };
        let scenario = Scenario { strategies: settings.iter().map(rule).collect(), ..self.scenario.clone() };
        let study = compare(&scenario, self.jobs, self.watch)?;
        for ((prefix_length, concurrency_threshold), summary) in settings.into_iter().zip(&study.report.strategies) {
            let Some(figures) = Figures::of(summary) else { continue };
            let spill_rate = summary.measures.spill_rate.unwrap_or(0.0);
            self.tried.push(Tried { prefix_length, concurrency_threshold, figures, spill_rate });
        }
        Ok(())
    }

    fn find(&self, length: u32, threshold: u32) -> Option<&Tried> {
        self.tried.iter().find(|tried| (tried.prefix_length, tried.concurrency_threshold) == (length, threshold))
    }

    /// With this length nothing spilled at a lower threshold, so this one is the same.
    fn spills_nothing_below(&self, length: u32, threshold: u32) -> bool {
        let is_same = |tried: &Tried| {
            tried.prefix_length == length && tried.concurrency_threshold < threshold && tried.spill_rate == 0.0
        };
        self.tried.iter().any(is_same)
    }

    fn may_be_good(&self, length: u32) -> bool {
        let Some(best) = self.least_shortfall() else { return true };
        let with_length = self.tried.iter().filter(|tried| tried.prefix_length == length);
        with_length.map(|tried| tried.figures.shortfall(&best.figures)).fold(f64::MAX, f64::min) <= HOPELESS
    }

    fn least_shortfall(&self) -> Option<Tried> {
        let best = Figures::best(self.tried.iter().map(|tried| tried.figures))?;
        let shortfall = |tried: &&Tried| tried.figures.shortfall(&best);
        self.tried.iter().min_by(|left, right| shortfall(left).total_cmp(&shortfall(right))).copied()
    }

    /// Gives lengths that tell the same prompts apart what was simulated for one of them, and thresholds at which nothing
    /// more spills what the lowest of them gave.
    fn spread_over(&mut self, lengths: &[u32], log: &Recorded) {
        let mut more = Vec::new();
        let partitions: HashMap<u32, u64> = lengths.iter().map(|&length| (length, partition(log, length))).collect();
        for tried in &self.tried {
            let same = |length: &&u32| partitions.get(*length) == partitions.get(&tried.prefix_length);
            let equal: Vec<u32> = lengths.iter().filter(same).copied().collect();
            let beyond = THRESHOLDS.iter().filter(|&&number| {
                number == tried.concurrency_threshold
                    || (tried.spill_rate == 0.0 && number > tried.concurrency_threshold)
            });
            for &concurrency_threshold in beyond {
                let each = |&prefix_length: &u32| Tried { prefix_length, concurrency_threshold, ..*tried };
                more.extend(equal.iter().map(each));
            }
        }
        for tried in more {
            if self.find(tried.prefix_length, tried.concurrency_threshold).is_none() {
                self.tried.push(tried);
            }
        }
        self.tried.sort_by_key(|tried| (tried.prefix_length, tried.concurrency_threshold));
    }

    /// The good settings are those of which no figure is worse by more than the tolerance than the best setting's. Of
    /// them the middle of the widest range.
    fn choose(&self) -> Option<Searched> {
        let each_best = Figures::best(self.tried.iter().map(|tried| tried.figures))?;
        let best = self.least_shortfall()?;
        let is_good = |tried: &&Tried| tried.figures.shortfall(&best.figures) <= TOLERANCE;
        let good: Vec<Tried> = self.tried.iter().filter(is_good).copied().collect();
        let run_of = |fixed: &dyn Fn(&Tried) -> u32, moving: &dyn Fn(&Tried) -> u32, at: &Tried| {
            let line = self.tried.iter().filter(|tried| fixed(tried) == fixed(at));
            let mut line: Vec<Tried> = line.copied().collect();
            line.sort_by_key(|tried| moving(tried));
            run_around(&line, moving(at), moving, |tried| good.contains(tried))
        };
        let length_of = |tried: &Tried| tried.prefix_length;
        let threshold_of = |tried: &Tried| tried.concurrency_threshold;
        // The setting with the most good ones beside it, lengths and thresholds alike; then the middle of both ranges.
        let width = |tried: &Tried| {
            let (lengths, thresholds) =
                (run_of(&threshold_of, &length_of, tried), run_of(&length_of, &threshold_of, tried));
            lengths.len() * thresholds.len()
        };
        let widest = good.iter().copied().max_by_key(|tried| (width(tried), std::cmp::Reverse(length_of(tried))))?;
        let middle_length = middle(&run_of(&threshold_of, &length_of, &widest), &length_of)?;
        let thresholds = run_of(&length_of, &threshold_of, &middle_length);
        // Where nothing spills any more, a higher threshold is the same.
        let spilling = thresholds.iter().take_while(|tried| tried.spill_rate > 0.0).count();
        let chosen = middle(&thresholds[..(spilling + 1).min(thresholds.len())], &threshold_of)?;
        let lengths = run_of(&threshold_of, &length_of, &chosen);
        let ends = |run: &[Tried], of: &dyn Fn(&Tried) -> u32| Some([of(run.first()?), of(run.last()?)]);
        Some(Searched {
            best,
            each_best,
            lengths: ends(&lengths, &length_of)?,
            thresholds: ends(&thresholds, &threshold_of)?,
            chosen,
            tried: self.tried.clone(),
        })
    }

    /// Lengths between those tried tell the same prompts apart as one of them: widens the range to them, and goes to its
    /// middle, if that proves to be good too.
    fn go_to_middle(&mut self, found: Searched, log: &Recorded) -> Result<Searched, InvalidScenario> {
        let [low, high] = found.lengths;
        let lengths = [edge(log, low, SHORTEST), edge(log, high, LONGEST)];
        let exact = (f64::from(lengths[0]) * f64::from(lengths[1])).sqrt();
        // A round number, in steps of an eighth or finer.
        let step = 1_u32 << (exact.log2() as u32).saturating_sub(3);
        let middle = ((exact / f64::from(step)).round() as u32 * step).clamp(lengths[0], lengths[1]);
        self.simulate(vec![(middle, found.chosen.concurrency_threshold)])?;
        let Some(tried) = self.find(middle, found.chosen.concurrency_threshold).copied() else { return Ok(found) };
        let is_good = tried.figures.shortfall(&found.best.figures) <= TOLERANCE;
        let chosen = if is_good { tried } else { found.chosen };
        self.tried.sort_by_key(|tried| (tried.prefix_length, tried.concurrency_threshold));
        Ok(Searched { lengths, chosen, tried: self.tried.clone(), ..found })
    }
}

/// The shortest and the longest prefix that are recommended: prompts that have no more than a greeting in common are not
/// to share a home, and blocks of text are told apart no finer.
const SHORTEST: u32 = LENGTHS[0];
const LONGEST: u32 = LENGTHS[LENGTHS.len() - 1];

/// How far from a length towards `end` prefixes tell the same prompts apart: with length they only ever part.
fn edge(log: &Recorded, length: u32, end: u32) -> u32 {
    let name = partition(log, length);
    let (mut same, mut beyond) = (length, end);
    if partition(log, end) == name {
        return end;
    }
    while same.abs_diff(beyond) > 1 {
        let between = same.midpoint(beyond);
        if partition(log, between) == name {
            same = between;
        } else {
            beyond = between;
        }
    }
    same
}

/// The good settings around a place in a line, without a gap.
fn run_around(
    line: &[Tried],
    place: u32,
    moving: &dyn Fn(&Tried) -> u32,
    is_good: impl Fn(&Tried) -> bool,
) -> Vec<Tried> {
    let Some(at) = line.iter().position(|tried| moving(tried) == place) else { return Vec::new() };
    let first = (0..=at).rev().take_while(|&number| is_good(&line[number])).last().unwrap_or(at);
    let last = (at..line.len()).take_while(|&number| is_good(&line[number])).last().unwrap_or(at);
    line[first..=last].to_vec()
}

/// The setting that is nearest to the geometric middle of a run, the higher of two.
fn middle(run: &[Tried], moving: &dyn Fn(&Tried) -> u32) -> Option<Tried> {
    let logarithm = |tried: &Tried| f64::from(moving(tried)).ln();
    let middle = (logarithm(run.first()?) + logarithm(run.last()?)) / 2.0;
    // Rounded, so that of two at the same distance chance takes neither.
    let distance = |tried: &&Tried| ((logarithm(tried) - middle).abs() * 1e9).round();
    run.iter().rev().min_by(|left, right| distance(left).total_cmp(&distance(right))).copied()
}

/// Of lengths that tell the same prompts apart only one, since routing cannot differ but by chance.
fn distinct_lengths(log: &Recorded) -> Vec<u32> {
    let mut seen = Vec::new();
    LENGTHS
        .into_iter()
        .filter(|&length| {
            let partition = partition(log, length);
            let is_new = !seen.contains(&partition);
            seen.push(partition);
            is_new
        })
        .collect()
}

/// Names the way in which prefixes of this length put the requests into groups.
fn partition(log: &Recorded, length: u32) -> u64 {
    let mut groups: HashMap<u64, u64> = HashMap::new();
    let mut name = 0;
    for recorded in log.requests.iter() {
        let beginning = recorded.request.beginning(length.into());
        let mut prefix = beginning.whole.iter().fold(0, |hash, piece| extend_by_id(hash, piece.id.0));
        if let Some(cut) = beginning.cut {
            prefix = extend_by_id(extend_by_id(prefix, cut.piece.0), cut.characters);
        }
        let next = groups.len() as u64;
        name = extend_by_id(name, *groups.entry(prefix).or_insert(next));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(length: u32, threshold: u32, ttft: f64) -> Tried {
        let figures = Figures { ttft_p50_ms: ttft, ttft_p90_ms: 2.0 * ttft, hit_rate: 0.5 };
        Tried { prefix_length: length, concurrency_threshold: threshold, figures, spill_rate: 0.1 }
    }

    fn chosen(tried: Vec<Tried>) -> Searched {
        let scenario = isotherm_sim::shipped().next().unwrap().scenario().unwrap();
        Search { scenario: &scenario, jobs: 1, watch: &(), tried }.choose().unwrap()
    }

    #[test]
    fn the_middle_of_the_good_range_is_chosen_and_not_the_edge_that_is_best() {
        let mut all = Vec::new();
        for length in [256, 512, 1_024, 2_048, 4_096] {
            for threshold in [4, 8, 16] {
                let is_good = (512..=2_048).contains(&length) && threshold >= 8;
                let best = (length, threshold) == (512, 8);
                all.push(tried(
                    length,
                    threshold,
                    if best {
                        99.0
                    } else if is_good {
                        100.0
                    } else {
                        150.0
                    },
                ));
            }
        }
        let found = chosen(all);
        assert_eq!((found.chosen.prefix_length, found.chosen.concurrency_threshold), (1_024, 16));
        assert_eq!((found.lengths, found.thresholds), ([512, 2_048], [8, 16]));
        assert!(found.chosen.figures.shortfall(&found.best.figures) <= TOLERANCE);
        assert_eq!((found.best.prefix_length, found.best.concurrency_threshold), (512, 8));
    }

    #[test]
    fn where_no_setting_is_best_in_all_figures_the_least_shortfall_is_taken() {
        let fast = Figures { ttft_p50_ms: 50.0, ttft_p90_ms: 300.0, hit_rate: 0.5 };
        let even = Figures { ttft_p50_ms: 54.0, ttft_p90_ms: 210.0, hit_rate: 0.5 };
        let steady = Figures { ttft_p50_ms: 80.0, ttft_p90_ms: 200.0, hit_rate: 0.5 };
        let with = |threshold, figures| Tried { figures, ..tried(1_024, threshold, 1.0) };
        let found = chosen(vec![with(4, steady), with(8, even), with(16, fast)]);
        assert_eq!((found.chosen.concurrency_threshold, found.thresholds), (8, [8, 8]));
        assert!((found.best.figures.shortfall(&found.each_best) - 0.08).abs() < 1e-9);
    }
}
