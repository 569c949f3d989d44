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

/// What is wrong with a record's JSON, without what of it the parser quotes: that may be anything that users wrote.
fn wrong(error: serde_json::Error) -> String {
    let said = error.to_string();
    said.rsplit_once(", expected ").map(|(_, wanted)| format!("expected {wanted}")).unwrap_or(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_record_is_told_without_its_text() {
        let secret = "my password is hunter2, expected nobody to read it";
        let records = [
            format!("\"{secret}\""),
            format!(r#"{{"timestamp":"{secret}","input_length":"{secret}","hash_ids":"{secret}"}}"#),
            format!(r#"{{"block_size":"{secret}","requests":"{secret}"}}"#),
            format!(r#"{{"captureData":"{secret}","startedDateTime":"{secret}","request":"{secret}"}}"#),
            format!(r#"{{"time":"","request_id":"","status":200,"outcome":"","key":"{secret}"}}"#),
            format!("{{\"prompt\":\"{secret}"),
            format!("{{\"{secret}\""),
        ];
        for format in Format::ALL {
            for record in &records {
                let Err(told) = read(record.as_bytes(), 1, format, &mut |_| ()) else { continue };
                assert!(!told.contains("hunter2") && told.len() > 10, "{format}: {told}");
            }
        }
        let told = read(b"\"text\"", 1, Format::Bodies, &mut |_| ()).unwrap_err();
        assert_eq!(told, "expected a map at line 1 column 6");
    }
}
