//! Where messages about alerts go.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::instance_url::{self, Scheme};
use crate::value::parsed;

/// The URL of a webhook: `http://HOST[:PORT][/PATH][?QUERY]`, or `https://`. Shown without path and query, which may hold
/// a secret.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct WebhookUrl {
    scheme: Scheme,
    host: String,
    port: u16,
    target: String,
}

/// A text that is no such URL. It is not repeated: it may hold a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebhookUrlError {
    /// Another scheme, or none.
    #[error("must begin with http:// or https://, such as http://127.0.0.1:9094/hook")]
    Scheme,
    /// No host, or credentials before it.
    #[error("must have a host, and a port from 1 to 65535 where it is not the scheme's own, and no user name")]
    Host,
    /// Characters that no request line can hold.
    #[error("must have a path without spaces or fragment")]
    Path,
}

impl WebhookUrl {
    /// How it is spoken to.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host to connect to, an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The value of the `host` header.
    pub fn authority(&self) -> String {
        instance_url::authority(self.scheme, &self.host, self.port)
    }

    /// Path and query.
    pub fn target(&self) -> &str {
        &self.target
    }
}

impl FromStr for WebhookUrl {
    type Err = WebhookUrlError;

    fn from_str(text: &str) -> Result<WebhookUrl, WebhookUrlError> {
        let (scheme, rest) = instance_url::after_scheme(text, "").map_err(|_| WebhookUrlError::Scheme)?;
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let refused = |_| WebhookUrlError::Host;
        let (host, port) = instance_url::split_authority(authority).map_err(refused)?;
        let host = instance_url::parse_host(host).map_err(refused)?.to_string();
        let port = port.map_or(Ok(scheme.default_port()), instance_url::parse_port).map_err(refused)?;
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        if !target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err(WebhookUrlError::Path);
        }
        Ok(WebhookUrl { scheme, host, port, target })
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority())
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookUrl({self})")
    }
}

impl<'de> Deserialize<'de> for WebhookUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WebhookUrl, D::Error> {
        parsed(deserializer)
    }
}

impl Serialize for WebhookUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for WebhookUrl {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "WebhookUrl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^https?://" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_and_shown_without_what_may_be_secret() {
        let url: WebhookUrl = "http://am.internal/hook?token=secret".parse().unwrap();
        assert_eq!((url.host(), url.port(), url.target()), ("am.internal", 80, "/hook?token=secret"));
        assert_eq!(format!("{url} {url:?}"), "http://am.internal WebhookUrl(http://am.internal)");
        let url: WebhookUrl = "https://[::1]:9094".parse().unwrap();
        assert_eq!((url.host(), url.authority().as_str(), url.target()), ("::1", "[::1]:9094", "/"));
    }

    #[test]
    fn what_cannot_be_posted_to_is_refused() {
        for (text, error) in [
            ("ftp://hooks.example/x", WebhookUrlError::Scheme),
            ("am:9094", WebhookUrlError::Scheme),
            ("http://", WebhookUrlError::Host),
            ("http://user:pass@am/", WebhookUrlError::Host),
            ("http://am:0/", WebhookUrlError::Host),
            ("http://am/a b", WebhookUrlError::Path),
        ] {
            assert_eq!(text.parse::<WebhookUrl>(), Err(error), "{text}");
        }
    }
}
