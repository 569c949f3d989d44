//! Keeping tenants apart in an engine's cache: the salt that the router gives to a tenant's requests.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::splice::Splice;
use super::{Fields, string};
use crate::api::Api;
use crate::json::Malformed;

/// Keeps these hashes apart from all others.
const PURPOSE: &str = "isotherm cache_salt";

/// The change by which a request says `cache_salt`, so that an engine which knows the field (vLLM, SGLang) shares cached
/// blocks only with requests of the same tenant. A salt of the client's own is worked into it: within the tenant it
/// separates as it did, and nobody can name another tenant's. `secret` keeps salts from being guessed.
///
/// `None` for APIs whose engines have no such field, and for bodies of [`Api::Invocations`] that are no prompt in
/// OpenAI's form.
///
/// # Errors
///
/// As [`describe`](super::describe).
pub fn cache_salt(body: &[u8], api: Api, secret: &[u8], tenant: &str) -> Result<Option<Splice>, Malformed> {
    let fields = match (api, Fields::find(body)) {
        (Api::ChatCompletions | Api::Completions | Api::Responses | Api::Embeddings, found) => found?,
        (Api::Invocations, Ok(fields)) if fields.messages.or(fields.prompt).or(fields.input).is_some() => fields,
        _ => return Ok(None),
    };
    let own = string(fields.cache_salt).unwrap_or_default();
    let salt = salt(secret, tenant, &own);
    Ok(Some(match fields.cache_salt {
        Some(given) => Splice { replaced: given.range(), by: format!(r#""{salt}""#).into() },
        None => Splice::first_member(body, &format!(r#""cache_salt":"{salt}""#)),
    }))
}

/// 43 letters, digits, `-` and `_`. The lengths keep any two lists of parts apart.
fn salt(secret: &[u8], tenant: &str, own: &str) -> String {
    let mut hasher = Sha256::new();
    for part in [PURPOSE.as_bytes(), secret, tenant.as_bytes(), own.as_bytes()] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    URL_SAFE_NO_PAD.encode(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value as Document, json};

    use super::*;

    fn spliced(body: &str, api: Api, tenant: &str) -> String {
        let splice = cache_salt(body.as_bytes(), api, b"secret", tenant).expect("valid");
        splice.map_or(body.to_owned(), |splice| String::from_utf8(splice.apply(body.as_bytes())).expect("valid"))
    }

    fn salt_of(body: &str, tenant: &str) -> String {
        let document: Document = serde_json::from_str(&spliced(body, Api::ChatCompletions, tenant)).expect("valid");
        document["cache_salt"].as_str().expect("a salt").to_owned()
    }

    #[test]
    fn only_the_place_of_the_salt_changes() {
        let salt = salt(b"secret", "acme", "");
        assert_eq!(salt, "gjF84wGjw3OHvUX-Y0XFaifVN0LX70i3szu9W6caNpA");
        for (body, expected) in [
            (r#"{ "a" : 1e5 }"#, r#"{"cache_salt":"SALT", "a" : 1e5 }"#),
            ("{}", r#"{"cache_salt":"SALT"}"#),
            ("\u{feff} { }", "\u{feff} {\"cache_salt\":\"SALT\" }"),
            (r#"{"a":1,"cache_salt": null }"#, r#"{"a":1,"cache_salt": "SALT" }"#),
            (r#"{"cache_salt":[7]}"#, r#"{"cache_salt":"SALT"}"#),
            // Of a key that stands twice, the last counts.
            (r#"{"cache_salt":"x","cache_salt":""}"#, r#"{"cache_salt":"x","cache_salt":"SALT"}"#),
            (r#"{"cache\u005fsalt":""}"#, r#"{"cache\u005fsalt":"SALT"}"#),
        ] {
            assert_eq!(spliced(body, Api::ChatCompletions, "acme"), expected.replace("SALT", &salt), "{body}");
        }
    }

    #[test]
    fn tenants_and_their_own_salts_are_kept_apart() {
        let salts = [
            salt_of("{}", "org_1"),
            salt_of("{}", "org_12345"),
            salt_of(r#"{"cache_salt":"2345"}"#, "org_1"),
            salt_of(r#"{"cache_salt":"x"}"#, "org_1"),
            salt(b"another", "org_1", ""),
        ];
        for (index, salt) in salts.iter().enumerate() {
            assert!(salt.len() == 43 && !salts[index + 1..].contains(salt), "{index}");
        }
        // Who knows another's salt gains nothing by sending it.
        assert_ne!(salt_of(&json!({ "cache_salt": salts[0] }).to_string(), "org_2"), salts[0]);
        assert_eq!(salt_of("{}", "org_1"), salts[0]);
    }

    #[test]
    fn apis_without_the_field_are_left_alone() {
        for api in [Api::Messages, Api::CountTokens, Api::Rerank, Api::Score] {
            assert_eq!(spliced(r#"{"messages":[]}"#, api, "acme"), r#"{"messages":[]}"#);
        }
        for body in ["not JSON", "{}", r#"{"inputs":"x"}"#] {
            assert_eq!(spliced(body, Api::Invocations, "acme"), body);
        }
        assert!(spliced(r#"{"prompt":"x"}"#, Api::Invocations, "acme").contains("cache_salt"));
        assert!(cache_salt(b"{", Api::Completions, b"", "acme").is_err());
    }

    proptest! {
        #[test]
        fn the_rest_of_the_body_means_what_it_meant(text: String, own: Option<String>, tenant in "[a-z]{1,9}") {
            let mut body = json!({"messages": [{"content": text}], "stream": true});
            if let Some(own) = own {
                body["cache_salt"] = json!(own);
            }
            let changed: Document =
                serde_json::from_str(&spliced(&body.to_string(), Api::ChatCompletions, &tenant)).expect("valid");
            body["cache_salt"] = changed["cache_salt"].clone();
            prop_assert_eq!(changed, body);
        }
    }
}
