//! Tags: which keys are allowed, and those that ask for what is ours.

use std::collections::HashSet;

use super::ensure;
use crate::error::ServiceError;
use crate::routing;
use crate::shapes::Tag;

/// Checks the tags of a request.
pub(crate) fn check(tags: &[Tag]) -> Result<(), ServiceError> {
    let mut keys = HashSet::new();
    for Tag { key, .. } in tags {
        ensure(keys.insert(key), || format!("The tag key \"{key}\" was non-unique within the request."))?;
        ensure(!key.to_ascii_lowercase().starts_with("aws:"), || {
            format!("Tag keys that begin with \"aws:\" are reserved: \"{key}\".")
        })?;
    }
    routing::asked_by_tags(tags)?;
    routing::Keying::asked_by_tags(tags)?;
    routing::bound_by_tags(tags)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(tags: &[(&str, &str)]) -> String {
        let tag = |&(key, value): &(&str, &str)| Tag { key: key.to_owned(), value: value.to_owned() };
        check(&tags.iter().map(tag).collect::<Vec<_>>()).unwrap_err().to_string()
    }

    #[test]
    fn bad_tags_are_refused() {
        assert_eq!(refusal(&[("a", "1"), ("a", "2")]), "The tag key \"a\" was non-unique within the request.");
        assert_eq!(refusal(&[("AWS:a", "1")]), "Tag keys that begin with \"aws:\" are reserved: \"AWS:a\".");
        assert!(refusal(&[("isotherm:canonical-json", "x")]).starts_with("isotherm:canonical-json must be "));
        assert!(refusal(&[("isotherm:max-in-flight", "x")]).starts_with("isotherm:max-in-flight must be "));
        assert!(refusal(&[("isotherm:routing-strategy", "x")]).starts_with("isotherm:routing-strategy must be "));
    }
}
