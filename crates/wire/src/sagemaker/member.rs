//! Members of an operation that travel in headers: their names, limits and patterns, as botocore's model has them.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};

use super::invalid::Invalid;

/// A member of an operation's input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    /// The header that carries it, in lower case.
    pub(super) header: &'static str,
    /// Its name in messages.
    pub(super) name: &'static str,
    /// The least length of its value, in characters.
    pub(super) least: usize,
    /// The greatest.
    pub(super) most: usize,
    /// What its value looks like.
    pub(super) pattern: Pattern,
    /// The header in which it reaches the container; `None`: it does not.
    pub(super) to_container: Option<&'static str>,
}

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Characters of ASCII.
    Ascii,
    /// Characters of ASCII that can be printed, the first one no space.
    Printable,
    /// Letters, digits and hyphens, a hyphen neither first nor last.
    Name,
    /// The same, written another way in the model.
    ComponentName,
    /// A session's id, or the wish for a new one.
    SessionOrNew,
    /// A session's id.
    Session,
    /// Anything.
    Any,
    /// A place under `s3://` or `https://`.
    Location,
    /// A path below another one.
    PathExtension,
    /// The name of a file, with one point at most.
    FileName,
}

impl Pattern {
    /// The regular expression of the model.
    fn expression(self) -> &'static str {
        match self {
            Pattern::Ascii => r"\p{ASCII}*",
            Pattern::Printable => r"\A\S[\p{Print}]*\z",
            Pattern::Name => "^[a-zA-Z0-9](-*[a-zA-Z0-9])*",
            Pattern::ComponentName => r"^[a-zA-Z0-9]([\-a-zA-Z0-9]*[a-zA-Z0-9])?$",
            Pattern::SessionOrNew => "^(NEW_SESSION)$|^[a-zA-Z0-9](-*[a-zA-Z0-9])*$",
            Pattern::Session => "^[a-zA-Z0-9](-*[a-zA-Z0-9])*$",
            Pattern::Any => ".*",
            Pattern::Location => "^(https|s3)://([^/]+)/?(.*)$",
            Pattern::PathExtension => "^(?!s3:|https:)[a-zA-Z0-9!_.*'()/-]+$",
            Pattern::FileName => r"^(?!.*\..*\.)[a-zA-Z0-9][a-zA-Z0-9-_\.]*$",
        }
    }

    fn fits(self, value: &str) -> bool {
        let all = |allowed: fn(&u8) -> bool| value.as_bytes().iter().all(allowed);
        match self {
            Pattern::Any => true,
            Pattern::Ascii => value.is_ascii(),
            Pattern::Printable => {
                !value.is_empty() && !value.starts_with(' ') && all(|byte| matches!(byte, b' '..=b'~'))
            }
            Pattern::Name | Pattern::ComponentName | Pattern::Session => is_name(value),
            Pattern::SessionOrNew => value == "NEW_SESSION" || is_name(value),
            Pattern::Location => {
                let rest = value.strip_prefix("s3://").or_else(|| value.strip_prefix("https://"));
                rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
            }
            Pattern::PathExtension => {
                let scheme = value.starts_with("s3:") || value.starts_with("https:");
                let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"!_.*'()/-".contains(byte);
                !value.is_empty() && !scheme && all(allowed)
            }
            Pattern::FileName => {
                let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
                let begins = value.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
                begins && all(allowed) && value.matches('.').count() <= 1
            }
        }
    }
}

/// Letters, digits and hyphens, a hyphen neither first nor last; not empty.
pub(super) fn is_name(value: &str) -> bool {
    let fits = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    fits && !value.is_empty() && !value.starts_with('-') && !value.ends_with('-')
}

impl Member {
    /// A member whose header reaches the container as it came.
    pub(super) const fn new(
        header: &'static str,
        name: &'static str,
        (least, most): (usize, usize),
        pattern: Pattern,
    ) -> Member {
        Member { header, name, least, most, pattern, to_container: Some(header) }
    }

    /// The same, in another header.
    pub(super) const fn as_header(self, header: &'static str) -> Member {
        Member { to_container: Some(header), ..self }
    }

    /// The same, for the router only.
    pub(super) const fn for_router(self) -> Member {
        Member { to_container: None, ..self }
    }

    /// Notes what is wrong with a value.
    pub(super) fn check(&self, value: &str, found: &mut Invalid) {
        let length = value.chars().count();
        if length < self.least {
            let constraint = format!("Member must have length greater than or equal to {}", self.least);
            found.note(value, self.name, constraint);
        }
        if length > self.most {
            found.note(value, self.name, format!("Member must have length less than or equal to {}", self.most));
        }
        if !self.pattern.fits(value) {
            let expression = self.pattern.expression();
            found.note(value, self.name, format!("Member must satisfy regular expression pattern: {expression}"));
        }
    }

    /// Its value in a request, if it is there.
    pub(super) fn value<'h>(&self, headers: &'h HeaderMap) -> Option<Cow<'h, str>> {
        headers.get(self.header).map(|value| String::from_utf8_lossy(value.as_bytes()))
    }
}

/// Notes what is wrong with the members of a request that it has.
pub(super) fn check_all(members: &[Member], headers: &HeaderMap) -> Invalid {
    let mut found = Invalid::nothing();
    for member in members {
        for value in headers.get_all(member.header) {
            member.check(&String::from_utf8_lossy(value.as_bytes()), &mut found);
        }
    }
    found
}

/// The headers in which a request's members reach the container.
pub(super) fn for_container(members: &[Member], headers: &HeaderMap) -> HeaderMap {
    let mut passing = HeaderMap::new();
    for member in members {
        let Some(name) = member.to_container else { continue };
        for value in headers.get_all(member.header) {
            passing.append(HeaderName::from_static(name), value.clone());
        }
    }
    passing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_take_what_the_model_takes() {
        let cases: [(Pattern, &[&str], &[&str]); 7] = [
            (Pattern::Name, &["a", "A-1", "a--b"], &["", "-a", "a-", "a_b", "a b", "ü"]),
            (Pattern::SessionOrNew, &["NEW_SESSION", "a-1"], &["NEW_SESSIONS", "new_session", "", "a b"]),
            (Pattern::Session, &["a-1"], &["NEW_SESSION"]),
            (Pattern::Printable, &["a", "tenant  A", "{x}"], &["", " a", "a\tb", "a\u{7f}", "ü"]),
            (
                Pattern::Location,
                &["s3://b/k", "https://h", "s3://b"],
                &["s3://", "s3:///k", "file:///etc", "http://h/"],
            ),
            (Pattern::PathExtension, &["a/b.c", "it's(1)!*"], &["", "s3:", "https:x", "a b", "ü", "a\\b"]),
            (Pattern::FileName, &["a", "a.json", "a-b_c.d"], &["", ".a", "a.b.c", "a/b", "-a"]),
        ];
        for (pattern, good, bad) in cases {
            assert!(good.iter().all(|value| pattern.fits(value)), "{pattern:?}");
            let fitting = bad.iter().find(|value| pattern.fits(value));
            assert_eq!(fitting, None, "{pattern:?}");
        }
    }
}
