//! `isotherm analyze`: what a log shares, what breaks it, and what to configure.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use isotherm_tests::{binary, document, run};
use serde_json::{Value, json};

/// The trace of Mooncake that comes with Isotherm.
fn trace() -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/mooncake-synthetic.jsonl.gz");
    data.to_str().expect("a path in UTF-8").to_owned()
}

/// A log of chats, ten seconds for each hundred, whose system prompt begins with the time.
fn log(folder: &Path) -> PathBuf {
    let rules = document(1, 900);
    let request = |number: u32| {
        let time = format!("2026-11-30T10:{:02}:{:02}.{}00Z", number / 600, number / 10 % 60, number % 10);
        json!({ "timestamp": time, "request": { "model": "m", "messages": [
            { "role": "system", "content": format!("Time: {time}\n{rules}") },
            { "role": "user", "content": format!("confidential-{number}") },
        ] } })
    };
    let path = folder.join("chats.jsonl");
    let lines: String = (0..200).map(|number| format!("{}\n", request(number))).collect();
    std::fs::write(&path, lines).expect("a log");
    path
}

#[test]
fn a_trace_has_the_hit_rate_that_is_known_of_it() {
    let ended = run(&["analyze", &trace(), "--simulate", "0"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let line = ended.stdout.lines().find(|line| line.starts_with("Tokens that came before")).expect("the hit rate");
    assert!(line.contains(" 65.1%: "), "{line}");
}

#[test]
fn a_time_stamp_in_front_is_named_and_no_text_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (json, html) = (folder.path().join("report.json"), folder.path().join("report.html"));
    let text = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
    let log = text(&log(folder.path()));
    let ended =
        run(&["analyze", &log, "--instances", "2", "--seeds", "1", "--json", &text(&json), "--html", &text(&html)]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let line = ended.stdout.lines().find(|line| line.starts_with("messages[0] (system)")).expect("the place");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[2..7], ["6", "a", "time", "stamp", "99.5%"], "{line}");
    assert!(ended.stdout.contains("ConcurrencyThreshold") && ended.stdout.contains("are as good"));

    let told: Value = serde_json::from_str(&std::fs::read_to_string(&json).expect("JSON")).expect("JSON");
    assert_eq!(told["findings"]["breaks"][0]["cause"], "timestamp");
    assert!(told["recommendation"]["predicted"]["ttft_p50_ms"].as_f64().is_some());
    let page = std::fs::read_to_string(&html).expect("a page");
    assert!(page.contains("<svg"));
    for report in [&ended.stdout, &ended.stderr, &page, &told.to_string()] {
        assert!(!report.contains("confidential"), "text was told");
    }
}

/// The most memory, in MiB, that it took to read so many megabytes of chats that share nothing.
fn memory_for(megabytes: usize) -> u64 {
    let mut command = Command::new(binary());
    command.args(["analyze", "-", "--simulate", "0"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("isotherm");
    let mut log = child.stdin.take().expect("its standard input");
    let words = document(1, 30_000);
    for number in 0..megabytes * 10 {
        let line = json!({ "prompt": format!("{number} {}", &words[number % 5_000..][..100_000]) });
        writeln!(log, "{line}").expect("it reads on");
    }
    // It waits for more, and has read all but what fits into a pipe.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("a living process");
    drop(log);
    assert!(child.wait().expect("an end").success());
    let most =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok());
    most.expect("its peak") / 1_024
}

#[test]
fn a_log_of_any_length_is_read_in_the_same_memory() {
    let (short, long) = (memory_for(150), memory_for(300));
    assert!(long < 450 && long < short + short / 5, "{short} MiB for 150 MB, {long} MiB for 300 MB");
}

#[test]
fn a_log_that_breaks_off_is_read_as_far_as_it_goes_and_wrong_lines_are_told_without_their_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.log");
    let line = |number: u32| format!("{{\"prompt\":\"{} {number}\"}}\n", document(1, 50));
    let mut text: String = (0..5).map(line).collect();
    text.push_str("\"confidential\"\n{\"prompt\":\"confiden");
    std::fs::write(&path, text).expect("a file");
    let ended = run(&["analyze", path.to_str().expect("a path in UTF-8"), "--simulate", "0"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("5 requests, 2 unreadable (bodies)"), "{}", ended.stdout);
    let told = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("2 records could not be read as bodies: record 6: expected a map"), "{told}");
    assert!(!told.contains("confiden"), "{told}");
}

#[test]
fn what_is_no_log_is_refused_with_what_was_expected() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.log");
    std::fs::write(&path, "{\"level\":\"info\"}\n").expect("a file");
    let path = path.to_str().expect("a path in UTF-8");
    let ended = run(&["analyze", path]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("no request in it, read as bodies") && ended.stderr.contains("--format"));
    let ended = run(&["analyze", "/nowhere/at/all.jsonl"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("cannot open /nowhere/at/all.jsonl"), "{}", ended.stderr);
    assert_eq!(run(&["analyze", path, "--format", "xml"]).code, Some(2));
}
