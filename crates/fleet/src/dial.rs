//! Opening connections to an instance, within TLS where its URL says so.

use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderValue;
use isotherm_config::{ClientTls, DnsName, Host, Scheme};
use isotherm_tls::{ServerIdentity, Stream};
use tokio::net::TcpStream;

use crate::Address;

/// TLS to one instance: whom it has to prove to be, and how that is checked.
#[derive(Debug)]
pub struct InstanceTls {
    tls: ClientTls,
    /// `None` where its host's name can't stand in a certificate.
    identity: Option<ServerIdentity>,
    /// Tells its connections from those in the clear and from those made by other settings.
    pool_key: HeaderValue,
}

impl InstanceTls {
    /// TLS to the instance at a URL, to which `name` may have been resolved. A configured server's name goes before
    /// both.
    fn of(tls: ClientTls, address: &Address, name: Option<&DnsName>) -> InstanceTls {
        let of_host = || match (name, address.host()) {
            (Some(name), _) => ServerIdentity::of(name.name()),
            (None, Host::Name(name)) => ServerIdentity::of(name),
            (None, Host::Address(ip)) => ServerIdentity::of(&ip.to_string()),
        };
        let identity = tls.server_name().cloned().or_else(of_host);
        let key = format!("{} {}", address.url(), tls.serial());
        // A URL is visible ASCII, which a header can always hold.
        let pool_key = HeaderValue::from_str(&key).unwrap_or_else(|_| HeaderValue::from_static(""));
        InstanceTls { tls, identity, pool_key }
    }

    /// TLS to an address as these settings say it, else as this machine does it; `None` for one in the clear.
    pub fn at(address: &Address, tls: Option<ClientTls>) -> Option<InstanceTls> {
        let tls = || tls.unwrap_or_else(ClientTls::of_this_machine);
        (address.scheme() == Scheme::Https).then(|| InstanceTls::of(tls(), address, None))
    }

    /// By what connections are kept that may carry a next request.
    pub fn pool_key(&self) -> &HeaderValue {
        &self.pool_key
    }
}

/// An instance's TLS while it lives; nothing for one in the clear.
#[derive(Debug)]
pub(crate) struct TlsSlot(Option<ArcSwap<InstanceTls>>);

impl TlsSlot {
    pub(crate) fn of(tls: Option<ClientTls>, address: &Address, name: Option<&DnsName>) -> TlsSlot {
        let secure = address.scheme() == Scheme::Https;
        let tls = secure.then(|| tls.unwrap_or_else(ClientTls::of_this_machine));
        TlsSlot(tls.map(|tls| ArcSwap::from_pointee(InstanceTls::of(tls, address, name))))
    }

    pub(crate) fn get(&self) -> Option<Arc<InstanceTls>> {
        self.0.as_ref().map(ArcSwap::load_full)
    }

    /// New connections are made by these settings; those that are open go on.
    pub(crate) fn set(&self, tls: Option<ClientTls>, address: &Address, name: Option<&DnsName>) {
        let Some(slot) = &self.0 else { return };
        let tls = tls.unwrap_or_else(ClientTls::of_this_machine);
        if slot.load().tls != tls {
            slot.store(Arc::new(InstanceTls::of(tls, address, name)));
        }
    }
}

impl Address {
    /// Opens a connection, within TLS where that is given; small writes leave at once. Takes as long as the other side
    /// does: the caller bounds it.
    ///
    /// # Errors
    ///
    /// When there is no way there, nothing listens, or the other side does not prove to be whom it should.
    pub async fn dial(&self, tls: Option<&InstanceTls>) -> io::Result<Stream> {
        let tcp = match self.host() {
            Host::Address(ip) => TcpStream::connect((*ip, self.port())).await?,
            Host::Name(name) => TcpStream::connect((&**name, self.port())).await?,
        };
        // Worth nothing to fail for: without it, answers are merely slower.
        let _ = tcp.set_nodelay(true);
        let Some(InstanceTls { tls, identity, .. }) = tls else { return Ok(Stream::Plain(tcp)) };
        let nameless = || io::Error::new(io::ErrorKind::InvalidInput, "its host's name can't stand in a certificate");
        tls.connect(tcp, identity.as_ref().ok_or_else(nameless)?).await
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use isotherm_tls::ClientFiles;

    use super::*;

    fn identity(url: &str, name: Option<&str>, files: ClientFiles) -> Option<ServerIdentity> {
        let name = name.map(|name| name.parse().unwrap());
        let tls = ClientTls::read(ClientFiles { verify: false, ..files }).unwrap();
        InstanceTls::of(tls, &Address::of(url.parse().unwrap()), name.as_ref()).identity
    }

    #[test]
    fn an_instance_has_to_be_what_it_was_called_first() {
        let plain = ClientFiles::default;
        assert_eq!(identity("https://vllm-0", None, plain()), ServerIdentity::of("vllm-0"));
        assert_eq!(identity("https://10.0.0.1:8443", None, plain()), ServerIdentity::of("10.0.0.1"));
        assert_eq!(identity("https://[::1]:8443", None, plain()), ServerIdentity::of("::1"));
        let resolved = identity("https://10.0.0.1", Some("https://vllm.internal"), plain());
        assert_eq!(resolved, ServerIdentity::of("vllm.internal"));
        let configured = ClientFiles { server_name: Some("engine".into()), ..plain() };
        assert_eq!(
            identity("https://10.0.0.1", Some("https://vllm.internal"), configured),
            ServerIdentity::of("engine")
        );
    }

    #[test]
    fn only_new_settings_make_new_connections() {
        let read = |server_name: &str| {
            let server_name = Some(server_name.to_owned());
            ClientTls::read(ClientFiles { verify: false, server_name, ..ClientFiles::default() }).unwrap()
        };
        let address = Address::of("https://10.0.0.1".parse().unwrap());
        let slot = TlsSlot::of(Some(read("a")), &address, None);
        let key = || slot.get().unwrap().pool_key().clone();
        let before = key();
        slot.set(Some(read("a")), &address, None);
        assert_eq!(key(), before);
        slot.set(Some(read("b")), &address, None);
        assert_ne!(key(), before);
        let plain = TlsSlot::of(Some(read("a")), &Address::of("http://10.0.0.1".parse().unwrap()), None);
        assert!(plain.get().is_none());
    }
}
