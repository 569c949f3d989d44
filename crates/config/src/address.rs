//! Addresses to listen on: an IP address (or `localhost`) and a port.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use schemars::{Schema, SchemaGenerator, json_schema};

/// A text that is no address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not `IP:PORT`.
    #[error("{0:?} is no address to listen on; allowed: IP:PORT, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::]:8080")]
    Address(String),
    /// Not an IP address.
    #[error("{0:?} is no address to listen on; allowed: an IP address, such as 127.0.0.1, 0.0.0.0 or ::")]
    Host(String),
}

/// Reads an IP address, or `localhost` as `127.0.0.1`.
pub(crate) fn parse_host(text: &str) -> Result<IpAddr, AddressError> {
    if text.eq_ignore_ascii_case("localhost") {
        return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let unbracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    unbracketed.parse().map_err(|_| AddressError::Host(text.to_owned()))
}

/// Reads an address with a port; port 0 lets the system choose one.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, AddressError> {
    let refused = || AddressError::Address(text.to_owned());
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(refused)?;
    match (host.eq_ignore_ascii_case("localhost"), port.parse()) {
        (true, Ok(port)) => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        _ => Err(refused()),
    }
}

pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^.+:[0-9]+$" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families_and_localhost_are_read() {
        for (text, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::]:8080"),
            ("localhost:80", "127.0.0.1:80"),
            ("0.0.0.0:0", "0.0.0.0:0"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected);
        }
        for (text, expected) in [("::1", "::1"), ("[::1]", "::1"), ("Localhost", "127.0.0.1")] {
            assert_eq!(parse_host(text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_allowed_form() {
        for text in ["8080", ":8080", "example.com:8080", "127.0.0.1", "127.0.0.1:99999", "::1:8080x", ""] {
            assert_eq!(parse(text), Err(AddressError::Address(text.to_owned())), "{text:?}");
        }
        assert_eq!(parse_host("example.com"), Err(AddressError::Host("example.com".to_owned())));
    }
}
