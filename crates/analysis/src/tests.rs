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
