//! Replays the saved corpus of the fuzz targets, and the files of JSONTestSuite.

use std::time::{Duration, Instant};

use isotherm_wire::api::Api;
use isotherm_wire::request::describe;
use serde_json::Value;

#[expect(unreachable_pub, reason = "for the fuzz targets it is a library")]
#[path = "../../../fuzz/src/wire.rs"]
mod fuzz;

#[expect(unreachable_pub, reason = "it stands beside the fuzz targets' library")]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn every_saved_body_is_described() {
    replay("describe", fuzz::check_describe);
}

#[test]
fn nothing_else_of_a_saved_body_changes() {
    replay("describe", fuzz::check_changes);
}

#[test]
fn every_saved_stream_is_told_the_same_however_it_is_cut() {
    replay("event_stream", fuzz::check_event_stream);
}

#[test]
fn every_saved_answer_is_read() {
    replay("response", fuzz::check_response);
}

#[test]
fn every_saved_frame_is_read() {
    replay("frames", fuzz::check_frames);
}

#[test]
fn every_saved_signature_is_read_or_refused() {
    replay("signed", fuzz::check_signed);
}

/// Name and bytes of each file.
fn json_test_suite() -> Vec<(String, Vec<u8>)> {
    let files: Vec<Value> = serde_json::from_str(include_str!("json_test_suite.json")).expect("the suite");
    let bytes = |text: &str| text.chars().map(|byte| u8::try_from(byte).expect("a byte")).collect::<Vec<u8>>();
    let files = files.iter().map(|file| {
        let (name, unit) = (file[0].as_str().expect("a name"), bytes(file[1].as_str().expect("a text")));
        (name.to_owned(), unit.repeat(file[2].as_u64().unwrap_or(1) as usize))
    });
    files.collect()
}

#[test]
fn what_has_to_be_accepted_is_and_nothing_breaks_on_any_of_it() {
    let files = json_test_suite();
    let beginning = |letter| files.iter().filter(|(name, _)| name.starts_with(letter)).count();
    assert_eq!(['y', 'n', 'i'].map(beginning), [95, 188, 35]);
    let begun = Instant::now();
    for (name, bytes) in &files {
        let member = [&br#"{"model":"m","prompt":"x","more":"#[..], bytes, b"}"].concat();
        for body in [bytes, &member] {
            fuzz::check_describe(body);
            fuzz::check_changes(body);
            fuzz::check_response(body);
        }
        fuzz::check_event_stream(&[b"data: ", &bytes[..], b"\n\n"].concat());
        if name.starts_with('y') {
            let mut text = String::new();
            let found = describe(&member, Api::Completions, &mut |piece: &str| {
                text.push_str(piece);
                true
            });
            let found = found.unwrap_or_else(|malformed| panic!("{name} is refused: {malformed}"));
            assert_eq!((found.model.as_deref(), text.as_str()), (Some("m"), "x"), "{name}");
        }
    }
    // More than a thousand readings of each, and two of them are a hundred thousand levels deep.
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}
