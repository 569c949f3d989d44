//! The formats of logs, and how one is told from another by looking at a record.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// What the records of a log are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Bodies of requests as clients send them, one a line, or within an object that says more of each.
    Bodies,
    /// What Amazon SageMaker's data capture writes.
    DataCapture,
    /// An HTTP archive, as browsers and proxies save it.
    Har,
    /// Mooncake's traces: times, lengths, ids of blocks of 512 tokens.
    Mooncake,
    /// Recorded sessions of agents, in the format of kv-cache-tester.
    Agents,
    /// Isotherm's access log.
    AccessLog,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 6] =
        [Format::Bodies, Format::DataCapture, Format::Har, Format::Mooncake, Format::Agents, Format::AccessLog];

    /// Its name, as `--format` takes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Bodies => "bodies",
            Format::DataCapture => "data-capture",
            Format::Har => "har",
            Format::Mooncake => "mooncake",
            Format::Agents => "agents",
            Format::AccessLog => "access-log",
        }
    }

    /// The format whose records have keys like this one; `None` for what is no object.
    pub(crate) fn of(record: &[u8]) -> Option<Format> {
        let keys: Keys = serde_json::from_slice(record).ok()?;
        let has = |key: &str| keys.0.iter().any(|found| found == key);
        let all = |wanted: &[&str]| wanted.iter().all(|key| has(key));
        Some(if has("captureData") {
            Format::DataCapture
        } else if has("hash_ids") && has("input_length") {
            Format::Mooncake
        } else if all(&["block_size", "requests"]) {
            Format::Agents
        } else if all(&["request_id", "outcome", "status", "method"]) {
            Format::AccessLog
        } else if all(&["startedDateTime", "request", "response"]) {
            Format::Har
        } else {
            Format::Bodies
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Format, UnknownFormat> {
        let found = Format::ALL.into_iter().find(|format| format.as_str() == text);
        found.ok_or_else(|| UnknownFormat { given: text.to_owned() })
    }
}

/// A text that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is no format; allowed: {}", Format::ALL.map(Format::as_str).join(", "))]
pub struct UnknownFormat {
    given: String,
}

/// The keys of an object, its values passed over.
struct Keys(Vec<String>);

impl<'de> serde::Deserialize<'de> for Keys {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Keys, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Keys;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some(key) = map.next_key()? {
                    map.next_value::<serde::de::IgnoredAny>()?;
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_keys() {
        for (record, format) in [
            (r#"{"model":"m","messages":[]}"#, Format::Bodies),
            (r#"{"captureData":{},"eventMetadata":{}}"#, Format::DataCapture),
            (r#"{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[1]}"#, Format::Mooncake),
            (r#"{"block_size":64,"requests":[]}"#, Format::Agents),
            (r#"{"time":"","request_id":"a","method":"POST","status":200,"outcome":"ok"}"#, Format::AccessLog),
            (r#"{"startedDateTime":"","request":{},"response":{}}"#, Format::Har),
        ] {
            assert_eq!(Format::of(record.as_bytes()), Some(format), "{record}");
        }
        assert_eq!(Format::of(b"[1]"), None);
        assert_eq!("har".parse(), Ok(Format::Har));
        assert!("xml".parse::<Format>().unwrap_err().to_string().contains("bodies, data-capture, har"));
    }
}
