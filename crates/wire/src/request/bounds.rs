//! Tests of bodies that would take long to look into.

use super::*;
use crate::request::CharacterCount;

/// How many values are looked at one by one.
const MANY: usize = 131_072;

/// A request with `count` values in an array, and a question behind them.
fn with_values(count: usize) -> String {
    let values = "{\"\":[]},1,".repeat(count.div_ceil(3));
    format!(
        r#"{{"model":"m","x":[{values}1],"prompt":"Why?","stream":true,"stream_options":{{"include_usage":true}}}}"#
    )
}

fn text(body: &str) -> String {
    let mut text = String::new();
    let described = describe(body.as_bytes(), Api::Completions, &mut |piece: &str| {
        text.push_str(piece);
        true
    });
    let described = described.expect("valid");
    assert_eq!((described.model.as_deref(), described.stream, described.include_usage), (Some("m"), true, true));
    text
}

#[test]
fn the_text_of_a_body_of_very_many_values_is_the_body_as_it_came() {
    let (some, many) = (with_values(MANY / 2), with_values(MANY + 10));
    assert_eq!((text(&some).as_str(), text(&many)), ("Why?", many.clone()));

    struct Rendered(Vec<u8>);
    impl PromptSink for Rendered {
        fn prompt(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }

        fn media(&mut self, _: &[u8]) {}
    }
    let mut rendered = Rendered(Vec::new());
    let described = render(many.as_bytes(), Api::Completions, &mut rendered).expect("valid");
    assert!(described.stream && described.include_usage);
    assert_eq!(rendered.0, [&[Mark::BYTE, Mark::Bytes as u8], many.as_bytes()].concat());
}

#[test]
fn a_body_of_very_many_values_has_no_canonical_form() {
    assert_eq!(canonical(with_values(MANY / 2).as_bytes(), &mut |_| true), Ok(()));
    let refused = canonical(with_values(MANY + 10).as_bytes(), &mut |_| true);
    assert_eq!(refused, Err(NotCanonical::TooMuch));
}

#[test]
fn bytes_that_are_no_text_are_replaced_up_to_a_bound() {
    let replaced = |count: usize| {
        let body = [br#"{"prompt":""#, &*vec![0xFF; count], "é\"}".as_bytes()].concat();
        let mut text = String::new();
        let read = describe(&body, Api::Completions, &mut |piece: &str| {
            text.push_str(piece);
            true
        });
        assert!(read.is_ok());
        text
    };
    assert_eq!(replaced(200), "\u{FFFD}".repeat(200) + "é");
    assert_eq!(replaced(1_000), "\u{FFFD}".repeat(256));
    assert_eq!(replaced(1 << 20).chars().count(), 256 * (1 << 20) / 4_096 + 1);
}

#[test]
fn what_is_cut_off_behind_very_many_values_is_refused_all_the_same() {
    let body = with_values(MANY + 10);
    for cut in [1, 2, 30, 90, 2_000] {
        let refused = describe(&body.as_bytes()[..body.len() - cut], Api::Completions, &mut CharacterCount::default());
        assert!(refused.is_err(), "{cut} bytes less");
    }
}

#[test]
fn a_body_has_so_many_members_and_no_more() {
    let described = |count: usize| {
        let body = format!("{{{}\"model\":\"m\"}}", "\"\":1,".repeat(count - 1));
        match describe(body.as_bytes(), Api::Completions, &mut CharacterCount::default()) {
            Ok(described) => Ok(described.model.as_deref() == Some("m")),
            Err(malformed) => Err(malformed.to_string()),
        }
    };
    assert_eq!(described(65_536), Ok(true));
    assert!(described(65_537).is_err_and(|refusal| refusal.contains("at most 65536 members")));
}

#[test]
fn a_key_means_the_same_however_it_is_written() {
    let escaped: String = "previous_response_id".bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let longer = format!("{escaped}\\u0061");
    let body = format!(r#"{{"{escaped}":"a","{longer}":"b","\u006dodel":"m","mod\ud83d\ude00el":"n"}}"#);
    let described = describe(body.as_bytes(), Api::Responses, &mut CharacterCount::default()).expect("valid");
    assert_eq!((described.previous_response_id.as_deref(), described.model.as_deref()), (Some("a"), Some("m")));
}
