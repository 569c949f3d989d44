//! A JSON reader that finds values without building a document: iterative at any depth, over borrowed bytes.

mod cursor;
mod malformed;
mod members;
mod outline;
mod skip;
mod string;
mod watch;

pub(crate) use cursor::Cursor;
pub use malformed::{Found, Malformed};
pub(crate) use members::Value;
pub(crate) use string::{Name, RawString, valid_parts};
pub(crate) use watch::Watch;

#[cfg(test)]
mod tests;
