//! A made log, told.

use std::sync::Arc;
use std::time::Duration;

use isotherm_engine_model::Profile;

use super::*;
use crate::{Input, Options, Wanted, analyse};

const RULES: &str = "You answer questions about thermal engineering in plain words. Never guess a figure that you do not \
    know. Name your sources where you can, and say when two of them disagree. Prefer units of the SI in all answers.";

fn told() -> Told {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let request = |number: u32| {
        let time = format!("2026-11-30T10:{:02}:{:02}Z", number / 60, number % 60);
        let system = format!("It is {time}. {}", RULES.repeat(20));
        let question = format!("Question {number}: secret-word?");
        serde_json::json!({ "timestamp": time, "body": { "model": "m", "messages": [
            { "role": "system", "content": system }, { "role": "user", "content": question },
        ] } })
    };
    let text: String = (0..120).map(|number| format!("{}\n", request(number))).collect();
    std::fs::write(&path, text).unwrap();
    let analysis = analyse(&[Input::File(path)], &Options::default(), &()).unwrap();
    let wanted = Wanted {
        instances: 2,
        profile: Arc::new(Profile::default()),
        users: 4,
        think: Duration::from_secs(1),
        goal: None,
        seeds: Some(1),
        jobs: 1,
    };
    let recommendation = analysis.recommend(&wanted, &()).unwrap();
    let cache = CacheSize { tokens: Profile::default().kv_capacity_tokens, instances: 2 };
    Told { findings: analysis.findings, recommendation, cache }
}

#[test]
fn a_report_names_the_position_the_loss_and_what_to_configure_and_no_text() {
    let told = told();
    let text = text(&told);
    let line = text.lines().find(|line| line.starts_with("messages[0] (system)")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[..6], ["messages[0]", "(system)", "6", "a", "time", "stamp"], "{line}");
    assert_eq!(words[6], "99.2%", "all requests but the first: {line}");
    for part in ["THE LOG", "HIT RATE BY CACHE SIZE", "PrefixLength", "ConcurrencyThreshold", "move the time behind"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let repaired = told.recommendation.as_ref().unwrap().repaired.as_ref().unwrap();
    assert!(repaired.figures.hit_rate > 0.9, "{repaired:?}");
    assert!(text.contains("\nIf repaired "), "{text}");
    assert!(!text.contains("thermal") && !text.contains("secret-word"), "text was printed");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
}

#[test]
fn the_page_and_the_json_tell_the_same_and_no_text_either() {
    let told = told();
    let (page, json) = (page(&told), serde_json::to_string(&told).unwrap());
    for part in ["<svg", "id=\"curve-t\"", "id=\"settings-t\"", "messages[0] (system)", "In words"] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(json.contains("\"cause\":\"timestamp\"") && json.contains("\"prefix_length_range\""));
    for report in [&page, &json] {
        assert!(!report.contains("thermal") && !report.contains("secret-word"));
    }
}
