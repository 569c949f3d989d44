//! `admin`: the admin plane's listener and token.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use isotherm_tls::ServerTls;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::address;
use crate::dns_name::HostName;
use crate::tls::TlsElement;
use crate::value::text;
use crate::yaml::Located;

/// Metrics, health and changes of the fleet, on a listener of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// Where the admin plane listens.
    pub listen: SocketAddr,
    /// The file that holds the token for `/api/…`. `None`: one is made at start in the runtime directory.
    pub token_file: Option<PathBuf>,
    /// TLS of the admin plane; in the clear when `None`.
    pub tls: Option<ServerTls>,
    /// Names under which it may be called beside addresses and `localhost`, in lower case.
    pub hosts: Vec<HostName>,
}

impl Admin {
    /// Where the admin plane listens when nothing is said.
    pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8081);
}

/// Metrics, health and changes of the fleet, on a listener of their own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Admin")]
pub(crate) struct AdminElement {
    /// Address and port; 127.0.0.1:8081 when absent.
    #[schemars(schema_with = "address::schema")]
    pub(crate) listen: Option<Located<ListenAddress>>,
    /// A file that holds the token for `/api/…`; relative to the directory of this file. When absent, a token is made
    /// at start in the runtime directory.
    #[schemars(with = "Option<String>")]
    pub(crate) token_file: Option<PathBuf>,
    /// TLS of the admin plane; in the clear when absent.
    #[schemars(with = "TlsElement")]
    pub(crate) tls: Option<Located<TlsElement>>,
    /// Names under which the API and the dashboard may be called, beside addresses and `localhost`.
    pub(crate) hosts: Vec<HostName>,
}

/// An address to listen on, as written in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListenAddress(pub(crate) SocketAddr);

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<ListenAddress, D::Error> {
        address::parse(&text(deserializer, "an address such as 127.0.0.1:8080")?)
            .map(ListenAddress)
            .map_err(serde::de::Error::custom)
    }
}
