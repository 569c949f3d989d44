//! Runs with known figures, set side by side.

use super::{Digest, FleetNote, Objectives, Study, html, summarise, text};
use crate::measures::Latency;
use crate::observation::{FleetPart, Observation, PARTS, Run};
use crate::{Bound, Report};

const SECOND: u64 = 1_000_000_000;

/// A run of 100 s, 10 of them warm-up, with a request every 100 ms. TTFT varies with `seed` and is `factor` times as
/// long, and `cached` of 100 prompt tokens are found.
fn run(seed: u64, factor: u64, cached: u32) -> Run {
    let observations = (0..1_000_u64).map(|number| {
        let send = number * SECOND / 10;
        let ttft = factor * (50 + (number * 7_919 + seed * 104_729) % 100) * 1_000_000;
        Observation {
            send,
            ttft: Some(ttft),
            end: send + ttft + SECOND,
            prompt_tokens: 100,
            cached_tokens: Some(cached),
            output_tokens: 11,
            instance: Some((number % 4) as u32),
            spilled: number % 10 == 0,
            failed: number == 500,
        }
    });
    let part = FleetPart {
        evicted_blocks: Some(9),
        instance_time: 18 * SECOND,
        accelerator_time: Some(36 * SECOND),
        busy_accelerator_time: Some(9 * SECOND),
    };
    Run {
        window: 10 * SECOND..100 * SECOND,
        observations: observations.collect(),
        parts: vec![part; PARTS],
        instances: (0..4).map(|number| format!("instance-{number}")).collect(),
    }
}

fn objectives() -> Objectives {
    Objectives { ttft_ms: Some(100.0), token_gap_ms: None, price_per_instance_hour: Some(10.0) }
}

fn digests(factor: u64, cached: u32) -> Vec<Digest> {
    (1..=4).map(|seed| Digest::of(&run(seed, factor, cached), &objectives())).collect()
}

fn study() -> Study {
    let strategies =
        [("SLOW".to_owned(), digests(2, 20)), ("FAST".to_owned(), digests(1, 80)), ("SAME".to_owned(), digests(2, 20))];
    Study {
        report: Report {
            scenario: "made-up".to_owned(),
            baseline: "SLOW".to_owned(),
            strategies: summarise(&strategies),
            invalid: Vec::new(),
            speed: 1.0,
            seed: 1,
            users: 3,
            instances: Some(4),
        },
        title: "Known <figures>".to_owned(),
        seeds: 4,
        duration_seconds: 100.0,
        warm_up_seconds: 10.0,
        bound: Some(Bound {
            hit_rate: 0.9,
            ttft_ms: Latency { p50: 40.0, p90: 41.0, p95: 42.0, p99: 43.0, mean: 40.0 },
        }),
        objectives: objectives(),
        fitted: vec!["nothing".to_owned()],
        predicted: Vec::new(),
        changes: vec![FleetNote { seconds: 50.0, what: "2 more".to_owned() }],
    }
}

fn close(left: Option<f64>, right: f64) {
    assert!(left.is_some_and(|left| (left / right - 1.0).abs() < 1e-9), "{left:?} is not {right}");
}

#[test]
fn figures_are_those_of_the_measured_requests() {
    let summary = &study().report.strategies[1];
    assert_eq!((summary.requests, summary.errors), (4 * 900, 4));
    let measures = summary.measures;
    close(measures.hit_rate, 0.8);
    close(measures.spill_rate, 0.1);
    // Those that ended from 10 s to 100 s, without the failed one.
    let per_second = measures.requests_per_second.unwrap();
    assert!((9.9..10.01).contains(&per_second), "{per_second}");
    close(measures.output_tokens_per_second, 11.0 * per_second);
    close(measures.evicted_blocks_per_second, 2.0);
    close(measures.gpu_utilisation, 0.25);
    close(measures.gpu_seconds_per_million_tokens, 8.0 * 1e6 / (111.0 * per_second));
    close(measures.cost_per_million_tokens, 4.0 * 10.0 / 3_600.0 * 1e6 / (111.0 * per_second));
    // A TTFT of 50 to 149 ms in equal shares: 51 of 100 are within 100 ms.
    assert!((measures.goodput_per_second.unwrap() / per_second - 0.51).abs() < 0.005);
    let ttft = measures.ttft_ms.unwrap();
    assert!((ttft.p50 - 99.5).abs() < 0.5 && (ttft.p90 - 139.5).abs() < 1.0, "{ttft:?}");
    assert_eq!(measures.instance_share.map(|share| (share.min, share.max)), Some((0.25, 0.25)));
}

#[test]
fn changes_are_paired_so_equal_strategies_do_not_differ_at_all() {
    let study = study();
    let change = |place: usize| study.report.strategies[place].change.as_ref().unwrap();
    assert!(study.report.strategies[0].change.is_none());
    let halved = change(1);
    assert!((halved.measures.ttft_ms.unwrap().p50 + 0.5).abs() < 1e-9);
    let [low, high] = halved.ci.ttft_ms.unwrap().p50;
    assert!((-0.51..=-0.499).contains(&low) && (low..=-0.49).contains(&high), "{low} {high}");
    close(halved.measures.hit_rate, 0.6);
    let same = change(2);
    assert_eq!(same.measures.ttft_ms.unwrap().p99, 0.0);
    assert_eq!(same.ci.ttft_ms.unwrap().p99, [0.0, 0.0]);
}

#[test]
fn intervals_hold_their_figures() {
    for summary in &study().report.strategies {
        let [low, high] = summary.ci.unwrap().ttft_ms.unwrap().p90;
        let p90 = summary.measures.ttft_ms.unwrap().p90;
        assert!(low <= p90 * 1.003 && p90 <= high * 1.003 && low < high, "{low} {p90} {high}");
    }
}

#[test]
fn what_engines_do_not_say_stays_unknown() {
    let mut silent = run(1, 1, 0);
    silent.observations.iter_mut().for_each(|observation| observation.cached_tokens = None);
    silent
        .parts
        .iter_mut()
        .for_each(|part| *part = FleetPart { instance_time: part.instance_time, ..Default::default() });
    let summaries = summarise(&[("SILENT".to_owned(), vec![Digest::of(&silent, &objectives())])]);
    let measures = &summaries[0].measures;
    assert_eq!((measures.hit_rate, measures.evicted_blocks_per_second), (None, None));
    assert_eq!((measures.gpu_utilisation, measures.gpu_seconds_per_million_tokens), (None, None));
    assert!(measures.requests_per_second.is_some() && measures.cost_per_million_tokens.is_some());
}

#[test]
fn no_runs_give_no_figures() {
    let summaries = summarise(&[("NONE".to_owned(), Vec::new())]);
    assert_eq!((summaries[0].requests, summaries[0].ci), (0, None));
    assert!(summaries[0].measures.ttft_ms.is_none());
}

#[test]
fn the_text_sets_strategies_in_rows_with_the_bound_and_the_changes() {
    let text = text(&study());
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(row("FAST").contains("80.0%"), "{text}");
    assert!(row("(clairvoyant bound)").contains("90.0%"), "{text}");
    assert!(text.contains("-50.0% ±") && text.contains("+60.0 pt ±0.0"), "{text}");
    assert!(text.contains("4 seeds from 1 on") && text.contains("Fitted: nothing."), "{text}");
    assert!(text.contains("FAST: 4 of 3600 requests failed."), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
}

#[test]
fn the_page_needs_nothing_else_and_tells_each_picture_in_words() {
    let page = html::page(&study());
    for outside in ["http:", "https:", "src=", "url(", "@import", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("<svg viewBox=\"0 0 900").count(), 4);
    assert_eq!(page.matches("<summary>In words</summary>").count(), 4);
    assert!(page.contains("At 0.8 min: 2 more") && page.contains("prefers-color-scheme:dark"));
    assert!(page.contains("Known &lt;figures&gt;") && !page.contains("Known <figures>"));
}

#[test]
fn serialises_in_the_form_of_every_report() {
    let json = serde_json::to_value(study()).unwrap();
    assert_eq!(json["scenario"], "made-up");
    assert_eq!(json["strategies"][1]["strategy"], "FAST");
    for key in ["ttft_ms", "hit_rate", "requests_per_second", "spill_rate", "instance_share", "ci", "change"] {
        assert!(json["strategies"][1].get(key).is_some_and(|value| !value.is_null()), "{key}");
    }
    assert!(json["bound"]["ttft_ms"]["p50"].is_number());
    assert_eq!(json["strategies"][1]["detail"]["ttft_quantiles_ms"].as_array().unwrap().len(), 101);
    assert!(json["strategies"][1]["change"]["ci"]["hit_rate"].is_array());
}
