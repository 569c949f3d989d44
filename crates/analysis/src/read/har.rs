//! HTTP archives: the entries that posted to an API with a prompt.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{Reading, bodies, response, wrong};
use crate::entry::Entry;
use crate::timestamp;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    started_date_time: Option<String>,
    request: Request,
    response: Option<Response>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    post_data: Option<Text>,
}

#[derive(Deserialize)]
struct Response {
    content: Option<Text>,
}

#[derive(Deserialize)]
struct Text {
    #[serde(default)]
    text: String,
    #[serde(default)]
    encoding: String,
}

pub(super) fn read(record: &[u8], each: &mut dyn FnMut(Entry)) -> Result<Reading, String> {
    let record: Record = serde_json::from_slice(record).map_err(wrong)?;
    let api = bodies::api_of_path(&record.request.url);
    let (Some(api), Some(body), "POST") = (api, record.request.post_data, record.request.method.as_str()) else {
        return Ok(Reading::Other);
    };
    let usage = record.response.and_then(|response| response::usage(&response.content?.bytes()?));
    let at = record.started_date_time.and_then(|time| timestamp::parse(&time.into()));
    let body = body.bytes().ok_or("request.postData.text is no base64, which its encoding says it is")?;
    each(bodies::entry(Some(api), body, at, usage.unwrap_or_default()));
    Ok(Reading::Requests)
}

impl Text {
    fn bytes(self) -> Option<Vec<u8>> {
        if self.encoding == "base64" { STANDARD.decode(self.text.trim()).ok() } else { Some(self.text.into_bytes()) }
    }
}

#[cfg(test)]
mod tests {
    use isotherm_wire::api::Api;

    use super::*;
    use crate::entry::Content;

    #[test]
    fn posts_to_apis_are_requests_and_the_rest_is_passed_over() {
        let entry = |method: &str, url: &str| {
            format!(
                r#"{{"startedDateTime":"2026-11-30T00:00:00.250Z","request":{{"method":"{method}","url":"{url}","postData":{{"mimeType":"application/json","text":"{{\"messages\":[]}}"}}}},"response":{{"content":{{"text":"{{\"usage\":{{\"completion_tokens\":4}}}}"}}}}}}"#
            )
        };
        let mut entries = Vec::new();
        let mut reading = |record: String| read(record.as_bytes(), &mut |entry| entries.push(entry)).unwrap();
        assert_eq!(reading(entry("POST", "http://a/v1/chat/completions")), Reading::Requests);
        assert_eq!(reading(entry("GET", "http://a/v1/chat/completions")), Reading::Other);
        assert_eq!(reading(entry("POST", "http://a/login")), Reading::Other);
        assert_eq!(entries.len(), 1);
        let expected = Content::Body { api: Api::ChatCompletions, bytes: br#"{"messages":[]}"#.to_vec() };
        assert_eq!((&entries[0].content, entries[0].output_tokens), (&expected, Some(4)));
    }
}
