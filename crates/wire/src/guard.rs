//! Parameters that cost an engine dearly or make it fetch what it should not, found in a body before it is sent on.
//!
//! What engines were brought down with: choices without number (CVE-2026-34756), media from addresses that only the
//! engine's host reaches (CVE-2025-6242).

mod media;

use crate::json::{Cursor, Malformed, Value};

pub use media::MediaUrls;

/// The most that requests may ask for; what is `None` has no bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guards {
    /// Of tokens to generate.
    pub max_tokens: Option<u64>,
    /// Of choices to generate, and to generate the best of.
    pub choices: Option<u64>,
    /// Of likely tokens told for each.
    pub logprobs: Option<u64>,
    /// Where media may lie.
    pub media_urls: MediaUrls,
}

/// What a request asks for and may not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    /// A number above its bound, or one that means "all".
    #[error("`{field}` may be at most {most} here")]
    Number {
        /// The parameter.
        field: &'static str,
        /// Its bound.
        most: u64,
    },
    /// A URL of media that may not be fetched.
    #[error("a media URL {what}")]
    Media {
        /// What is allowed.
        what: &'static str,
    },
    /// Parts within parts, further than any API has them.
    #[error("its parts lie too deep in one another")]
    Depth,
}

/// Which bound a parameter has.
#[derive(Debug, Clone, Copy)]
enum Bound {
    MaxTokens,
    Choices,
    Logprobs,
}

/// The parameters by the names that OpenAI, Anthropic, vLLM, SGLang and TGI give them.
const PARAMETERS: [(&str, Bound); 10] = [
    ("max_tokens", Bound::MaxTokens),
    ("max_completion_tokens", Bound::MaxTokens),
    ("max_output_tokens", Bound::MaxTokens),
    ("max_new_tokens", Bound::MaxTokens),
    ("min_tokens", Bound::MaxTokens),
    ("n", Bound::Choices),
    ("best_of", Bound::Choices),
    ("logprobs", Bound::Logprobs),
    ("top_logprobs", Bound::Logprobs),
    ("prompt_logprobs", Bound::Logprobs),
];

/// Objects that hold parameters, too.
const WITHIN: [&str; 2] = ["parameters", "sampling_params"];

/// Checks a request's body. Of a key that stands twice every value counts. What is no JSON object passes: to say so is
/// another's business.
///
/// # Errors
///
/// The first thing that it asks for and may not.
pub fn check(body: &[u8], guards: &Guards) -> Result<(), Excess> {
    let mut cursor = Cursor::new(body);
    match guards.object(&mut cursor, true) {
        Ok(()) | Err(Refusal::Malformed) => Ok(()),
        Err(Refusal::Excess(excess)) => Err(excess),
    }
}

/// Why a walk through a body ended.
#[derive(Debug)]
enum Refusal {
    Excess(Excess),
    Malformed,
}

impl From<Malformed> for Refusal {
    fn from(_: Malformed) -> Refusal {
        Refusal::Malformed
    }
}

impl Guards {
    fn object(&self, cursor: &mut Cursor<'_>, outermost: bool) -> Result<(), Refusal> {
        let Some(mut members) = cursor.members() else { return Ok(()) };
        while let Some(key) = members.next_key()? {
            let key = key.decoded();
            if let Some((field, bound)) = PARAMETERS.iter().find(|(name, _)| name.as_bytes() == &*key) {
                if let Some(most) = self.most(*bound)
                    && !stays_within(members.value()?, most)
                {
                    return Err(Refusal::Excess(Excess::Number { field, most }));
                }
            } else if outermost && WITHIN.iter().any(|name| name.as_bytes() == &*key) {
                self.object(members.cursor(), false)?;
            } else if outermost
                && self.media_urls != MediaUrls::Any
                && media::CARRIERS.iter().any(|name| name.as_bytes() == &*key)
            {
                media::check(members.cursor(), self.media_urls, 0)?;
            }
        }
        Ok(())
    }

    fn most(&self, bound: Bound) -> Option<u64> {
        match bound {
            Bound::MaxTokens => self.max_tokens,
            Bound::Choices => self.choices,
            Bound::Logprobs => self.logprobs,
        }
    }
}

/// Whether a value is no number, or one from 0 to `most`. Engines read numbers in strings as numbers; below 0 means all
/// of them.
fn stays_within(value: Value<'_>, most: u64) -> bool {
    let text = value.string().map(|string| String::from_utf8_lossy(&string.decoded()).into_owned());
    let written = text.as_deref().or_else(|| std::str::from_utf8(value.bytes()).ok()).unwrap_or_default();
    match written.trim().parse::<f64>() {
        // Not a number is not within, either.
        Ok(number) => (0.0..=most as f64).contains(&number),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARDS: Guards =
        Guards { max_tokens: Some(4_096), choices: Some(8), logprobs: Some(20), media_urls: MediaUrls::Public };

    fn refused(body: &str) -> Option<String> {
        check(body.as_bytes(), &GUARDS).err().map(|excess| excess.to_string())
    }

    #[test]
    fn what_stays_within_its_bounds_passes() {
        for body in [
            "{}",
            r#"{"model":"m","max_tokens":4096,"n":8,"best_of":1,"logprobs":true,"top_logprobs":20}"#,
            r#"{"max_tokens":null,"n":null,"logprobs":false,"tools":[{"n":999}],"metadata":{"max_tokens":1e9}}"#,
            r#"{"prompt":"max_tokens 5000","max_completion_tokens":1.0}"#,
            "no JSON",
            r#"{"n":"#,
            "[1]",
        ] {
            assert_eq!(refused(body), None, "{body}");
        }
    }

    #[test]
    fn what_goes_beyond_is_named_however_it_is_written() {
        for (body, field) in [
            (r#"{"n":9}"#, "n"),
            (r#"{"n":1,"n":129}"#, "n"),
            (r#"{"n":129,"n":1}"#, "n"),
            (r#"{"\u006e":129}"#, "n"),
            (r#"{"n":"129"}"#, "n"),
            (r#"{"n":1.29e2}"#, "n"),
            (r#"{"n":Infinity}"#, "n"),
            (r#"{"n":NaN}"#, "n"),
            (r#"{"best_of":99999999999999999999999}"#, "best_of"),
            (r#"{"max_tokens":4097}"#, "max_tokens"),
            (r#"{"max_output_tokens":5000}"#, "max_output_tokens"),
            (r#"{"prompt_logprobs":-1}"#, "prompt_logprobs"),
            (r#"{"inputs":"x","parameters":{"max_new_tokens":5000}}"#, "max_new_tokens"),
            (r#"{"text":"x","sampling_params":{"n":100}}"#, "n"),
        ] {
            let told = refused(body).unwrap_or_default();
            assert!(told.starts_with(&format!("`{field}` may be at most ")), "{body}: {told}");
        }
    }

    #[test]
    fn without_bounds_everything_passes() {
        let body = br#"{"n":1000,"messages":[{"content":[{"image_url":{"url":"file:///etc/passwd"}}]}]}"#;
        assert_eq!(check(body, &Guards::default()), Ok(()));
    }
}
