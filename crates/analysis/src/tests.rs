//! Whole logs: the recorded traces that come with Isotherm, and made ones.

use std::path::{Path, PathBuf};

use super::*;

fn shipped(name: &str) -> Vec<Input> {
    vec![Input::File(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name))]
}

fn found(inputs: &[Input]) -> Findings {
    analyse(inputs, &Options::default(), &()).unwrap().findings
}

/// A log of these records, one a line.
fn log(records: impl Iterator<Item = serde_json::Value>) -> (tempfile::TempDir, Vec<Input>) {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("log.jsonl");
    let text: String = records.map(|record| format!("{record}\n")).collect();
    std::fs::write(&path, text).unwrap();
    (folder, vec![Input::File(path)])
}

#[test]
fn hit_ratios_of_the_mooncake_traces_are_the_known_ones() {
    for (name, requests, expected) in
        [("mooncake-conversation.jsonl.gz", 12_031, 0.374), ("mooncake-synthetic.jsonl.gz", 3_993, 0.651)]
    {
        let findings = found(&shipped(name));
        assert_eq!((findings.requests, findings.logs[0].format), (requests, Some(Format::Mooncake)));
        let sharing = findings.sharing.unwrap();
        assert!((sharing.infinite_hit_rate.value - expected).abs() < 0.01, "{name}: {:?}", sharing.infinite_hit_rate);
        assert_eq!((sharing.sampled_share, sharing.infinite_hit_rate.error), (1.0, 0.0));
        assert!(sharing.reuse_seconds.is_some() && sharing.curve.len() > 10);
    }
}

#[test]
fn sessions_of_agents_share_most_of_their_prompts() {
    let findings = found(&shipped("claude-code-sessions.jsonl.gz"));
    assert_eq!((findings.logs[0].format, findings.span_seconds), (Some(Format::Agents), None));
    let hit_rate = findings.sharing.unwrap().infinite_hit_rate.value;
    assert!((0.7..1.0).contains(&hit_rate), "{hit_rate}");
}

#[test]
fn conversations_find_their_answers_and_an_unlimited_cache_has_all_but_the_new() {
    let text = |turn: usize| format!("turn {turn} {}", "says something of its own. ".repeat(20));
    let request = |turn: usize| {
        let message = |of: usize| {
            let role = if of.is_multiple_of(2) { "user" } else { "assistant" };
            serde_json::json!({ "role": role, "content": text(of) })
        };
        serde_json::json!({ "messages": (0..=2 * turn).map(message).collect::<Vec<_>>() })
    };
    let (_folder, inputs) = log((0..10).map(request));
    let hit_rate = found(&inputs).sharing.unwrap().infinite_hit_rate.value;
    // Of the prompts with 1, 3, … 19 messages, each but the first finds all but its new question: also the last answer.
    let expected = (0..10).map(|turn| 2 * turn).sum::<usize>() as f64 / 100.0;
    assert!((hit_rate - expected).abs() < 0.02, "{hit_rate}, expected {expected}");
}

#[test]
fn an_access_log_with_blocks_tells_what_prompts_share_and_how_right_the_router_was() {
    // Turns of conversations, each with a block for the system, one for each question and one for each answer.
    let line = |number: u64| {
        let (chat, turn) = (number % 5, number / 5);
        let blocks: Vec<String> = (0..=2 * turn + 1)
            .map(|at| format!("{:016x}", if at == 0 { 1 } else { 1_000 * (chat + 1) + at }))
            .collect();
        let ends: Vec<u64> = (1..=blocks.len() as u64).map(|at| 400 * at).collect();
        let answers: Vec<(u64, u64)> = (1..=turn).map(|turn| (2 * turn, 2 * turn + 1)).collect();
        let (prompt, cached) = (100 * blocks.len(), if turn == 0 { 0 } else { 100 * (blocks.len() - 1) });
        serde_json::json!({
            "time": format!("2026-11-30T00:00:{:02}.000Z", number), "request_id": "r", "method": "POST",
            "status": 200, "outcome": "ok", "blocks": blocks, "ends": ends, "answers": answers, "prompt_tokens": prompt,
            "cached_tokens": cached, "expected_cached_tokens": cached,
        })
    };
    let (_folder, inputs) = log((0..25).map(line));
    let findings = found(&inputs);
    let sharing = findings.sharing.as_ref().unwrap();
    // 5 × (2 + 4 + 6 + 8 + 10) hundred tokens; new are 1 of the systems, and the question of each.
    assert!(
        (sharing.infinite_hit_rate.value - (150.0 - 26.0) / 150.0).abs() < 0.001,
        "{:?}",
        sharing.infinite_hit_rate
    );
    let calibration = findings.calibration.as_ref().unwrap();
    assert_eq!((calibration.requests, calibration.mean_error, calibration.close), (25, 0.0, 1.0));
    let told = Told { findings, recommendation: None, cache: CacheSize { tokens: 1_000, instances: 4 } };
    assert!(text(&told).contains("BELIEVED AGAINST REPORTED") && page(&told).contains("id=\"calibration"));
}

#[test]
fn an_access_log_with_keys_alone_says_what_it_cannot_tell() {
    let line = |number: u64| {
        serde_json::json!({
            "time": format!("2026-11-30T00:00:{:02}.000Z", number), "request_id": "r", "method": "POST",
            "status": 200, "outcome": "ok", "key": format!("{:032x}", number % 5), "prompt_tokens": 1_000,
            "cached_tokens": 600,
        })
    };
    let (_folder, inputs) = log((0..50).map(line));
    let analysis = analyse(&inputs, &Options::default(), &()).unwrap();
    let findings = &analysis.findings;
    let keys = findings.keys.unwrap();
    assert_eq!((keys.requests, keys.distinct, keys.repeated.value), (50, 5, 0.9));
    assert_eq!((findings.reported_hit_rate, &findings.sharing), (Some(0.6), &None));
    assert!(
        findings.notes.iter().any(|note| note.to_string().contains("cannot be told from it")),
        "{:?}",
        findings.notes
    );
}
