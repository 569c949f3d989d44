//! Where an instance is reached: what a connection and a request's head need of its URL.

use std::net::SocketAddr;
use std::sync::Arc;

use http::HeaderValue;
use isotherm_config::{Host, InstanceUrl, Scheme};

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

    /// The socket address, where the host is an address and needs no resolving.
    pub fn socket(&self) -> Option<SocketAddr> {
        match self.url.host() {
            Host::Address(address) => Some(SocketAddr::new(*address, self.url.port())),
            Host::Name(_) => None,
        }
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
        assert_eq!(address.socket(), Some("10.0.0.1:8000".parse().unwrap()));
        assert_eq!(Address::of("http://vllm".parse().unwrap()).socket(), None);
    }
}
