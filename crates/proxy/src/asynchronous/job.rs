//! An asynchronous invocation as it is kept until it was run: one file each, so that a restart loses none.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

/// What is to be run, beside its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Job {
    /// The name of its file.
    pub(super) id: String,
    /// The endpoint, as the client called it.
    pub(super) endpoint: String,
    /// The access key and the region that it was signed with.
    pub(super) signed: Option<(String, String)>,
    /// The name of the key that it came with.
    pub(super) holder: Option<String>,
    /// Names and values of the headers that concern the container.
    pub(super) headers: Vec<(String, Vec<u8>)>,
    /// The place of its input; `None` where that is kept with the job.
    pub(super) input: Option<String>,
    /// The place of its answer.
    pub(super) answer: String,
    /// The place where a failure is told.
    pub(super) failure: String,
    /// When it was accepted, in seconds of Unix time; see [`whole_seconds`].
    pub(super) accepted: u64,
    /// How long it may wait, in seconds.
    pub(super) time_to_live: u64,
    /// How long the container may take, in seconds.
    pub(super) timeout: u64,
}

impl Job {
    /// The file: a line of JSON, then the body.
    pub(super) fn to_bytes(&self, body: &[u8]) -> serde_json::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        bytes.extend_from_slice(body);
        Ok(bytes)
    }

    /// Reads a file; `None` when it is none of a job's.
    pub(super) fn parse(bytes: &Bytes) -> Option<(Job, Bytes)> {
        let line = bytes.iter().position(|&byte| byte == b'\n')?;
        Some((serde_json::from_slice(&bytes[..line]).ok()?, bytes.slice(line + 1..)))
    }

    /// When it is too late to begin.
    pub(super) fn expires(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.accepted.saturating_add(self.time_to_live))
    }

    /// The headers as they came.
    pub(super) fn header_map(&self) -> HeaderMap {
        let line = |(name, value): &(String, Vec<u8>)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::from_bytes(value).ok()?))
        };
        self.headers.iter().filter_map(line).collect()
    }
}

/// Unix time in seconds, rounded up: what is counted from it never ends early.
pub(super) fn whole_seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_secs() + u64::from(since.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_in_whole_seconds_never_ends_early() {
        let at = |milliseconds| SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds);
        assert_eq!([1_000_000, 1_000_001, 1_000_999].map(|ms| whole_seconds(at(ms))), [1_000, 1_001, 1_001]);
    }

    #[test]
    fn a_job_is_read_back_as_it_was_written() {
        let job = Job {
            id: "1".into(),
            endpoint: "chat".into(),
            signed: Some(("AKIA".into(), "us-east-1".into())),
            holder: Some("alice".into()),
            headers: vec![("x-amzn-sagemaker-content-type".into(), b"a/b".to_vec())],
            input: None,
            answer: "s3://b/1.out".into(),
            failure: "s3://b/1-error.out".into(),
            accepted: 1_000,
            time_to_live: 60,
            timeout: 900,
        };
        let bytes = Bytes::from(job.to_bytes(b"{\n\xff}").unwrap());
        assert_eq!(Job::parse(&bytes), Some((job.clone(), Bytes::from_static(b"{\n\xff}"))));
        assert_eq!(job.expires(), SystemTime::UNIX_EPOCH + Duration::from_secs(1_060));
        assert_eq!(job.header_map()["x-amzn-sagemaker-content-type"], "a/b");
        assert_eq!(Job::parse(&Bytes::from_static(b"no job\n")), None);
        assert_eq!(Job::parse(&bytes.slice(..9)), None);
    }
}
