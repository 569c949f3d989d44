//! What is wrong with the members of a request, in the words of AWS.

use std::fmt;

/// Members of a request that break their constraints; at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Invalid(Vec<Violation>);

/// One constraint that is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Violation {
    value: String,
    member: &'static str,
    constraint: String,
}

/// The longest value that is told back, in characters.
const LONGEST_VALUE: usize = 256;

impl Invalid {
    /// Collects what is wrong: nothing is `Ok`.
    pub(super) fn unless_empty(found: Invalid) -> Result<(), Invalid> {
        if found.0.is_empty() { Ok(()) } else { Err(found) }
    }

    /// Nothing wrong yet.
    pub(super) fn nothing() -> Invalid {
        Invalid(Vec::new())
    }

    /// Notes that a member's value breaks a constraint.
    pub(super) fn note(&mut self, value: &str, member: &'static str, constraint: impl Into<String>) {
        let value = value.chars().take(LONGEST_VALUE).collect();
        self.0.push(Violation { value, member, constraint: constraint.into() });
    }

    /// Adds what else is wrong.
    pub(super) fn append(&mut self, mut others: Invalid) {
        self.0.append(&mut others.0);
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = if self.0.len() == 1 { "error" } else { "errors" };
        write!(f, "{} validation {errors} detected: ", self.0.len())?;
        for (index, Violation { value, member, constraint }) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}Value '{value}' at '{member}' failed to satisfy constraint: {constraint}")?;
        }
        Ok(())
    }
}
