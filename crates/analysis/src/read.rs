//! Makes requests of a log's records, by its format.

mod access_log;
mod agents;
mod bodies;
mod data_capture;
mod har;
mod mooncake;
mod response;

use crate::entry::Entry;
use crate::format::Format;

/// What a record turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// One request, or a session of them.
    Requests,
    /// Well-formed, but no request with a prompt.
    Other,
}

/// Gives the requests of a record to `each`.
///
/// # Errors
/// What is wrong with the record, and what would be right.
pub(crate) fn read(record: &[u8], number: u64, format: Format, each: &mut dyn FnMut(Entry)) -> Result<Reading, String> {
    match format {
        Format::Bodies => bodies::read(record, each),
        Format::DataCapture => data_capture::read(record, each),
        Format::Har => har::read(record, each),
        Format::Mooncake => mooncake::read(record, each),
        Format::Agents => agents::read(record, number, each),
        Format::AccessLog => access_log::read(record, each),
    }
}
