//! A JSON body in one form, whatever the order of its keys and its white space.

use std::borrow::Cow;

use crate::json::{Cursor, Malformed, RawString, Value};

/// The deepest nesting that is walked.
const LEVELS: usize = 32;

/// The most members of all objects that are open at once: what is kept of them is 64 bytes each.
const MEMBERS: usize = 16_384;

/// How many times the length of the body may be read: each level of nesting reads what is in it once.
const READINGS: usize = 8;

/// Begins and ends each string, in place of its quotes: no UTF-8 text holds this byte, so strings need no escapes.
const QUOTE: u8 = 0xFF;

/// Why a body has no canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotCanonical {
    /// It is not one JSON value.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// It would cost more than a key is worth: nested too deep, or too many members or values.
    #[error(
        "it is nested more than {LEVELS} deep, its objects have more than {MEMBERS} members, or it has too many values"
    )]
    TooMuch,
}

/// Gives the canonical form of the JSON text `body` to `take`, in pieces, until `take` returns `false`.
///
/// Bodies that differ only in the order of keys, in white space or in how strings are escaped have equal forms; bodies of
/// different values have different ones. Keys are sorted by their UTF-8 bytes; of one that stands twice the last counts.
/// Numbers stay as they are written: `1`, `1.0` and `1e0` are three.
///
/// A body of more than 131,072 values has none. Keeps no more than 16,384 members of open objects at once, and reads the
/// body at most eight times.
///
/// # Errors
///
/// [`NotCanonical`], perhaps after pieces were given.
pub fn canonical(body: &[u8], take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), NotCanonical> {
    let mut cursor = Cursor::new(body);
    let whole = cursor.value()?;
    cursor.end()?;
    if cursor.passed_many() {
        return Err(NotCanonical::TooMuch);
    }
    let unread = body.len().saturating_mul(READINGS);
    let mut form = Form { take, scratch: Vec::new(), wanted: true, members: 0, unread };
    form.value(whole, LEVELS)
}

struct Form<'t> {
    take: &'t mut dyn FnMut(&[u8]) -> bool,
    scratch: Vec<u8>,
    wanted: bool,
    /// Members of the objects that are open.
    members: usize,
    /// How many bytes may still be read.
    unread: usize,
}

impl Form<'_> {
    fn value(&mut self, value: Value<'_>, levels: usize) -> Result<(), NotCanonical> {
        match value.bytes().first() {
            Some(b'{') => self.object(value, levels),
            Some(b'[') => self.array(value, levels),
            _ => {
                match value.string() {
                    Some(string) => self.string(string),
                    None => self.give(value.bytes()),
                }
                Ok(())
            }
        }
    }

    fn object(&mut self, object: Value<'_>, levels: usize) -> Result<(), NotCanonical> {
        let levels = self.enter(object, levels)?;
        let mut sorted: Vec<(Cow<'_, [u8]>, Value<'_>)> = Vec::new();
        let mut cursor = object.cursor();
        if let Some(mut members) = cursor.members() {
            while let Some(key) = members.next_key()? {
                if self.members + sorted.len() == MEMBERS {
                    return Err(NotCanonical::TooMuch);
                }
                sorted.push((key.decoded(), members.value()?));
            }
        }
        // Stable: of equal keys the last stays last.
        sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
        let open = sorted.len();
        self.members += open;
        self.give(b"{");
        for (index, (key, value)) in sorted.iter().enumerate() {
            if sorted.get(index + 1).is_some_and(|(next, _)| next == key) {
                continue;
            }
            if !self.wanted {
                break;
            }
            self.give(&[QUOTE]);
            self.give(key);
            self.give(&[QUOTE]);
            self.value(*value, levels)?;
        }
        self.give(b"}");
        self.members -= open;
        Ok(())
    }

    fn array(&mut self, array: Value<'_>, levels: usize) -> Result<(), NotCanonical> {
        let levels = self.enter(array, levels)?;
        self.give(b"[");
        let mut cursor = array.cursor();
        if let Some(mut elements) = cursor.elements() {
            while self.wanted
                && let Some(element) = elements.next_element()?
            {
                let element = element.value()?;
                self.value(element, levels)?;
                self.give(b",");
            }
        }
        self.give(b"]");
        Ok(())
    }

    /// One level deeper, if that may be.
    fn enter(&mut self, container: Value<'_>, levels: usize) -> Result<usize, NotCanonical> {
        self.unread = self.unread.checked_sub(container.bytes().len()).ok_or(NotCanonical::TooMuch)?;
        levels.checked_sub(1).ok_or(NotCanonical::TooMuch)
    }

    fn string(&mut self, string: RawString<'_>) {
        self.give(&[QUOTE]);
        if self.wanted {
            self.wanted = string.pieces(&mut self.scratch, &mut |piece| (self.take)(piece.as_bytes()));
        }
        self.give(&[QUOTE]);
    }

    fn give(&mut self, bytes: &[u8]) {
        if self.wanted && !bytes.is_empty() {
            self.wanted = (self.take)(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value as Json};

    use super::*;

    fn form(body: &str) -> Result<Vec<u8>, NotCanonical> {
        let mut form = Vec::new();
        canonical(body.as_bytes(), &mut |piece| {
            form.extend_from_slice(piece);
            true
        })?;
        Ok(form)
    }

    #[test]
    fn order_white_space_and_escapes_do_not_count() {
        let same = [
            r#"{"inputs":"你 \n","parameters":{"a":1,"b":[1,2]}}"#,
            "{\n  \"parameters\": {\"b\": [1, 2], \"a\": 1},\n  \"inputs\": \"\\u4f60 \\u000a\"\n}\n",
            r#"{"inputs":"never read","parameters":{"b":[1,2],"a":1},"inp\u0075ts":"你 \n"}"#,
        ];
        for body in same {
            assert_eq!(form(body), form(same[0]), "{body}");
        }
    }

    #[test]
    fn what_looks_alike_is_told_apart() {
        let different = [
            r#"{"a":"1"}"#,
            r#"{"a":1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":[1]}"#,
            r#"{"a":["1"]}"#,
            r#"{"a":null}"#,
            r#"["a",1]"#,
            r#"["a","b"]"#,
            r#"["a\",\"b"]"#,
            r#"["ab"]"#,
            r#"{"a":{}}"#,
            r#"{"a":[]}"#,
            r#"{"a":[[]]}"#,
            r#"[["a"],1]"#,
        ];
        for (index, one) in different.iter().enumerate() {
            for other in &different[index + 1..] {
                assert_ne!(form(one), form(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn what_is_no_json_or_costs_too_much_has_no_form() {
        for body in ["", "{", "inputs", r#"{"a":1}{"#, r#"{"a" 1}"#] {
            assert!(matches!(form(body), Err(NotCanonical::Malformed(_))), "{body}");
        }
        let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
        assert_eq!(form(&deep), Err(NotCanonical::TooMuch));
        let deep_and_long = format!("{}\"{}\"{}", "[".repeat(20), "x".repeat(10_000), "]".repeat(20));
        assert_eq!(form(&deep_and_long), Err(NotCanonical::TooMuch));
        let wide = format!("{{{}\"z\":1}}", (0..MEMBERS).map(|at| format!("\"{at}\":1,")).collect::<String>());
        assert_eq!(form(&wide), Err(NotCanonical::TooMuch));
    }

    #[test]
    fn nothing_more_is_given_than_is_wanted() {
        let mut pieces = 0;
        let given = canonical(br#"{"a":[1,2,3],"b":"c"}"#, &mut |_| {
            pieces += 1;
            pieces < 3
        });
        assert_eq!((given, pieces), (Ok(()), 3));
    }

    fn json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i32>().prop_map(Json::from),
            "\\PC{0,6}".prop_map(Json::from),
        ];
        leaf.prop_recursive(3, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
                prop::collection::hash_map("[a-c\"\\\\]{0,2}", inner, 0..5)
                    .prop_map(|members| Json::Object(members.into_iter().collect())),
            ]
        })
    }

    /// The same value with its keys the other way round, in another spelling.
    fn otherwise(value: &Json) -> String {
        match value {
            Json::Object(members) => {
                let member =
                    |(key, value): (&String, &Json)| format!("\n {} :\t{}", Json::from(key.as_str()), otherwise(value));
                format!("{{{}\r\n}}", members.iter().rev().map(member).collect::<Vec<_>>().join(" ,"))
            }
            Json::Array(elements) => format!("[ {} ]", elements.iter().map(otherwise).collect::<Vec<_>>().join(" , ")),
            Json::String(text) => {
                let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
                format!("\"{escaped}\"")
            }
            scalar => scalar.to_string(),
        }
    }

    proptest! {
        #[test]
        fn the_form_is_of_the_value_alone(one in json(), other in json()) {
            let (one, other) = (Json::from(vec![one]), Json::from(vec![other]));
            let compact = form(&one.to_string());
            prop_assert!(compact.is_ok());
            prop_assert_eq!(&compact, &form(&otherwise(&one)));
            prop_assert_eq!(compact == form(&other.to_string()), one == other);
        }
    }

    #[test]
    fn a_value_hidden_anywhere_changes_the_form() {
        let mut members = Map::new();
        members.insert("deep".to_owned(), serde_json::json!([{ "x": [1, { "y": "z" }] }]));
        let before = form(&Json::Object(members.clone()).to_string());
        members["deep"][0]["x"][1]["y"] = Json::from("Z");
        assert_ne!(before, form(&Json::Object(members).to_string()));
    }
}
