//! The top-level fields of a JSON request: read one by one, the last of equal names counts, unknown ones are ignored.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::Failure;

/// A JSON object whose values are parsed only when asked for, so that errors name the field.
#[derive(Debug)]
pub(crate) struct Fields<'a>(HashMap<String, &'a RawValue>);

impl<'a> Fields<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Failure> {
        let fields = serde_json::from_slice(body)
            .map_err(|error| Failure::Malformed(format!("The body must be a JSON object: {error}")))?;
        Ok(Self(fields))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// The value as it stands in the body; `null` counts as absent.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.get(name).copied().filter(|value| value.get() != "null")
    }

    pub(crate) fn optional<T: Deserialize<'a>>(&self, name: &str) -> Result<Option<T>, Failure> {
        let Some(value) = self.raw(name) else { return Ok(None) };
        serde_json::from_str(value.get()).map(Some).map_err(|error| Failure::Malformed(format!("{name}: {error}")))
    }

    /// The value, or the type's default.
    pub(crate) fn or_default<T: Deserialize<'a> + Default>(&self, name: &str) -> Result<T, Failure> {
        Ok(self.optional(name)?.unwrap_or_default())
    }

    pub(crate) fn required<T: Deserialize<'a>>(&self, name: &str) -> Result<T, Failure> {
        self.optional(name)?.ok_or_else(|| Failure::Malformed(format!("{name}: field required")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_equal_names_counts_and_null_is_absent() {
        let fields = Fields::parse(br#"{"model": "a", "model": "b", "n": null, "x": [1, {"y": 2}]}"#).unwrap();
        assert_eq!(fields.required::<String>("model").unwrap(), "b");
        assert_eq!(fields.optional::<u32>("n").unwrap(), None);
        assert!(fields.has("x") && !fields.has("n"));
    }

    #[test]
    fn errors_name_the_field() {
        let fields = Fields::parse(br#"{"max_tokens": "many"}"#).unwrap();
        let wrong = fields.optional::<u32>("max_tokens").unwrap_err().to_string();
        assert!(wrong.starts_with("max_tokens: invalid type"), "{wrong}");
        let missing = fields.required::<String>("messages").unwrap_err().to_string();
        assert_eq!(missing, "messages: field required");
        for body in [&b"[1]"[..], b"", b"{", b"\xff"] {
            assert!(matches!(Fields::parse(body), Err(Failure::Malformed(_))));
        }
    }
}
