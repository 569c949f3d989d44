//! Patterns with `*` and `?`, by which instance types and images are told apart.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::value::parsed;

/// A pattern over a whole text: `*` stands for any characters, also none, and `?` for one. Case counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Box<str>);

impl Glob {
    /// Whether the whole text fits, in time linear in each of the two.
    pub fn matches(&self, text: &str) -> bool {
        let (pattern, text): (Vec<char>, Vec<char>) = (self.0.chars().collect(), text.chars().collect());
        let (mut at, mut read) = (0, 0);
        // The last `*`, and how much of the text it stands for so far.
        let mut star: Option<(usize, usize)> = None;
        while read < text.len() {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at, read));
                    at += 1;
                }
                Some(&wanted) if wanted == '?' || wanted == text[read] => (at, read) = (at + 1, read + 1),
                _ => {
                    let Some((before, taken)) = star else { return false };
                    star = Some((before, taken + 1));
                    (at, read) = (before + 1, taken + 1);
                }
            }
        }
        pattern[at..].iter().all(|&rest| rest == '*')
    }
}

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no pattern; allowed: 1 to 255 characters without spaces, where * stands for any and ? for one")]
pub struct GlobError(String);

impl FromStr for Glob {
    type Err = GlobError;

    fn from_str(text: &str) -> Result<Glob, GlobError> {
        if (1..=255).contains(&text.len()) && !text.contains(char::is_whitespace) {
            Ok(Glob(text.into()))
        } else {
            Err(GlobError(text.to_owned()))
        }
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Glob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Glob, D::Error> {
        parsed(deserializer)
    }
}

impl JsonSchema for Glob {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Glob".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^\\S{1,255}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_a_question_mark_for_one() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("ml.g5.*", "ml.g5.xlarge", true),
            ("ml.g5.*", "ml.g6.xlarge", false),
            ("*vllm*", "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.33-vllm", true),
            ("ml.p?.48xlarge", "ml.p5.48xlarge", true),
            ("ml.p?.48xlarge", "ml.p5e.48xlarge", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-", false),
            ("ML.*", "ml.g5.xlarge", false),
            ("a", "ab", false),
            ("ab", "a", false),
        ] {
            assert_eq!(pattern.parse::<Glob>().unwrap().matches(text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_of_stars_is_not_slow() {
        let pattern: Glob = "*a".repeat(100).parse().unwrap();
        assert!(!pattern.matches(&"b".repeat(100_000)));
        assert!(!pattern.matches(&("a".repeat(10_000) + "b")));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["", "a b", &"a".repeat(256)] {
            assert!(text.parse::<Glob>().is_err(), "{text:?}");
        }
    }
}
