//! Chooses the strategy, and says why in words.

use super::settings::Searched;
use super::{Compared, Figures};
use crate::findings::Findings;

/// Hit rates that differ by less are as good, and so are times to first token.
const LEAST_HIT_RATE_GAIN: f64 = 0.01;
const LEAST_TTFT_GAIN: f64 = 0.05;

/// The strategy to run and why: the simplest that is as good as the best.
pub(super) fn strategy(
    compared: &[Compared],
    prefix_aware: &Figures,
    shared: Option<Mendable>,
) -> Option<(String, String)> {
    let find = |name: &str| compared.iter().find(|one| one.strategy == name);
    let (plain, adaptive) = (find("LEAST_OUTSTANDING_REQUESTS")?, find("ADAPTIVE")?);
    let best = Figures::best([plain.figures, adaptive.figures, *prefix_aware].into_iter())?;
    if !is_gain(&plain.figures, &best) {
        let mut why =
            "no strategy that looks at prompts gains 5 % of TTFT P50 or P90 or a point of hit rate on it: this \
                       traffic has nothing to gain from prefixes on this fleet"
                .to_owned();
        if let Some(Mendable { now, mended }) = shared
            && mended - now > LEAST_TTFT_GAIN
        {
            why.push_str(&format!(
                " as it is. Repair what breaks sharing first: up to {:.0} % of the tokens could be shared then",
                100.0 * mended
            ));
        }
        return Some((plain.strategy.clone(), why));
    }
    let gain = |figures: &Figures| {
        format!(
            "TTFT P50 {:+.0} %, P90 {:+.0} %, hit rate {:+.1} points against LEAST_OUTSTANDING_REQUESTS",
            100.0 * (figures.ttft_p50_ms / plain.figures.ttft_p50_ms - 1.0),
            100.0 * (figures.ttft_p90_ms / plain.figures.ttft_p90_ms - 1.0),
            100.0 * (figures.hit_rate - plain.figures.hit_rate),
        )
    };
    let missed = |figures: &Figures| format!("misses the best of them by {:.0} %", 100.0 * figures.shortfall(&best));
    if is_gain(prefix_aware, &adaptive.figures) {
        let beside = format!("PREFIX_AWARE with the best parameters {}", missed(prefix_aware));
        return Some((adaptive.strategy.clone(), format!("{}; {beside}", gain(&adaptive.figures))));
    }
    let beside = if is_gain(&adaptive.figures, prefix_aware) {
        format!("ADAPTIVE {}", missed(&adaptive.figures))
    } else {
        "ADAPTIVE is about as good and needs no parameters; PREFIX_AWARE keeps no state, so several routers agree without \
         it"
            .to_owned()
    };
    Some(("PREFIX_AWARE".to_owned(), format!("{}; {beside}", gain(prefix_aware))))
}

/// The share of the tokens that came before, and that would if what breaks sharing were mended, at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mendable {
    now: f64,
    mended: f64,
}

impl Mendable {
    pub(super) fn of(findings: &Findings) -> Option<Mendable> {
        let sharing = findings.sharing.as_ref()?;
        let now = sharing.infinite_hit_rate.value;
        // No mask repairs what users are called; what follows it says what it costs.
        let lost = findings.breaks.iter().flatten().map(|found| found.lost_hit_rate).fold(0.0, f64::max);
        Some(Mendable { now, mended: sharing.repaired_hit_rate.unwrap_or(now).max((now + lost).min(1.0)) })
    }
}

/// Whether others are better by more than it takes to change anything.
fn is_gain(plain: &Figures, better: &Figures) -> bool {
    better.hit_rate - plain.hit_rate >= LEAST_HIT_RATE_GAIN
        || better.ttft_p50_ms < plain.ttft_p50_ms * (1.0 - LEAST_TTFT_GAIN)
        || better.ttft_p90_ms < plain.ttft_p90_ms * (1.0 - LEAST_TTFT_GAIN)
}

/// Why the recommended length.
pub(super) fn prefix_length(searched: &Searched, findings: &Findings) -> String {
    let chosen = searched.chosen.prefix_length;
    let mut why = format!("the middle of the good range, {}", range(searched.lengths));
    let [low, high] = searched.lengths;
    let counted = findings.prefixes.iter().filter(|count| (low..=high).contains(&count.length));
    if let Some(count) = counted.min_by_key(|count| count.length.abs_diff(chosen)) {
        why.push_str(&format!(
            "; {} prefixes of {} characters, {:.1} requests each",
            count.distinct, count.length, count.requests_per_prefix
        ));
        if count.shorter > 0.1 {
            why.push_str(&format!(
                "; {:.0} % of the prompts are shorter, and share a home only when they are equal",
                100.0 * count.shorter
            ));
        }
    }
    why
}

/// Why the recommended threshold.
pub(super) fn threshold(searched: &Searched) -> String {
    let spills = 100.0 * searched.chosen.spill_rate;
    let what = if spills == 0.0 { "nothing spills".to_owned() } else { format!("{spills:.1} % of the requests spill") };
    let [low, high] = searched.thresholds;
    let at_length = searched.tried.iter().filter(|tried| tried.prefix_length == searched.chosen.prefix_length);
    let enough = at_length.filter(|tried| tried.spill_rate == 0.0).map(|tried| tried.concurrency_threshold).min();
    let same = match enough {
        Some(enough) if (low..high).contains(&enough) => {
            format!(", of which those from {enough} on are one, as nothing spills")
        }
        _ => String::new(),
    };
    format!("the middle of the good range, {}{same}; {what}", range(searched.thresholds))
}

fn range([low, high]: [u32; 2]) -> String {
    if low == high { format!("{low} alone") } else { format!("{low} to {high}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(strategy: &str, ttft_p50_ms: f64, hit_rate: f64) -> Compared {
        let figures = Figures { ttft_p50_ms, ttft_p90_ms: 2.0 * ttft_p50_ms, hit_rate };
        Compared { strategy: strategy.to_owned(), figures, spill_rate: 0.0 }
    }

    fn chosen(plain: f64, prefix_aware: f64, adaptive: f64) -> String {
        let prefix_aware = compared("PREFIX_AWARE", prefix_aware, 0.5);
        let all = [
            compared("LEAST_OUTSTANDING_REQUESTS", plain, 0.5),
            prefix_aware.clone(),
            compared("ADAPTIVE", adaptive, 0.5),
        ];
        strategy(&all, &prefix_aware.figures, None).unwrap().0
    }

    #[test]
    fn the_simplest_strategy_that_is_as_good_as_the_best_is_taken() {
        assert_eq!(chosen(100.0, 99.0, 99.5), "LEAST_OUTSTANDING_REQUESTS");
        assert_eq!(chosen(100.0, 60.0, 59.5), "PREFIX_AWARE");
        assert_eq!(chosen(100.0, 60.0, 80.0), "PREFIX_AWARE");
        assert_eq!(chosen(100.0, 80.0, 60.0), "ADAPTIVE");
    }
}
