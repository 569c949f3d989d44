//! Where an instance is reached: a normalised `http://` or `https://` URL, so that one instance has one spelling.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

/// How an instance is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Within TLS.
    Https,
}

impl Scheme {
    /// The scheme as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The port when none is written.
    pub(crate) const fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// The base URL of an instance: host, port, and a path that is put before every request's own.
///
/// Displayed in its normal form (RFC 3986, section 6.2): scheme and host in lower case, IPv6 addresses compressed, the
/// scheme's own port left out, no slash at the end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceUrl {
    scheme: Scheme,
    host: Host,
    port: u16,
    base_path: Arc<str>,
}

/// The host of a URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// An address, to which connections are made as it is.
    Address(IpAddr),
    /// A name in lower case, resolved when connecting.
    Name(Arc<str>),
}

impl InstanceUrl {
    /// How it is spoken to.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host to connect to.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What precedes the path of every request: empty, or a path that begins with a slash and does not end with one.
    pub fn base_path(&self) -> &str {
        &self.base_path
    }

    /// The value of the `host` header: the port only where it is not the scheme's own.
    pub fn authority(&self) -> String {
        authority(self.scheme, &self.host, self.port)
    }

    /// The same port and path on an address that a name was resolved to.
    pub(crate) fn at(scheme: Scheme, address: IpAddr, port: u16, base_path: Arc<str>) -> InstanceUrl {
        InstanceUrl { scheme, host: Host::Address(address), port, base_path }
    }
}

/// Host and port, the port only where it is not the scheme's own.
pub(crate) fn authority(scheme: Scheme, host: impl fmt::Display, port: u16) -> String {
    if port == scheme.default_port() { host.to_string() } else { format!("{host}:{port}") }
}

impl fmt::Display for InstanceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.as_str(), self.authority(), self.base_path)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Host::Name(name) => f.write_str(name),
        }
    }
}

/// A text that is no URL of an instance. Messages do not repeat the URL: it may hold credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Another scheme, or none.
    #[error("must begin with http:// or https://, such as http://10.0.0.1:8000")]
    Scheme,
    /// Credentials before the host.
    #[error("must not hold a user name or password; give the engine's key by api_key_env")]
    Credentials,
    /// No host, or one that is neither an address nor a name.
    #[error("must have a host: an IPv4 address, an IPv6 address in brackets, or a name of letters, digits, - and .")]
    Host,
    /// A port that is none.
    #[error("must have a port from 1 to 65535, or none for 80 (https: 443)")]
    Port,
    /// A query, a fragment, dot segments, or characters that a path cannot hold.
    #[error("must be a base URL without query, fragment, dot segments or spaces")]
    Path,
}

impl FromStr for InstanceUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<InstanceUrl, UrlError> {
        let (scheme, rest) = after_scheme(text, "")?;
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (host, port) = split_authority(authority)?;
        let port = port.map_or(Ok(scheme.default_port()), parse_port)?;
        Ok(InstanceUrl { scheme, host: parse_host(host)?, port, base_path: parse_base_path(path)? })
    }
}

/// The scheme behind a prefix such as `srv+`, and what follows `://`, whatever their case.
pub(crate) fn after_scheme<'t>(text: &'t str, prefix: &str) -> Result<(Scheme, &'t str), UrlError> {
    let (given, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
    match given.to_ascii_lowercase().strip_prefix(prefix) {
        Some("http") => Ok((Scheme::Http, rest)),
        Some("https") => Ok((Scheme::Https, rest)),
        _ => Err(UrlError::Scheme),
    }
}

/// The host as written (an IPv6 address with its brackets) and the port's digits.
pub(crate) fn split_authority(authority: &str) -> Result<(&str, Option<&str>), UrlError> {
    if authority.contains('@') {
        return Err(UrlError::Credentials);
    }
    let end_of_host = if authority.starts_with('[') {
        authority.find(']').ok_or(UrlError::Host)? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, rest) = authority.split_at(end_of_host);
    match rest.strip_prefix(':') {
        Some("") => Ok((host, None)),
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err(UrlError::Host),
    }
}

pub(crate) fn parse_port(digits: &str) -> Result<u16, UrlError> {
    let port = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
    port.filter(|port| *port > 0).ok_or(UrlError::Port)
}

pub(crate) fn parse_host(text: &str) -> Result<Host, UrlError> {
    if let Some(bracketed) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let address: Ipv6Addr = bracketed.parse().map_err(|_| UrlError::Host)?;
        return Ok(Host::Address(address.into()));
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Address(address.into()));
    }
    parse_name(text).map(Host::Name)
}

/// A host name (RFC 1123; underscores, as service names and Compose use them, too) in lower case.
pub(crate) fn parse_name(text: &str) -> Result<Arc<str>, UrlError> {
    let without_root = text.strip_suffix('.').unwrap_or(text);
    let labels_fit = without_root.split('.').all(|label| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    });
    // A last label of digits only is an IPv4 address that went wrong, never a name.
    let last_label = without_root.rsplit('.').next().unwrap_or_default();
    let mistyped_address = last_label.bytes().all(|byte| byte.is_ascii_digit());
    if labels_fit && !mistyped_address && text.len() <= 253 {
        Ok(text.to_ascii_lowercase().into())
    } else {
        Err(UrlError::Host)
    }
}

/// The path without slashes at its end. Percent escapes stay as they are.
pub(crate) fn parse_base_path(path: &str) -> Result<Arc<str>, UrlError> {
    let trimmed = path.trim_end_matches('/');
    let characters_fit = trimmed.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\"<>\\^`{|}".contains(&byte));
    let segments_fit = trimmed.split('/').skip(1).all(|segment| !matches!(segment, "" | "." | ".."));
    if characters_fit && segments_fit { Ok(trimmed.into()) } else { Err(UrlError::Path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_instance_has_one_spelling() {
        for (text, normal) in [
            ("http://10.0.0.1:8000", "http://10.0.0.1:8000"),
            ("http://10.0.0.1:8000/", "http://10.0.0.1:8000"),
            ("HTTP://VLLM-0.Internal:8000", "http://vllm-0.internal:8000"),
            ("http://vllm", "http://vllm"),
            ("http://vllm:80/", "http://vllm"),
            ("http://vllm:/", "http://vllm"),
            ("http://vllm:08000", "http://vllm:8000"),
            ("http://[0:0:0:0:0:0:0:1]:8000", "http://[::1]:8000"),
            ("http://[2001:DB8::1]", "http://[2001:db8::1]"),
            ("http://gpu_1:8000/engine/a/", "http://gpu_1:8000/engine/a"),
            ("http://vllm.svc.cluster.local.:8000", "http://vllm.svc.cluster.local.:8000"),
            ("HTTPS://vllm:443/", "https://vllm"),
            ("https://vllm:80", "https://vllm:80"),
            ("http://vllm:443", "http://vllm:443"),
        ] {
            let url: InstanceUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), normal);
            assert_eq!(normal.parse::<InstanceUrl>().unwrap(), url, "the normal form of {text} is not stable");
        }
    }

    #[test]
    fn the_parts_are_what_a_connection_needs() {
        let url: InstanceUrl = "http://[::1]:8000/engine/".parse().unwrap();
        assert_eq!(url.host(), &Host::Address(IpAddr::V6(Ipv6Addr::LOCALHOST)));
        assert_eq!((url.port(), url.base_path(), url.authority().as_str()), (8000, "/engine", "[::1]:8000"));
        let url: InstanceUrl = "http://vllm".parse().unwrap();
        assert_eq!((url.port(), url.base_path(), url.authority().as_str()), (80, "", "vllm"));
    }

    #[test]
    fn what_is_no_base_url_is_refused_by_its_part() {
        for (text, error) in [
            ("10.0.0.1:8000", UrlError::Scheme),
            ("grpc://a:1", UrlError::Scheme),
            ("", UrlError::Scheme),
            ("http://user:secret@a:8000", UrlError::Credentials),
            ("http://", UrlError::Host),
            ("http:///path", UrlError::Host),
            ("http://:8000", UrlError::Host),
            ("http://a b", UrlError::Host),
            ("http://1.2.3.999", UrlError::Host),
            ("http://1.2.3", UrlError::Host),
            ("http://[::1", UrlError::Host),
            ("http://[::1]x", UrlError::Host),
            ("http://[fe80::1%eth0]:80", UrlError::Host),
            ("http://a..b", UrlError::Host),
            ("http://a:0", UrlError::Port),
            ("http://a:65536", UrlError::Port),
            ("http://a:+80", UrlError::Port),
            ("http://a:b", UrlError::Port),
            ("http://a/?x=1", UrlError::Path),
            ("http://a#f", UrlError::Path),
            ("http://a/../b", UrlError::Path),
            ("http://a//b", UrlError::Path),
            ("http://a/b c", UrlError::Path),
        ] {
            assert_eq!(text.parse::<InstanceUrl>(), Err(error), "{text}");
        }
    }
}
