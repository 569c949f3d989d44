//! Patterns of the service model: written for Java, matched against the whole text.

use regex_lite::Regex;

/// A pattern, and what it says.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// As the service model writes it, for messages.
    pub(super) text: &'static str,
    regex: Regex,
    /// What the expression can't say.
    beyond: fn(&str) -> bool,
}

impl Pattern {
    pub(super) fn parse(text: &'static str) -> Result<Pattern, String> {
        let (expression, beyond) = rewritten(text);
        let regex = Regex::new(&format!(r"\A(?:{expression})\z")).map_err(|error| format!("{text}: {error}"))?;
        Ok(Pattern { text, regex, beyond })
    }

    pub(super) fn matches(&self, value: &str) -> bool {
        (self.beyond)(value) && self.regex.is_match(value)
    }
}

/// Looking around and classes of Unicode are beyond the expressions here: such a pattern becomes an expression without
/// them and a test for the rest.
fn rewritten(text: &'static str) -> (&'static str, fn(&str) -> bool) {
    match text {
        r"([\p{L}\p{Z}\p{N}_.:/=+\-@]*)" => (r"(?s:.*)", |value| value.chars().all(may_stand_in_a_tag)),
        // Nothing but white space is not allowed.
        r"(?!\s*$).+" => (r".+", |value| !value.trim().is_empty()),
        r"/(?!.*\.\.)[a-zA-Z0-9/_.\-]+" => (r"/[a-zA-Z0-9/_.\-]+", |value| !value.contains("..")),
        // The name may not end in a hyphen.
        r"(arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:[a-z\-]*\/)?([a-zA-Z0-9]([a-zA-Z0-9-]){0,62})(?<!-)(\/[0-9]{1,9})?" => {
            (
                r"(arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:[a-z\-]*/)?[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(/[0-9]{1,9})?",
                |_| true,
            )
        }
        text => (text, |_| true),
    }
}

fn may_stand_in_a_tag(character: char) -> bool {
    let separator = character.is_whitespace() && !character.is_control();
    character.is_alphabetic() || character.is_numeric() || separator || "_.:/=+-@".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &'static str, good: &[&str], bad: &[&str]) {
        let pattern = Pattern::parse(pattern).unwrap();
        for text in good {
            assert!(pattern.matches(text), "{text:?} is allowed by {}", pattern.text);
        }
        for text in bad {
            assert!(!pattern.matches(text), "{text:?} is not allowed by {}", pattern.text);
        }
    }

    #[test]
    fn the_whole_text_must_match() {
        check("[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", &["a", "a--b", "A1"], &["", "-a", "a-", "a_b", "a\n", "ä"]);
        check(r"[a-zA-Z0-9]([\-a-zA-Z0-9]*[a-zA-Z0-9])?", &["a", "a--b"], &["", "a-", "a b"]);
        check(r"[\S]+", &["a/b:c"], &["a b", ""]);
        check(r"[\S\s]*", &["", "a\nb"], &[]);
    }

    #[test]
    fn patterns_beyond_plain_expressions_keep_their_meaning() {
        check(r"([\p{L}\p{Z}\p{N}_.:/=+\-@]*)", &["", "Größe 1", "团队:a/b", "½"], &["a\tb", "a#b", "é!"]);
        check(r"(?!\s*$).+", &["a", " a "], &["", "  ", "a\nb"]);
        check(r"/(?!.*\.\.)[a-zA-Z0-9/_.\-]+", &["/metrics", "/a.b"], &["metrics", "/", "/a..b", "/../a"]);
        let package = r"(arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:[a-z\-]*\/)?([a-zA-Z0-9]([a-zA-Z0-9-]){0,62})(?<!-)(\/[0-9]{1,9})?";
        let arn = "arn:aws:sagemaker:eu-west-1:123456789012:model-package/llama/3";
        let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
        check(package, &["llama", "llama/12", arn, &longest], &["llama-", "llama-/1", "llama/", "-llama", &too_long]);
    }
}
