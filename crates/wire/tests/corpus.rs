//! Replays the saved corpus of the fuzz targets.

use std::path::Path;

#[expect(unreachable_pub, reason = "for the fuzz targets it is a library")]
#[path = "../../../fuzz/src/lib.rs"]
mod fuzz;

/// Runs `check` over every saved input of a fuzz target.
fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut replayed = 0;
    for entry in folder.read_dir().expect("the corpus is part of the repository") {
        let path = entry.expect("a readable folder").path();
        println!("{}", path.display());
        check(&std::fs::read(&path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", folder.display());
}

#[test]
fn describe() {
    replay("describe", fuzz::check_describe);
}

#[test]
fn event_stream() {
    replay("event_stream", fuzz::check_event_stream);
}

#[test]
fn response() {
    replay("response", fuzz::check_response);
}

#[test]
fn frames() {
    replay("frames", fuzz::check_frames);
}

#[test]
fn signed() {
    replay("signed", fuzz::check_signed);
}
