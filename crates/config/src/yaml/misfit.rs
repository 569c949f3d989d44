//! Why a value of the tree does not fit the type that it is read as, and the way to it from the document's root.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use crate::Place;
use crate::suggest::closest;

/// One value that does not fit.
#[derive(Debug)]
pub(crate) struct Misfit {
    /// The way from the root, innermost step first while the error travels outwards.
    pub(super) path: Vec<Step>,
    pub(super) place: Option<Place>,
    /// The key that is missing, when that is what is wrong.
    pub(super) missing: Option<&'static str>,
    pub(super) message: String,
}

/// One step from a node to a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// The child's index among its parent's entries or items.
    pub(super) index: usize,
    /// The child's key, in a mapping.
    pub(super) key: Option<String>,
}

impl Misfit {
    pub(super) fn new(message: String) -> Misfit {
        Misfit { path: Vec::new(), place: None, missing: None, message }
    }

    /// The error as seen from the parent; the innermost place wins.
    pub(super) fn within(mut self, step: Step, place: Place) -> Misfit {
        self.path.push(step);
        self.place.get_or_insert(place);
        self
    }
}

/// `endpoints[0].name: what is wrong`.
impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for step in &self.path {
            match &step.key {
                Some(key) => write!(f, "{separator}{key}")?,
                None => write!(f, "[{}]", step.index)?,
            }
            separator = ".";
        }
        if !self.path.is_empty() {
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Misfit {}

impl Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Misfit {
        Misfit::new(message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Misfit {
        Misfit::new(format!("expected {expected}, found {unexpected}"))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Misfit {
        Misfit::new(format!("unknown key{}", allowed(field, expected)))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Misfit {
        Misfit::new(format!("{variant:?} is not known here{}", allowed(variant, expected)))
    }

    fn missing_field(field: &'static str) -> Misfit {
        Misfit { missing: Some(field), ..Misfit::new(format!("`{field}` is missing")) }
    }
}

/// `; did you mean `x`? Allowed: …`
fn allowed(given: &str, expected: &[&str]) -> String {
    let suggestion = closest(given, expected.iter().copied());
    let suggestion = suggestion.map_or(String::from("; allowed"), |word| format!("; did you mean `{word}`? Allowed"));
    format!("{suggestion}: {}", expected.join(", "))
}
