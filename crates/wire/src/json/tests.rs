//! The JSON reader against tables, against `serde_json`, and against bytes that are no JSON.

use std::time::{Duration, Instant};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value as Document;

use super::*;

fn check(json: &[u8]) -> Result<(), Malformed> {
    let mut cursor = Cursor::new(json);
    cursor.skip_value()?;
    cursor.end()
}

fn decode(literal: &[u8]) -> String {
    Cursor::new(literal).value().expect("a string").string().expect("a string").decode().into_owned()
}

#[test]
fn accepts_what_engines_accept() {
    let cases = [
        "{}",
        "[]",
        " \t\r\n[ 1 , 2 ] \n",
        "\u{feff}{\"a\":1}",
        "[0,-0,10,1.5,-1.5e10,1E+2,1e400,123456789012345678901234567890]",
        "[NaN,Infinity,-Infinity,true,false,null]",
        r#"["\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00\ud800"]"#,
        "\"a raw \u{1} control character\"",
        r#""\x is no escape, \u12g4 neither""#,
        r#"{"a":{"b":[{"c":[]},{}]},"a":2}"#,
    ];
    for json in cases {
        assert_eq!(check(json.as_bytes()), Ok(()), "{json}");
    }
    assert_eq!(check(b"\"\xff\xfe is not UTF-8\""), Ok(()));
}

#[test]
fn a_string_ends_at_its_quote_wherever_that_and_escapes_stand() {
    for length in 0..48 {
        for (escape, character) in [("", ""), (r#"\""#, "\""), (r"\\", "\\"), (r"\n", "\n"), ("é", "é")] {
            for at in 0..=length {
                let with = |middle: &str| "x".repeat(at) + middle + &"x".repeat(length - at);
                for behind in ["", ",", "\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"", "\", and much more behind it: 1"] {
                    let literal = format!("\"{}\"{behind}", with(escape));
                    assert_eq!(decode(literal.as_bytes()), with(character), "{literal}");
                }
            }
        }
    }
}

#[test]
fn tells_what_is_wrong_and_where() {
    let cases = [
        ("", 0, "a value", "the end of the body"),
        ("{", 1, "a key in double quotes", "the end of the body"),
        ("[", 1, "a value", "the end of the body"),
        ("{a:1}", 1, "a key in double quotes", "`a`"),
        ("{'a':1}", 1, "a key in double quotes", "`'`"),
        ("{\"a\" 1}", 5, "`:` after a key", "`1`"),
        ("{\"a\":}", 5, "a value", "`}`"),
        ("{\"a\":1,}", 7, "a key in double quotes", "`}`"),
        ("[1,]", 3, "a value", "`]`"),
        ("[1 2]", 3, "`,` or `]`", "`2`"),
        ("[1}", 2, "`,` or `]`", "`}`"),
        ("{\"a\":1]", 6, "`,` or `}`", "`]`"),
        ("{\"a\":[{}}", 8, "`,` or `]`", "`}`"),
        ("{} x", 3, "the end of the body", "`x`"),
        ("\"abc", 4, "a closing `\"`", "the end of the body"),
        ("\"\\", 2, "a closing `\"`", "the end of the body"),
        ("\"\\\"", 3, "a closing `\"`", "the end of the body"),
        ("01", 1, "the end of the body", "`1`"),
        ("-", 1, "a digit", "the end of the body"),
        ("1.", 2, "a digit", "the end of the body"),
        ("1e+", 3, "a digit", "the end of the body"),
        ("nul", 0, "`true`, `false`, `null`, `NaN` or `Infinity`", "`n`"),
        ("-Inf", 1, "`true`, `false`, `null`, `NaN` or `Infinity`", "`I`"),
        ("\u{1}", 0, "a value", "the byte 0x01"),
    ];
    for (json, offset, expected, found) in cases {
        let malformed = check(json.as_bytes()).expect_err(json);
        let message = format!("invalid JSON at byte {offset}: expected {expected}, found {found}");
        assert_eq!(malformed.to_string(), message, "{json}");
    }
}

#[test]
fn depth_costs_neither_stack_nor_time() {
    let took = || {
        let begun = Instant::now();
        let depth = 100_000;
        let open = "[".repeat(depth);
        assert_eq!(check(open.as_bytes()).map_err(|malformed| malformed.offset), Err(depth));
        assert_eq!(check(format!("{open}{}", "]".repeat(depth)).as_bytes()), Ok(()));
        let objects = format!("{}1{}", r#"[{"a":"#.repeat(depth), "}]".repeat(depth));
        assert_eq!(check(objects.as_bytes()), Ok(()));
        let wrong = format!("{open}{}", "}".repeat(depth));
        assert_eq!(check(wrong.as_bytes()).map_err(|malformed| malformed.offset), Err(depth));
        begun.elapsed()
    };
    // The machine may pause within one: what it costs is the least of three.
    let least = took().min(took()).min(took());
    assert!(least < Duration::from_secs(2), "{least:?}");
}

#[test]
fn what_stands_around_a_deep_nest_is_still_told_apart() {
    // 64 levels are one word of the stack of containers: cross that border in both directions.
    for depth in [1, 62, 63, 64, 65, 127, 128, 129, 200] {
        let (open, close) = (r#"{"k":["#.repeat(depth), "]}".repeat(depth));
        assert_eq!(check(format!("[{open}{close},7]").as_bytes()), Ok(()), "depth {depth}");
        let crossed = close.replacen("]}", "}]", 1);
        assert!(check(format!("[{open}{crossed},7]").as_bytes()).is_err(), "depth {depth}");
    }
}

#[test]
fn resolves_escapes() {
    let cases = [
        (r#""plain""#, "plain"),
        (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
        (r#""\u4f60\u597D""#, "你好"),
        (r#""\ud83d\ude00!""#, "😀!"),
        (r#""\ud83d""#, "\u{FFFD}"),
        (r#""\ude00\ud83d""#, "\u{FFFD}\u{FFFD}"),
        (r#""\ud83d\ud83d\ude00""#, "\u{FFFD}😀"),
        (r#""\ud83dx\ude00""#, "\u{FFFD}x\u{FFFD}"),
        (r#""\u0000""#, "\0"),
    ];
    for (literal, expected) in cases {
        assert_eq!(decode(literal.as_bytes()), expected, "{literal}");
    }
    assert_eq!(decode(b"\"a\xff\xe4\xbd\\n\""), "a\u{FFFD}\u{FFFD}\n");
}

#[test]
fn long_text_is_never_split_inside_a_character() {
    for padding in 0..5 {
        let text = format!("{}{}", "x".repeat(padding), "你😀é".repeat(3_000));
        let literal = format!("\"{text}\"");
        let mut pieces = Vec::new();
        let value = Cursor::new(literal.as_bytes()).value().expect("a value");
        value.string().expect("a string").pieces(&mut Vec::new(), &mut |piece| {
            pieces.push(piece.to_owned());
            true
        });
        assert!(pieces.len() > 1);
        assert_eq!(pieces.concat(), text);
    }
}

#[test]
fn bytes_that_are_no_text_decode_as_the_standard_library_does() {
    // Only continuation bytes, so that no place to cut is a whole character.
    let mut literal = vec![b'"'];
    literal.extend(std::iter::repeat_n(0x80, 10_000));
    literal.push(b'"');
    assert_eq!(decode(&literal), "\u{FFFD}".repeat(10_000));
}

#[test]
fn decoding_stops_when_no_more_is_wanted() {
    let literal = format!("\"{}\"", "abc\\n".repeat(100_000));
    let mut taken = 0;
    let value = Cursor::new(literal.as_bytes()).value().expect("a value");
    let wants_more = value.string().expect("a string").pieces(&mut Vec::new(), &mut |piece| {
        taken += piece.len();
        false
    });
    assert!(!wants_more);
    assert!(taken < 5_000, "{taken}");
}

#[test]
fn values_left_unread_are_passed_over() {
    let json = br#"{"a":[1,{"b":2}],"c":{"d":"e"},"f":3}"#;
    let mut cursor = Cursor::new(json);
    let mut members = cursor.members().expect("an object");
    let mut keys = Vec::new();
    while let Some(key) = members.next_key().expect("valid") {
        keys.push(key.decode().into_owned());
    }
    assert_eq!(keys, ["a", "c", "f"]);
    assert!(members.next_key().expect("valid").is_none());
    assert_eq!(cursor.end(), Ok(()));
}

#[test]
fn integers_are_digits_only() {
    for (json, expected) in [
        ("0", Some(0)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("-1", None),
        ("1.0", None),
        ("1e3", None),
        ("\"1\"", None),
        ("null", None),
    ] {
        assert_eq!(Cursor::new(json.as_bytes()).value().expect("a value").integer(), expected, "{json}");
    }
}

/// Any document, a few levels deep.
fn document() -> impl Strategy<Value = Document> {
    let scalar = prop_oneof![
        Just(Document::Null),
        any::<bool>().prop_map(Document::from),
        any::<i64>().prop_map(Document::from),
        any::<f64>().prop_map(Document::from),
        any::<String>().prop_map(Document::from),
        "[a-z\"\\\\\n你😀]{0,300}".prop_map(Document::from),
    ];
    scalar.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Document::from),
            btree_map(key(), inner, 0..6).prop_map(|members| Document::Object(members.into_iter().collect())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![Just("usage".to_owned()), Just("id".to_owned()), Just("response".to_owned()), any::<String>()]
}

/// Writes a document, with white space or without, with characters as they are or escaped.
fn written(document: &Document, pretty: bool, ascii: bool) -> String {
    let json = if pretty { format!("{document:#}") } else { document.to_string() };
    if !ascii {
        return json;
    }
    let mut units = [0; 2];
    json.chars().fold(String::new(), |mut json, character| {
        if character.is_ascii() {
            json.push(character);
        } else {
            character.encode_utf16(&mut units).iter().for_each(|unit| json.push_str(&format!("\\u{unit:04x}")));
        }
        json
    })
}

/// What a [`Watch`] for usage and id finds, when the text comes in pieces split at `cuts`.
fn watched(json: &[u8], cuts: &[usize]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut watch = Watch::new(|_, key| matches!(key, b"usage" | b"id"));
    let mut found = Vec::new();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (json.len() + 1)).chain([json.len()]).collect();
    cuts.sort_unstable();
    let mut from = 0;
    for cut in cuts {
        watch.follow(&json[from..cut], &mut |key, value| found.push((key.to_vec(), value.to_vec())));
        from = cut;
    }
    found
}

proptest! {
    #[test]
    fn finds_every_member_that_serde_json_finds(
        members in btree_map(key(), document(), 0..6), pretty: bool, ascii: bool,
    ) {
        let document = Document::Object(members.clone().into_iter().collect());
        let json = written(&document, pretty, ascii);
        let mut cursor = Cursor::new(json.as_bytes());
        let mut walk = cursor.members().expect("an object");
        let mut found = std::collections::BTreeMap::new();
        while let Some(key) = walk.next_key().expect("valid") {
            let value = walk.value().expect("valid");
            found.insert(key.decode().into_owned(), serde_json::from_slice::<Document>(value.bytes()).expect("valid"));
            prop_assert_eq!(key.decode().into_owned().into_bytes(), key.decoded().into_owned());
        }
        prop_assert_eq!(cursor.end(), Ok(()));
        prop_assert_eq!(found, serde_json::from_str(&json).expect("valid"));
    }

    #[test]
    fn refuses_nothing_that_serde_json_accepts(
        document in document(), pretty: bool, ascii: bool, at: usize, byte in prop_oneof![any::<u8>(), "[\\[\\]{}:,\"\\\\0e.u-]".prop_map(|one| one.as_bytes()[0])], insert: bool,
    ) {
        let mut json = written(&document, pretty, ascii).into_bytes();
        let at = at % json.len();
        if insert { json.insert(at, byte) } else { json[at] = byte }
        if serde_json::from_slice::<serde::de::IgnoredAny>(&json).is_ok() {
            prop_assert_eq!(check(&json), Ok(()));
        }
    }

    #[test]
    fn outside_of_strings_accepts_only_json(document in document(), at: usize, byte in "[\\[\\]{}:,0]") {
        let mut json = document.to_string().into_bytes();
        let at = at % json.len();
        json[at] = byte.as_bytes()[0];
        // Escapes and UTF-8 are not judged, so only texts where neither can be wrong.
        if json.is_ascii() && !json.contains(&b'\\') && check(&json).is_ok() {
            let result = serde_json::from_slice::<serde::de::IgnoredAny>(&json);
            prop_assert!(result.is_ok(), "{}", String::from_utf8_lossy(&json));
        }
    }

    #[test]
    fn decodes_strings_as_serde_json_does(text: String, ascii: bool) {
        let literal = written(&Document::from(text.clone()), false, ascii);
        prop_assert_eq!(decode(literal.as_bytes()), text);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = check(&bytes);
        watched(&bytes, &[]);
        let raw = RawString::new(&bytes);
        let mut pieces = String::new();
        raw.pieces(&mut Vec::new(), &mut |piece| { pieces.push_str(piece); true });
        prop_assert_eq!(pieces, raw.decode().into_owned());
    }

    #[test]
    fn a_watch_finds_the_same_under_any_splitting(document in document(), cuts in vec(any::<usize>(), 0..8)) {
        let json = written(&document, false, false);
        prop_assert_eq!(watched(json.as_bytes(), &cuts), watched(json.as_bytes(), &[]));
    }

    #[test]
    fn a_watch_finds_what_serde_json_finds(members in btree_map(key(), document(), 0..6)) {
        let json = written(&Document::Object(members.into_iter().collect()), false, false);
        let document: Document = serde_json::from_str(&json).expect("valid");
        let wanted = |key: &str, value: &Document| {
            matches!(key, "usage" | "id") && (value.is_string() || value.is_object())
        };
        let mut expected = Vec::new();
        for (key, value) in document.as_object().expect("an object") {
            if wanted(key, value) {
                expected.push(value.clone());
            } else if let Document::Object(inner) = value {
                expected.extend(inner.iter().filter(|(key, value)| wanted(key, value)).map(|(_, value)| value.clone()));
            }
        }
        let found: Vec<Document> = watched(json.as_bytes(), &[])
            .iter()
            .map(|(_, value)| serde_json::from_slice(value).expect("a value"))
            .collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_watch_passes_over_what_is_too_long() {
    let json = format!(r#"{{"usage":{{"a":"{}"}},"id":"x"}}"#, "y".repeat(9_000));
    assert_eq!(watched(json.as_bytes(), &[]), [(b"id".to_vec(), b"\"x\"".to_vec())]);
    let key = "usage".repeat(20);
    assert_eq!(watched(format!(r#"{{"{key}":"x"}}"#).as_bytes(), &[]), []);
}
