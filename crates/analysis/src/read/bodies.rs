//! Bodies of requests: as they are, or within an object that also has times, paths and responses.

use std::collections::BTreeMap;

use isotherm_wire::api::Api;
use isotherm_wire::usage::Usage;
use serde_json::value::RawValue;

use super::{Reading, response, wrong};
use crate::entry::{Content, Entry, Microseconds};
use crate::timestamp;

/// Where wrapping objects keep the body, the most telling first.
const BODY_KEYS: [&str; 9] =
    ["body", "request_body", "requestBody", "request", "payload", "json", "params", "data", "raw_request"];

/// Where they keep the response.
const RESPONSE_KEYS: [&str; 4] = ["response", "response_body", "responseBody", "output"];

/// Where they keep the path.
const PATH_KEYS: [&str; 5] = ["path", "url", "uri", "endpoint", "route"];

/// Objects within objects within objects are looked into so far.
const LEVELS: u32 = 3;

type Members<'a> = BTreeMap<String, &'a RawValue>;

pub(super) fn read(record: &[u8], each: &mut dyn FnMut(Entry)) -> Result<Reading, String> {
    let mut found = Found::default();
    found.look_into(record, LEVELS)?;
    let Some(body) = found.body else {
        return Err(format!(
            "neither a body (messages, prompt, input, inputs, …) nor an object that has one under {}",
            BODY_KEYS.join(", ")
        ));
    };
    let usage = found.usage.unwrap_or_default();
    each(entry(found.api, body, found.at, usage));
    Ok(Reading::Requests)
}

/// A request with its body.
pub(super) fn entry(api: Option<Api>, bytes: Vec<u8>, at: Option<Microseconds>, usage: Usage) -> Entry {
    let api = api.unwrap_or_else(|| api_of(&bytes));
    Entry {
        at,
        content: Content::Body { api, bytes },
        output_tokens: usage.completion_tokens.and_then(|tokens| u32::try_from(tokens).ok()),
        prompt_tokens: usage.prompt_tokens,
        cached_tokens: usage.cached_tokens,
        believed_tokens: None,
        session: None,
    }
}

/// The API that a path or URL ends in.
pub(super) fn api_of_path(path: &str) -> Option<Api> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if path.ends_with("/invocations") || path.ends_with("/invocations-response-stream") {
        return Some(Api::Invocations);
    }
    // The longest path first: /v1/rerank ends in /rerank too.
    let mut apis = Api::ALL;
    apis.sort_by_key(|api| std::cmp::Reverse(api.path().len()));
    apis.into_iter().find(|api| path.ends_with(api.path())).or_else(|| path.ends_with("/rerank").then_some(Api::Rerank))
}

/// The API that a body is for, told by its keys.
fn api_of(body: &[u8]) -> Api {
    let Ok(members) = serde_json::from_slice::<Members<'_>>(body) else { return Api::Invocations };
    let has = |key: &str| members.contains_key(key);
    match () {
        () if has("messages") && (has("system") || has("anthropic_version")) => Api::Messages,
        () if has("messages") => Api::ChatCompletions,
        () if has("prompt") => Api::Completions,
        () if has("query") && has("documents") => Api::Rerank,
        () if has("text_1") => Api::Score,
        () if has("input") && is_for_embeddings(&members) => Api::Embeddings,
        () if has("input") || has("instructions") => Api::Responses,
        () => Api::Invocations,
    }
}

fn is_for_embeddings(members: &Members<'_>) -> bool {
    let embeds = |model: &&RawValue| model.get().to_ascii_lowercase().contains("embed");
    ["encoding_format", "dimensions"].iter().any(|key| members.contains_key(*key))
        || members.get("model").is_some_and(embeds)
}

/// What a record and the objects in it hold.
#[derive(Default)]
struct Found {
    body: Option<Vec<u8>>,
    api: Option<Api>,
    at: Option<Microseconds>,
    usage: Option<Usage>,
}

impl Found {
    fn look_into(&mut self, json: &[u8], levels: u32) -> Result<(), String> {
        let members: Members<'_> = serde_json::from_slice(json).map_err(wrong)?;
        let text = |key: &&str| serde_json::from_str::<String>(members.get(*key)?.get()).ok();
        let first_time = timestamp::KEYS.iter().find_map(|key| timestamp::parse_json(members.get(*key)?.get()));
        self.at = self.at.or(first_time);
        if is_body(&members) {
            self.body = Some(json.to_vec());
            return Ok(());
        }
        self.api = self.api.or_else(|| PATH_KEYS.iter().find_map(|key| api_of_path(&text(key)?)));
        self.usage = self.usage.or_else(|| usage_of(&members)).or_else(|| Usage::from_json(json));
        for key in BODY_KEYS {
            let Some(inner) = members.get(key).filter(|_| levels > 0 && self.body.is_none()) else { continue };
            match inner.get().as_bytes().first() {
                Some(b'{') => self.look_into(inner.get().as_bytes(), levels - 1)?,
                Some(b'"') => {
                    let text: String = serde_json::from_str(inner.get()).unwrap_or_default();
                    if text.trim_start().starts_with('{') {
                        self.look_into(text.as_bytes(), levels - 1)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// An object with one of these keys is itself what a client sends.
fn is_body(members: &Members<'_>) -> bool {
    let has = |key: &str| members.contains_key(key);
    let is_list = |key: &str| members.get(key).is_some_and(|value| value.get().starts_with('['));
    is_list("messages")
        || has("prompt")
        || has("inputs")
        || has("text_1")
        || (has("query") && has("documents"))
        || (has("model") && (has("input") || has("instructions")))
}

fn usage_of(members: &Members<'_>) -> Option<Usage> {
    RESPONSE_KEYS.iter().find_map(|key| {
        let response = members.get(*key)?.get();
        if response.starts_with('"') {
            let text: String = serde_json::from_str(response).ok()?;
            return response::usage(text.as_bytes());
        }
        // The response itself, or an object around its body.
        response::usage(response.as_bytes()).or_else(|| {
            let inner: Members<'_> = serde_json::from_str(response).ok()?;
            let body = inner.get("body")?.get();
            let text: Option<String> = serde_json::from_str(body).ok();
            response::usage(text.as_deref().unwrap_or(body).as_bytes())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(record: &str) -> Entry {
        let mut entries = Vec::new();
        read(record.as_bytes(), &mut |entry| entries.push(entry)).unwrap();
        assert_eq!(entries.len(), 1, "{record}");
        entries.remove(0)
    }

    fn body(entry: &Entry) -> (Api, String) {
        let Content::Body { api, bytes } = &entry.content else { panic!("{entry:?}") };
        (*api, String::from_utf8_lossy(bytes).into_owned())
    }

    #[test]
    fn a_bare_body_is_kept_as_it_came_and_its_api_told_by_its_keys() {
        for (record, api) in [
            (r#"{"model":"m", "messages":[{"role":"user","content":"hi"}]}"#, Api::ChatCompletions),
            (r#"{"model":"m","system":"s","messages":[]}"#, Api::Messages),
            (r#"{"model":"m","prompt":"p"}"#, Api::Completions),
            (r#"{"model":"m","input":"i"}"#, Api::Responses),
            (r#"{"model":"bge-embed","input":"i"}"#, Api::Embeddings),
            (r#"{"query":"q","documents":["d"]}"#, Api::Rerank),
            (r#"{"inputs":"p","parameters":{}}"#, Api::Invocations),
        ] {
            let entry = only(record);
            assert_eq!(body(&entry), (api, record.to_owned()));
            assert_eq!(entry.at, None);
        }
    }

    #[test]
    fn wrapped_bodies_come_with_their_time_path_and_usage() {
        let inner = r#"{"model":"m","messages":[]}"#;
        let response = r#"{"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
        for record in [
            format!(r#"{{"timestamp":12,"url":"https://a/v1/chat/completions","body":{inner},"response":{response}}}"#),
            format!(
                r#"{{"ts":"1970-01-01T00:00:12Z","request":{{"path":"/v1/chat/completions?x","body":{inner}}},"response":{{"body":{response}}}}}"#
            ),
            format!(
                r#"{{"time":12.0,"request":{},"response_body":{}}}"#,
                serde_json::to_string(inner).unwrap(),
                serde_json::to_string(response).unwrap()
            ),
        ] {
            let entry = only(&record);
            assert_eq!(body(&entry), (Api::ChatCompletions, inner.to_owned()), "{record}");
            assert_eq!((entry.at, entry.prompt_tokens, entry.output_tokens), (Some(12_000_000), Some(7), Some(2)));
        }
    }

    #[test]
    fn what_holds_no_body_is_refused_with_what_was_looked_for() {
        let error = read(br#"{"level":"info","msg":"started"}"#, &mut |_| ()).unwrap_err();
        assert!(error.contains("under body, request_body"), "{error}");
        assert!(read(b"not json", &mut |_| ()).is_err());
    }
}
