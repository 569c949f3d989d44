//! Rules of the service that shapes can't say: what excludes or needs what.
//!
//! Where AWS's own words are not public, the message says which members are meant and what would be right.

pub(crate) mod components;
pub(crate) mod deployment;
pub(crate) mod model;
pub(crate) mod tags;
pub(crate) mod variants;

use crate::error::ServiceError;

/// Refuses, in these words, what is not so.
fn ensure(so: bool, otherwise: impl FnOnce() -> String) -> Result<(), ServiceError> {
    if so { Ok(()) } else { Err(ServiceError::Validation(otherwise())) }
}
