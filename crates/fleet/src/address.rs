//! Where an instance is reached: what a connection and a request's head need of its URL.

use std::sync::Arc;

use http::HeaderValue;
use isotherm_config::{DnsName, Host, InstanceUrl, Scheme};

/// An instance's URL, with what every request needs of it made ready once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    url: InstanceUrl,
    text: Arc<str>,
    authority: HeaderValue,
}

impl Address {
    /// Where a URL is reached.
    pub fn of(url: InstanceUrl) -> Address {
        // A URL's host and port are visible ASCII, which a header can always hold.
        let authority = HeaderValue::from_str(&url.authority()).unwrap_or_else(|_| HeaderValue::from_static(""));
        Address { text: url.to_string().into(), authority, url }
    }

    /// The same, called by the name that was resolved to it where TLS is spoken: who proves to be of that name wants to
    /// be called so.
    pub(crate) fn called(self, name: &DnsName) -> Address {
        let called = name.authority().filter(|_| self.scheme() == Scheme::Https);
        let authority = called.and_then(|called| HeaderValue::from_str(&called).ok());
        Address { authority: authority.unwrap_or(self.authority), ..self }
    }

    /// The URL in its normal form.
    pub fn url(&self) -> &Arc<str> {
        &self.text
    }

    /// Whether this is where the URL is reached.
    pub(crate) fn is_at(&self, url: &InstanceUrl) -> bool {
        self.url == *url
    }

    /// How it is spoken to.
    pub fn scheme(&self) -> Scheme {
        self.url.scheme()
    }

    /// The host to connect to.
    pub fn host(&self) -> &Host {
        self.url.host()
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.url.port()
    }

    /// The value of the `host` header.
    pub fn authority(&self) -> &HeaderValue {
        &self.authority
    }

    /// What precedes the path of every request: empty, or a path that begins with a slash and does not end with one.
    pub fn base_path(&self) -> &str {
        self.url.base_path()
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_ready_for_a_request() {
        let address = Address::of("http://10.0.0.1:8000/engine/".parse().unwrap());
        assert_eq!(&**address.url(), "http://10.0.0.1:8000/engine");
        assert_eq!(address.authority(), "10.0.0.1:8000");
        assert_eq!(address.base_path(), "/engine");
    }

    #[test]
    fn within_tls_a_resolved_instance_is_called_by_its_name() {
        let called = |name: &str| {
            let name: DnsName = name.parse().unwrap();
            Address::of(name.instance_at("10.0.0.7".parse().unwrap(), 8443)).called(&name).authority().clone()
        };
        assert_eq!(called("https://vllm.internal:8443"), "vllm.internal:8443");
        assert_eq!(called("http://vllm.internal:8443"), "10.0.0.7:8443");
        assert_eq!(called("srv+https://_vllm._tcp.internal"), "10.0.0.7:8443");
    }
}
