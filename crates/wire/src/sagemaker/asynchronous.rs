//! The headers of `InvokeEndpointAsync`.

use std::time::Duration;

use http::HeaderMap;

use super::invalid::Invalid;
use super::invocation::INVOKE_ASYNC;
use super::member::{Member, Pattern, check_all};

/// What a client says of an invocation whose answer it will fetch later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsyncInvocation {
    /// Its id, if the client gives one.
    pub inference_id: Option<String>,
    /// Where its input lies, if that is not the body.
    pub input_location: Option<InputLocation>,
    /// What follows the endpoint's output path in the place of the answer.
    pub output_path_extension: Option<String>,
    /// The name of the answer's file.
    pub filename: Option<String>,
    /// How long it may wait to be run.
    pub time_to_live: Duration,
    /// How long the container may take.
    pub timeout: Duration,
}

/// Where an input lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputLocation {
    /// `s3://BUCKET/KEY`.
    S3 {
        /// The bucket; never empty, without slashes.
        bucket: String,
        /// The key; may be empty.
        key: String,
    },
    /// `https://…`, as it was given.
    Https(String),
}

/// The largest input that may come as the body.
pub const LONGEST_INLINE: u64 = 128_000;

const INFERENCE_ID: Member = INVOKE_ASYNC[3];
const INPUT_LOCATION: Member =
    Member::new("x-amzn-sagemaker-inputlocation", "inputLocation", (1, 1_024), Pattern::Location).for_router();
const OUTPUT_PATH_EXTENSION: Member =
    Member::new("x-amzn-sagemaker-s3outputpathextension", "s3OutputPathExtension", (1, 512), Pattern::PathExtension)
        .for_router();
const FILENAME: Member = Member::new("x-amzn-sagemaker-filename", "filename", (1, 32), Pattern::FileName).for_router();

const REQUEST_TTL: Seconds = Seconds {
    header: "x-amzn-sagemaker-requestttlseconds",
    name: "requestTTLSeconds",
    least: 60,
    most: 21_600,
    default: 21_600,
};
const INVOCATION_TIMEOUT: Seconds = Seconds {
    header: "x-amzn-sagemaker-invocationtimeoutseconds",
    name: "invocationTimeoutSeconds",
    least: 1,
    most: 3_600,
    default: 900,
};

impl AsyncInvocation {
    /// Reads the headers of a request.
    ///
    /// # Errors
    ///
    /// [`Invalid`] tells the members that break a constraint.
    pub fn parse(headers: &HeaderMap) -> Result<AsyncInvocation, Invalid> {
        let mut found = check_all(&INVOKE_ASYNC, headers);
        found.append(check_all(&[INPUT_LOCATION, OUTPUT_PATH_EXTENSION, FILENAME], headers));
        let time_to_live = REQUEST_TTL.read(headers, &mut found);
        let timeout = INVOCATION_TIMEOUT.read(headers, &mut found);
        Invalid::unless_empty(found)?;
        let value = |member: Member| member.value(headers).map(std::borrow::Cow::into_owned);
        Ok(AsyncInvocation {
            inference_id: value(INFERENCE_ID),
            input_location: value(INPUT_LOCATION).map(|location| InputLocation::of(&location)),
            output_path_extension: value(OUTPUT_PATH_EXTENSION),
            filename: value(FILENAME),
            time_to_live,
            timeout,
        })
    }
}

impl InputLocation {
    /// The place that a valid value names.
    fn of(value: &str) -> InputLocation {
        match value.strip_prefix("s3://") {
            Some(rest) => {
                let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
                InputLocation::S3 { bucket: bucket.to_owned(), key: key.to_owned() }
            }
            None => InputLocation::Https(value.to_owned()),
        }
    }
}

/// A member that is a number of seconds.
struct Seconds {
    header: &'static str,
    name: &'static str,
    least: u64,
    most: u64,
    default: u64,
}

impl Seconds {
    fn read(&self, headers: &HeaderMap, found: &mut Invalid) -> Duration {
        let Some(value) = headers.get(self.header) else { return Duration::from_secs(self.default) };
        let text = String::from_utf8_lossy(value.as_bytes());
        match text.parse::<u64>() {
            Ok(seconds) if seconds < self.least => {
                found.note(&text, self.name, format!("Member must have value greater than or equal to {}", self.least));
            }
            Ok(seconds) if seconds > self.most => {
                found.note(&text, self.name, format!("Member must have value less than or equal to {}", self.most));
            }
            Ok(seconds) => return Duration::from_secs(seconds),
            Err(_) => found.note(&text, self.name, "Member must be an integer"),
        }
        Duration::from_secs(self.default)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn parse(lines: &[(&'static str, &'static str)]) -> Result<AsyncInvocation, Invalid> {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        AsyncInvocation::parse(&lines.iter().map(line).collect())
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let expected = AsyncInvocation {
            inference_id: None,
            input_location: None,
            output_path_extension: None,
            filename: None,
            time_to_live: Duration::from_secs(21_600),
            timeout: Duration::from_secs(900),
        };
        assert_eq!(parse(&[]), Ok(expected));
    }

    #[test]
    fn all_members_are_read() {
        let read = parse(&[
            ("x-amzn-sagemaker-inference-id", "order 1"),
            ("x-amzn-sagemaker-inputlocation", "s3://bucket/a/b.json"),
            ("x-amzn-sagemaker-s3outputpathextension", "today/1"),
            ("x-amzn-sagemaker-filename", "answer.json"),
            ("x-amzn-sagemaker-requestttlseconds", "60"),
            ("x-amzn-sagemaker-invocationtimeoutseconds", "3600"),
        ])
        .unwrap();
        assert_eq!(read.inference_id.as_deref(), Some("order 1"));
        let location = InputLocation::S3 { bucket: "bucket".into(), key: "a/b.json".into() };
        assert_eq!(read.input_location, Some(location));
        assert_eq!(
            (read.output_path_extension.as_deref(), read.filename.as_deref()),
            (Some("today/1"), Some("answer.json"))
        );
        assert_eq!((read.time_to_live, read.timeout), (Duration::from_secs(60), Duration::from_secs(3_600)));
    }

    #[test]
    fn numbers_out_of_their_range_are_refused() {
        for (header, value, constraint) in [
            (
                "x-amzn-sagemaker-requestttlseconds",
                "59",
                "at 'requestTTLSeconds' failed to satisfy constraint: Member must have value greater than or equal to 60",
            ),
            ("x-amzn-sagemaker-requestttlseconds", "21601", "Member must have value less than or equal to 21600"),
            ("x-amzn-sagemaker-invocationtimeoutseconds", "0", "Member must have value greater than or equal to 1"),
            ("x-amzn-sagemaker-invocationtimeoutseconds", "a while", "Value 'a while' at 'invocationTimeoutSeconds'"),
            ("x-amzn-sagemaker-inputlocation", "/etc/passwd", "at 'inputLocation'"),
        ] {
            let error = parse(&[(header, value)]).unwrap_err().to_string();
            assert!(error.contains(constraint), "{error}");
        }
    }
}
