//! SageMaker's data capture: one call of an endpoint a record, its input and its output as text or base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isotherm_wire::api::Api;
use serde::Deserialize;

use super::{Reading, bodies, response, wrong};
use crate::entry::Entry;
use crate::timestamp;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    capture_data: CaptureData,
    #[serde(default)]
    event_metadata: EventMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaptureData {
    endpoint_input: Option<Captured>,
    endpoint_output: Option<Captured>,
}

#[derive(Deserialize)]
struct Captured {
    data: String,
    #[serde(default)]
    encoding: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct EventMetadata {
    inference_time: Option<String>,
}

pub(super) fn read(record: &[u8], each: &mut dyn FnMut(Entry)) -> Result<Reading, String> {
    let record: Record = serde_json::from_slice(record).map_err(wrong)?;
    let Some(input) = record.capture_data.endpoint_input else { return Ok(Reading::Other) };
    let body = input.bytes()?;
    let usage = record.capture_data.endpoint_output.and_then(|output| response::usage(&output.bytes().ok()?));
    let at = record.event_metadata.inference_time.and_then(|time| timestamp::parse(&time.into()));
    each(bodies::entry(Some(Api::Invocations), body, at, usage.unwrap_or_default()));
    Ok(Reading::Requests)
}

impl Captured {
    fn bytes(self) -> Result<Vec<u8>, String> {
        if !self.encoding.eq_ignore_ascii_case("base64") {
            return Ok(self.data.into_bytes());
        }
        STANDARD.decode(self.data.trim()).map_err(|error| format!("captureData: data is no base64: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Content;

    #[test]
    fn inputs_are_read_in_every_encoding() {
        for (encoding, data) in [("JSON", r#"{\"inputs\":\"hi\"}"#), ("BASE64", "eyJpbnB1dHMiOiJoaSJ9")] {
            let record = format!(
                r#"{{"captureData":{{"endpointInput":{{"observedContentType":"application/json","mode":"INPUT","data":"{data}","encoding":"{encoding}"}}}},"eventMetadata":{{"eventId":"1","inferenceTime":"2026-11-30T00:00:00Z"}},"eventVersion":"0"}}"#
            );
            let mut entries = Vec::new();
            read(record.as_bytes(), &mut |entry| entries.push(entry)).unwrap();
            let expected = Content::Body { api: Api::Invocations, bytes: br#"{"inputs":"hi"}"#.to_vec() };
            assert_eq!(entries[0].content, expected);
            assert!(entries[0].at.is_some());
        }
    }
}
