//! Where requests go: the base URL of an OpenAI-compatible server, a model's name, a key.

use std::net::Ipv6Addr;

use http::{HeaderValue, Uri};

/// A server that answers `POST /v1/chat/completions`.
#[derive(Clone, Debug)]
pub struct Target {
    host: String,
    port: u16,
    host_header: HeaderValue,
    base_path: String,
    model: String,
    authorization: Option<HeaderValue>,
}

impl Target {
    /// Takes `http://host[:port][/base]`; a trailing `/v1`, as OpenAI's clients want it, may stand there or not.
    ///
    /// # Errors
    /// When the URL is no such one.
    pub fn new(url: &str, model: impl Into<String>) -> Result<Target, InvalidTarget> {
        let invalid = |problem| InvalidTarget::Url { url: url.to_owned(), problem };
        let uri: Uri = url.parse().map_err(|_| invalid("it is not a URL"))?;
        if uri.scheme_str() != Some("http") {
            return Err(invalid("it does not begin with http://"));
        }
        if uri.query().is_some() {
            return Err(invalid("it has a query"));
        }
        let authority = uri.authority().ok_or_else(|| invalid("it names no host"))?;
        let host = authority.host();
        let port = authority.port_u16().unwrap_or(80);
        let host_header = HeaderValue::from_str(&format!("{host}:{port}")).map_err(|_| invalid("its host is odd"))?;
        let base_path = uri.path().trim_end_matches('/').trim_end_matches("/v1").to_owned();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Target { host, port, host_header, base_path, model: model.into(), authorization: None })
    }

    /// Sends `Authorization: Bearer <key>` with every request.
    ///
    /// # Errors
    /// When the key holds characters that no header may hold.
    pub fn with_api_key(mut self, key: &str) -> Result<Target, InvalidTarget> {
        let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| InvalidTarget::Key)?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    pub fn model(&self) -> &str {
        &self.model
    }

    pub(crate) fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// A request without method and body.
    pub(crate) fn request(&self, path: &str) -> http::request::Builder {
        let builder = http::Request::builder()
            .uri(format!("{}{path}", self.base_path))
            .header(http::header::HOST, &self.host_header)
            .header(http::header::USER_AGENT, concat!("isotherm-bench/", env!("CARGO_PKG_VERSION")));
        match &self.authorization {
            Some(authorization) => builder.header(http::header::AUTHORIZATION, authorization),
            None => builder,
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (host, port, base) = (&self.host, self.port, &self.base_path);
        if host.parse::<Ipv6Addr>().is_ok() {
            write!(formatter, "http://[{host}]:{port}{base}")
        } else {
            write!(formatter, "http://{host}:{port}{base}")
        }
    }
}

/// Why a target cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    #[error("cannot send requests to {url:?}: {problem}; write http://host:port")]
    Url { url: String, problem: &'static str },
    #[error("the API key holds characters that no HTTP header may hold")]
    Key,
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn takes_base_urls_with_and_without_v1() {
        for (url, shown, path) in [
            ("http://localhost:8080", "http://localhost:8080", "/v1/models"),
            ("http://localhost:8080/v1/", "http://localhost:8080", "/v1/models"),
            ("http://engines/openai/v1", "http://engines:80/openai", "/openai/v1/models"),
            ("http://[::1]:9", "http://[::1]:9", "/v1/models"),
        ] {
            let target = Target::new(url, "m").unwrap();
            assert_eq!(target.to_string(), shown);
            assert_eq!(target.request("/v1/models").body(()).unwrap().uri(), path);
        }
        assert_eq!(Target::new("http://[::1]:9", "m").unwrap().address(), ("::1", 9));
    }

    #[test]
    fn refuses_what_it_cannot_reach_and_says_what_to_write() {
        let refuse = |url| Target::new(url, "m").unwrap_err().to_string();
        assert_eq!(
            refuse("https://host"),
            "cannot send requests to \"https://host\": it does not begin with http://; write http://host:port"
        );
        assert!(refuse("localhost:8080").contains("http://host:port"));
        assert!(refuse("http://h/?a=b").contains("it has a query"));
        assert!(refuse("").contains("it is not a URL"));
    }

    #[test]
    fn a_key_is_sent_and_never_shown() {
        let target = Target::new("http://h", "m").unwrap().with_api_key("secret-key").unwrap();
        assert_eq!(target.request("/").body(()).unwrap().headers()["authorization"], "Bearer secret-key");
        assert!(!format!("{target:?}").contains("secret-key"));
        assert!(Target::new("http://h", "m").unwrap().with_api_key("line\nfeed").is_err());
    }
}
