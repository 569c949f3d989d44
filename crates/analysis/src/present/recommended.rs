//! The sections about what to configure.

use super::Section;
use super::numbers::{milliseconds, percent, seconds, whole};
use super::sections::{row, section};
use crate::findings::Findings;
use crate::recommend::{Figures, Recommendation, Replay, TOLERANCE};

/// What to configure and what that gives.
pub(super) fn of(recommendation: Option<&Recommendation>, findings: &Findings) -> Vec<Section> {
    let Some(found) = recommendation else {
        let why = match findings.sharing {
            Some(_) => "None asked for, or too few requests to simulate.",
            None => "The log does not tell how long shared beginnings are, so nothing can be simulated.",
        };
        return vec![section("Recommendation", Vec::new(), 0, vec![why.to_owned()])];
    };
    vec![recommended(found), strategies(found), sizes(found)]
}

fn recommended(found: &Recommendation) -> Section {
    let range = |[low, high]: [u32; 2]| {
        if low == high {
            "no other is as good".to_owned()
        } else {
            format!("{} to {} are as good", whole(low.into()), whole(high.into()))
        }
    };
    let mut table = vec![
        row(["Strategy", &found.strategy, ""]),
        vec!["PrefixLength".to_owned(), whole(found.prefix_length.into()), range(found.prefix_length_range)],
        vec![
            "ConcurrencyThreshold".to_owned(),
            whole(found.concurrency_threshold.into()),
            range(found.concurrency_threshold_range),
        ],
        vec!["Instances".to_owned(), whole(found.instances.into()), format!("asked about {}", found.replay.instances)],
        row(["Predicted", &found.strategy, &figures(&found.predicted)]),
    ];
    if let Some(repaired) = &found.repaired {
        table.push(row(["If repaired", &repaired.strategy, &figures(&repaired.figures)]));
    }
    let reasons = &found.reasons;
    let mut sentences = vec![
        format!("Strategy: {}.", reasons.strategy),
        format!("PrefixLength: {}.", reasons.prefix_length),
        format!("ConcurrencyThreshold: {}.", reasons.concurrency_threshold),
        format!("Instances: {}.", reasons.instances),
    ];
    let best = &found.best;
    sentences.push(format!(
        "As good: TTFT P50, P90 and hit rate within 2% of the best setting found, {}/{} ({} ms, {} ms, {}).",
        best.prefix_length,
        best.concurrency_threshold,
        milliseconds(best.figures.ttft_p50_ms),
        milliseconds(best.figures.ttft_p90_ms),
        percent(best.figures.hit_rate)
    ));
    let each = &found.each_best;
    if best.figures.shortfall(each) > TOLERANCE {
        sentences.push(format!(
            "No setting is best in all three: alone, P50 can be {} ms, P90 {} ms, the hit rate {}; the JSON has all {} \
             settings.",
            milliseconds(each.ttft_p50_ms),
            milliseconds(each.ttft_p90_ms),
            percent(each.hit_rate),
            found.tried.len()
        ));
    }
    if found.strategy != "PREFIX_AWARE" {
        let would = figures(&found.prefix_aware);
        sentences.push(format!("PREFIX_AWARE, to which alone length and threshold matter, would give {would}."));
    }
    sentences.push(replayed(&found.replay));
    section("Recommendation", table, 3, sentences)
}

fn figures(figures: &Figures) -> String {
    format!(
        "TTFT P50 {} ms, P90 {} ms, hit rate {}",
        milliseconds(figures.ttft_p50_ms),
        milliseconds(figures.ttft_p90_ms),
        percent(figures.hit_rate)
    )
}

fn replayed(replay: &Replay) -> String {
    let part = if (replay.requests as u64) < replay.of {
        format!("the first {} of {} requests", whole(replay.requests as u64), whole(replay.of))
    } else {
        format!("all {} requests", whole(replay.of))
    };
    let times = if replay.recorded_times {
        format!("at their recorded times ({})", seconds(replay.seconds))
    } else {
        format!("by {} users in closed loop for {}, since the log has no times", replay.users, seconds(replay.seconds))
    };
    let answers = replay.assumed_output_tokens.map_or_else(String::new, |tokens| {
        format!(" Answers whose length the log does not tell are taken to have {tokens} tokens.")
    });
    format!(
        "Simulated: {part}, {times}, on {} instances of {}, {}; the first tenth only warms the caches.{answers}",
        replay.instances,
        replay.profile,
        if replay.seeds == 1 { "one seed".to_owned() } else { format!("{} seeds each", replay.seeds) },
    )
}

fn strategies(found: &Recommendation) -> Section {
    let mut table = vec![row(["", "TTFT P50 ms", "P90", "hit rate", "spills"])];
    let mut line = |name: &str, figures: &Figures, spills: Option<f64>| {
        table.push(vec![
            name.to_owned(),
            milliseconds(figures.ttft_p50_ms),
            milliseconds(figures.ttft_p90_ms),
            percent(figures.hit_rate),
            spills.map_or_else(String::new, percent),
        ]);
    };
    for one in &found.strategies {
        line(&one.strategy, &one.figures, Some(one.spill_rate));
    }
    if let Some(bound) = &found.bound {
        line("(clairvoyant bound)", bound, None);
    }
    let sentence = format!(
        "PREFIX_AWARE with {}/{}; the bound is one cache without limit and idle instances, which no routing can beat.",
        found.prefix_length, found.concurrency_threshold
    );
    section("Strategies on this log", table, 1, vec![sentence])
}

fn sizes(found: &Recommendation) -> Section {
    let mut table = vec![row(["Instances", "TTFT P50 ms", "P90", "hit rate", "GPU busy"])];
    for size in &found.sizes {
        table.push(vec![
            whole(size.instances.into()),
            milliseconds(size.figures.ttft_p50_ms),
            milliseconds(size.figures.ttft_p90_ms),
            percent(size.figures.hit_rate),
            size.gpu_utilisation.map_or_else(|| "-".to_owned(), percent),
        ]);
    }
    section("Fleets of other sizes", table, 0, vec![format!("All under {}.", found.strategy)])
}
