//! A run of known records and its figures.

use std::time::Duration;

use serde_json::{Value, json};

use super::StrategySummary;
use crate::{Failure, FailureKind, Report, RequestRecord};

/// Request number `sequence`, sent every second, answered in 1.5 s, its first token after `ttft_ms`.
fn record(sequence: u64, ttft_ms: u64) -> RequestRecord {
    let send = Duration::from_secs(sequence);
    RequestRecord {
        sequence,
        user: (sequence % 10) as u32,
        warm_up: false,
        send,
        first_token: Some(send + Duration::from_millis(ttft_ms)),
        end: send + Duration::from_millis(1_500),
        instance: Some(format!("chat-{}", sequence % 4).into()),
        reason: Some(if sequence.is_multiple_of(5) { "spill" } else { "home" }.into()),
        home: None,
        prompt_tokens: Some(100),
        cached_tokens: Some(80),
        output_tokens: Some(20),
        status: Some(200),
        failure: None,
    }
}

fn failed(sequence: u64, kind: FailureKind) -> RequestRecord {
    let failure = Some(Failure { kind, detail: String::new() });
    RequestRecord { failure, cached_tokens: None, prompt_tokens: None, output_tokens: None, ..record(sequence, 900) }
}

fn close(left: Option<f64>, right: f64) {
    assert!(left.is_some_and(|left| (left - right).abs() < 1e-9), "{left:?} is not {right}");
}

#[test]
fn figures_are_those_of_the_records() {
    let records: Vec<RequestRecord> = (0..101).map(|sequence| record(sequence, sequence + 1)).collect();
    let summary = StrategySummary::of("PREFIX_AWARE", &records, Some(4));
    assert_eq!((summary.requests, summary.errors), (101, 0));
    let ttft = summary.measures.ttft_ms.unwrap();
    for (figure, expected) in
        [(ttft.p50, 51.0), (ttft.p90, 91.0), (ttft.p95, 96.0), (ttft.p99, 100.0), (ttft.mean, 51.0)]
    {
        close(Some(figure), expected);
    }
    close(summary.measures.hit_rate, 0.8);
    // 100 s from the first to the last sending; the last two answers came after it.
    close(summary.measures.requests_per_second, 0.99);
    close(summary.measures.output_tokens_per_second, 19.8);
    close(summary.measures.spill_rate, 21.0 / 101.0);
    close(summary.measures.instance_share.map(|share| share.min), 25.0 / 101.0);
    close(summary.measures.instance_share.map(|share| share.max), 26.0 / 101.0);
}

#[test]
fn warm_up_counts_only_where_it_ends_among_the_measured() {
    let mut records: Vec<RequestRecord> = (0..101).map(|sequence| record(sequence, 10)).collect();
    for warm_up in &mut records[..50] {
        warm_up.warm_up = true;
        warm_up.first_token = Some(warm_up.send + Duration::from_secs(1));
        warm_up.cached_tokens = Some(0);
    }
    let summary = StrategySummary::of("RANDOM", &records, None);
    assert_eq!(summary.requests, 51);
    close(summary.measures.ttft_ms.map(|ttft| ttft.p99), 10.0);
    close(summary.measures.hit_rate, 0.8);
    // From 50 s to 100 s ended requests 49 to 98.
    close(summary.measures.requests_per_second, 1.0);
}

#[test]
fn failures_are_counted_by_kind_and_enter_no_other_figure() {
    let mut records: Vec<RequestRecord> = (0..20).map(|sequence| record(sequence, 10)).collect();
    records.push(failed(20, FailureKind::Timeout));
    records.push(failed(21, FailureKind::Status));
    records.push(failed(22, FailureKind::Timeout));
    let summary = StrategySummary::of("RANDOM", &records, None);
    assert_eq!((summary.requests, summary.errors), (23, 3));
    assert_eq!(summary.errors_by_kind.into_iter().collect::<Vec<_>>(), [("status", 1), ("timeout", 2)]);
    close(summary.measures.ttft_ms.map(|ttft| ttft.p99), 10.0);
    close(summary.measures.hit_rate, 0.8);
    close(summary.measures.requests_per_second, 20.0 / 22.0);
}

#[test]
fn what_nobody_told_is_unknown() {
    let mut records: Vec<RequestRecord> = (0..20).map(|sequence| record(sequence, 10)).collect();
    for record in &mut records {
        (record.instance, record.reason, record.cached_tokens, record.output_tokens) = (None, None, None, None);
    }
    let measures = StrategySummary::of("RANDOM", &records, Some(4)).measures;
    assert_eq!((measures.hit_rate, measures.spill_rate), (None, None));
    assert!(measures.instance_share.is_none() && measures.output_tokens_per_second.is_none());
    let nothing = StrategySummary::of("RANDOM", &[], Some(4));
    assert_eq!((nothing.requests, nothing.measures.ttft_ms, nothing.ci), (0, None, None));
}

#[test]
fn an_engine_that_tells_hits_but_is_silent_on_misses_has_misses() {
    let mut records: Vec<RequestRecord> = (0..20).map(|sequence| record(sequence, 10)).collect();
    records[..10].iter_mut().for_each(|record| record.cached_tokens = None);
    close(StrategySummary::of("RANDOM", &records, None).measures.hit_rate, 0.4);
}

#[test]
fn an_instance_without_requests_has_a_share_of_zero() {
    let records: Vec<RequestRecord> = (0..20).map(|sequence| record(sequence, 10)).collect();
    let share = |instances| StrategySummary::of("RANDOM", &records, instances).measures.instance_share.unwrap();
    assert_eq!((share(Some(5)).min, share(Some(4)).min, share(None).min), (0.0, 0.25, 0.25));
}

#[test]
fn intervals_hold_their_figures_and_narrow_with_more_requests() {
    let run = |count: u64| {
        let records: Vec<RequestRecord> = (0..count)
            .map(|sequence| {
                let user = (sequence % 40) as u32;
                RequestRecord { user, ..record(sequence, 50 + ((sequence * 2_654_435_761) >> 9) % 1_000) }
            })
            .collect();
        StrategySummary::of("RANDOM", &records, Some(4))
    };
    let (few, many) = (run(80), run(4_000));
    let width = |[low, high]: [f64; 2]| high - low;
    let median = |summary: &StrategySummary| summary.ci.unwrap().ttft_ms.unwrap().p50;
    for summary in [&few, &many] {
        let ([low, high], p50) = (median(summary), summary.measures.ttft_ms.unwrap().p50);
        assert!(low < p50 && p50 < high, "{low} {p50} {high}");
    }
    assert!(width(median(&many)) * 3.0 < width(median(&few)));
    assert_eq!(run(80), few);
    assert_eq!(StrategySummary::of("RANDOM", &[record(0, 10)], None).ci, None);
}

#[test]
fn serialises_in_the_documented_form() {
    let records: Vec<RequestRecord> = (0..101).map(|sequence| record(sequence, 10)).collect();
    let summary = StrategySummary::of("PREFIX_AWARE", &records, Some(4)).with_predicted_hit_rate(Some(0.805));
    let report = Report {
        scenario: "documents".to_owned(),
        baseline: "RANDOM".to_owned(),
        strategies: vec![StrategySummary::of("RANDOM", &[], None), summary],
        invalid: Vec::new(),
        speed: 2.0,
        seed: 1,
        users: 46,
        instances: Some(7),
    };
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["scenario"], &json["baseline"]), (&json!("documents"), &json!("RANDOM")));
    let measured = &json["strategies"][1];
    assert_eq!(
        (&measured["strategy"], &measured["requests"], &measured["errors"]),
        (&json!("PREFIX_AWARE"), &json!(101), &json!(0))
    );
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&measured["ttft_ms"]), ["mean", "p50", "p90", "p95", "p99"]);
    assert_eq!(keys(&measured["instance_share"]), ["max", "min"]);
    assert_eq!(measured["ttft_ms"]["p50"], json!(10.0));
    assert_eq!(measured["hit_rate"], json!(0.8));
    assert_eq!(measured["ci"]["hit_rate"], json!([0.8, 0.8]));
    assert_eq!(measured["ci"]["ttft_ms"]["p99"], json!([10.0, 10.0]));
    for key in ["requests_per_second", "output_tokens_per_second", "spill_rate"] {
        assert!(measured[key].is_number() && measured["ci"][key].is_array(), "{key}");
    }
    let unknown = &json["strategies"][0];
    for key in ["ttft_ms", "hit_rate", "requests_per_second", "spill_rate", "instance_share", "ci"] {
        assert!(unknown.get(key).is_some_and(Value::is_null), "{key}");
    }
}
