//! What is allowed and still worth a word: secrets in the clear, certificates that end.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use isotherm_tls::{ClientTls, ServerTls};

use crate::{Auth, Config, Host, InstanceEntry, InstanceSource};

/// How long before its end a certificate is spoken of.
pub const CERTIFICATE_ENDS_SOON: Duration = Duration::from_secs(14 * 86_400);

impl Config {
    /// What is allowed and still worth a word, a sentence each, in no need of being obeyed: who sends secrets where they can
    /// be read on the way, whose certificate does not count, at `now`.
    pub fn warnings(&self, now: SystemTime) -> Vec<String> {
        let mut warnings = Vec::new();
        let keys_travel = matches!(&self.auth, Auth::Keys { ring, .. } if ring.holds_opaque_keys());
        if self.tls.is_none() && keys_travel && is_public(self.listen) {
            warnings.push(in_clear("clients' keys travel", self.listen, "`tls: { cert: PATH, key: PATH }`"));
        }
        if self.admin.tls.is_none() && is_public(self.admin.listen) {
            let settings = "`admin: { tls: { cert: PATH, key: PATH } }`";
            warnings.push(in_clear("the admin token travels", self.admin.listen, settings));
        }
        let entries = || self.endpoints.iter().flat_map(|endpoint| &endpoint.variants).flat_map(|it| &it.instances);
        if let Some(entry) = entries().find(|entry| sends_key_in_clear(entry)) {
            warnings.push(format!(
                "the engine's key travels in the clear to {}; where others can listen, give an https:// URL",
                entry.source
            ));
        }
        for tls in once_each(entries().filter_map(|entry| entry.tls.as_ref()).chain(&self.instances_tls)) {
            if tls.trusts_nobody() {
                warnings.push(
                    "no instance with an https:// URL will be believed: this machine has no authorities' certificates; \
                     install them (ca-certificates), or give `instances_tls: { ca: PATH }`"
                        .to_owned(),
                );
            }
            if !tls.verifies() {
                warnings.push("`verify: false`: whoever answers at an instance's https:// URL is believed".to_owned());
            }
            warnings.extend(complaint_of(tls.files(), tls.validity(), now));
        }
        let listeners = [&self.tls, &self.admin.tls].into_iter().flatten();
        warnings.extend(listeners.filter_map(|tls: &ServerTls| complaint_of(tls.files(), tls.validity(), now)));
        warnings
    }

    /// The files that the configuration names and that are read again when they change: keys and certificates.
    pub fn files(&self) -> Vec<PathBuf> {
        let keys = match &self.auth {
            Auth::Keys { file, .. } => Some(file.clone()),
            Auth::None => None,
        };
        let entries = self.endpoints.iter().flat_map(|endpoint| &endpoint.variants).flat_map(|it| &it.instances);
        let to_instances = once_each(entries.filter_map(|entry| entry.tls.as_ref()).chain(&self.instances_tls));
        let mut files: Vec<PathBuf> = keys.into_iter().collect();
        for tls in [&self.tls, &self.admin.tls].into_iter().flatten() {
            files.extend(tls.files().map(PathBuf::from));
        }
        for tls in to_instances {
            files.extend(tls.files().map(PathBuf::from));
        }
        files
    }
}

/// Entries share what they were given together.
fn once_each<'t>(all: impl Iterator<Item = &'t ClientTls>) -> Vec<&'t ClientTls> {
    let mut once: Vec<&ClientTls> = Vec::new();
    for tls in all {
        if once.iter().all(|seen| seen.serial() != tls.serial()) {
            once.push(tls);
        }
    }
    once
}

fn in_clear(what: &str, address: SocketAddr, settings: &str) -> String {
    format!("{what} in the clear to {address}: set {settings}, or let only a proxy that ends TLS reach that address")
}

fn complaint_of<'f>(
    mut files: impl Iterator<Item = &'f std::path::Path>,
    validity: Option<isotherm_tls::Validity>,
    now: SystemTime,
) -> Option<String> {
    let complaint = validity?.complaint(now, CERTIFICATE_ENDS_SOON)?;
    Some(format!("the certificate {} {complaint}", files.next()?.display()))
}

fn is_public(address: SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

fn sends_key_in_clear(entry: &InstanceEntry) -> bool {
    let stays_here = match &entry.source {
        InstanceSource::Url { url, .. } => match url.host() {
            Host::Address(address) => IpAddr::to_canonical(address).is_loopback(),
            Host::Name(name) => &**name == "localhost",
        },
        InstanceSource::Dns { .. } => false,
    };
    entry.api_key.is_some() && !entry.source.is_secure() && !stays_here
}
