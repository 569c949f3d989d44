//! Instances behind a DNS name that is resolved again and again: `http://` by A and AAAA, `srv+http://` by SRV records;
//! or `https://` and `srv+https://`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::instance_url::{self, Host, InstanceUrl, Scheme, UrlError};
use crate::value::parsed;

/// What precedes the scheme of a name that has SRV records.
const SRV: &str = "srv+";

/// A name behind which every address is an instance of its own.
///
/// - `http://vllm.internal:8000`: each A and AAAA record is an instance on that port (a headless service).
/// - `srv+http://_vllm._tcp.internal`: each SRV record is an instance on the record's own target and port.
///
/// A path is kept, as in [`InstanceUrl`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsName {
    scheme: Scheme,
    name: Arc<str>,
    records: Records,
    base_path: Arc<str>,
}

/// Which records of a name are the instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Records {
    /// A and AAAA, all on this port.
    Addresses {
        /// The port of every instance.
        port: u16,
    },
    /// SRV, each with its own port.
    Services,
}

impl DnsName {
    /// How its instances are spoken to.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The name to look up, in lower case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which records to look up.
    pub fn records(&self) -> Records {
        self.records
    }

    /// Name and port as the `host` header has them; `None` where records say the ports.
    pub fn authority(&self) -> Option<String> {
        match self.records {
            Records::Addresses { port } => Some(instance_url::authority(self.scheme, &self.name, port)),
            Records::Services => None,
        }
    }

    /// The URL of the instance at a resolved address.
    pub fn instance_at(&self, address: IpAddr, port: u16) -> InstanceUrl {
        InstanceUrl::at(self.scheme, address, port, Arc::clone(&self.base_path))
    }
}

impl fmt::Display for DnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.scheme.as_str();
        match self.records {
            Records::Addresses { port } => {
                let authority = instance_url::authority(self.scheme, &self.name, port);
                write!(f, "{scheme}://{authority}{}", self.base_path)
            }
            Records::Services => write!(f, "{SRV}{scheme}://{}{}", self.name, self.base_path),
        }
    }
}

/// A text that is no name to resolve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DnsNameError {
    /// None of `http://`, `https://`, `srv+http://`, `srv+https://`.
    #[error(
        "must begin with http:// or https:// (A and AAAA records), srv+http:// or srv+https:// (SRV records), \
         such as http://vllm.internal:8000 or srv+http://_vllm._tcp.internal"
    )]
    Scheme,
    /// An address where a name is needed.
    #[error("must be a name, not an address; give an address by url")]
    Address,
    /// A port beside SRV records.
    #[error("must not have a port: SRV records say the ports")]
    PortOfService,
    /// Another part of the URL is wrong.
    #[error(transparent)]
    Url(#[from] UrlError),
}

impl FromStr for DnsName {
    type Err = DnsNameError;

    fn from_str(text: &str) -> Result<DnsName, DnsNameError> {
        if let Ok((scheme, rest)) = instance_url::after_scheme(text, SRV) {
            let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
            let (host, port) = instance_url::split_authority(authority)?;
            if port.is_some() {
                return Err(DnsNameError::PortOfService);
            }
            let base_path = instance_url::parse_base_path(path)?;
            return Ok(DnsName {
                scheme,
                name: name_of(instance_url::parse_host(host)?)?,
                records: Records::Services,
                base_path,
            });
        }
        let url: InstanceUrl = text.parse().map_err(|error| match error {
            UrlError::Scheme => DnsNameError::Scheme,
            other => DnsNameError::Url(other),
        })?;
        Ok(DnsName {
            scheme: url.scheme(),
            name: name_of(url.host().clone())?,
            records: Records::Addresses { port: url.port() },
            base_path: url.base_path().into(),
        })
    }
}

/// A host's name in lower case, such as clients put into the `host` header.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(transparent)]
pub struct HostName(#[schemars(with = "String")] Arc<str>);

impl HostName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<HostName, UrlError> {
        instance_url::parse_name(text).map(HostName)
    }
}

impl<'de> Deserialize<'de> for HostName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HostName, D::Error> {
        parsed(deserializer)
    }
}

fn name_of(host: Host) -> Result<Arc<str>, DnsNameError> {
    match host {
        Host::Name(name) => Ok(name),
        Host::Address(_) => Err(DnsNameError::Address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_records_are_understood() {
        let name: DnsName = "http://VLLM.internal:8000/engine/".parse().unwrap();
        assert_eq!((name.name(), name.records()), ("vllm.internal", Records::Addresses { port: 8000 }));
        assert_eq!(name.to_string(), "http://vllm.internal:8000/engine");
        assert_eq!(name.instance_at("10.0.0.7".parse().unwrap(), 8000).to_string(), "http://10.0.0.7:8000/engine");
        let name: DnsName = "srv+http://_vllm._tcp.internal".parse().unwrap();
        assert_eq!((name.name(), name.records()), ("_vllm._tcp.internal", Records::Services));
        assert_eq!(name.instance_at("::1".parse().unwrap(), 81).to_string(), "http://[::1]:81");
    }

    #[test]
    fn either_may_be_within_tls() {
        let name: DnsName = "https://vllm.internal".parse().unwrap();
        assert_eq!((name.scheme(), name.records()), (Scheme::Https, Records::Addresses { port: 443 }));
        assert_eq!(name.to_string(), "https://vllm.internal");
        assert_eq!(name.instance_at("10.0.0.7".parse().unwrap(), 443).to_string(), "https://10.0.0.7");
        let name: DnsName = "SRV+HTTPS://_vllm._tcp.internal".parse().unwrap();
        assert_eq!(name.to_string(), "srv+https://_vllm._tcp.internal");
    }

    #[test]
    fn what_cannot_be_resolved_is_refused() {
        for (text, error) in [
            ("vllm.internal:8000", DnsNameError::Scheme),
            ("http://10.0.0.1:8000", DnsNameError::Address),
            ("srv+http://[::1]", DnsNameError::Address),
            ("srv+http://_vllm._tcp.internal:8000", DnsNameError::PortOfService),
            ("srv+grpc://vllm.internal", DnsNameError::Scheme),
            ("srv+http://a b", DnsNameError::Url(UrlError::Host)),
        ] {
            assert_eq!(text.parse::<DnsName>(), Err(error), "{text}");
        }
    }
}
