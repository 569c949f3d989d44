//! `tls`, `admin.tls` and `instances_tls`: certificates that are shown and certificates that are believed.

use std::path::PathBuf;

use isotherm_tls::{ClientFiles, ClientTls, Part, Protocols, ServerFiles, ServerTls, TlsError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::Context;
use crate::problem::Place;
use crate::yaml::Located;

/// TLS of a listener. The files are read again when they change; connections that are open stay as they are.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tls")]
pub(crate) struct TlsElement {
    /// The certificate in PEM, and behind it those by which it was signed; relative to the directory of this file.
    #[schemars(with = "String")]
    cert: Located<PathBuf>,
    /// Its private key in PEM; in the certificate's file when absent.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    key: Option<Located<PathBuf>>,
    /// Only clients with a certificate that one of these authorities has signed are let in; all when absent.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    client_ca: Option<Located<PathBuf>>,
}

impl TlsElement {
    /// The listener's side, when the files are there and fit together.
    pub(crate) fn read(self, place: Place, protocols: Protocols, context: &mut Context<'_>) -> Option<ServerTls> {
        let directory = context.directory();
        let path = |named: &Located<PathBuf>| directory.join(&named.value);
        let files = ServerFiles {
            cert: path(&self.cert),
            key: self.key.as_ref().map(path),
            client_ca: self.client_ca.as_ref().map(path),
        };
        let place_of = |part| match part {
            Part::Certificate | Part::ServerName => self.cert.place,
            Part::Key => self.key.as_ref().unwrap_or(&self.cert).place,
            Part::Authorities => self.client_ca.as_ref().map_or(place, |file| file.place),
        };
        let read = ServerTls::read(files, protocols);
        read.map_err(|TlsError { part, what }| context.refuse(place_of(part), what)).ok()
    }
}

/// TLS to instances with an `https://` URL. The files are read again when they change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "InstancesTls")]
pub(crate) struct InstancesTlsElement {
    /// The authorities of which one has to have signed an instance's certificate, in PEM; those of this machine when
    /// absent.
    #[schemars(with = "Option<String>")]
    ca: Option<Located<PathBuf>>,
    /// The certificate that is shown to instances, in PEM.
    #[schemars(with = "Option<String>")]
    cert: Option<Located<PathBuf>>,
    /// Its private key in PEM; in the certificate's file when absent.
    #[schemars(with = "Option<String>")]
    key: Option<Located<PathBuf>>,
    /// The name that an instance's certificate has to be for; the host of its URL or its DNS name when absent.
    #[schemars(with = "Option<String>")]
    server_name: Option<Located<String>>,
    /// Whether instances' certificates are checked.
    verify: bool,
}

impl Default for InstancesTlsElement {
    fn default() -> InstancesTlsElement {
        InstancesTlsElement { ca: None, cert: None, key: None, server_name: None, verify: true }
    }
}

impl InstancesTlsElement {
    /// The router's side, when the files are there and fit together.
    pub(crate) fn read(self, place: Place, context: &mut Context<'_>) -> Option<ClientTls> {
        if let (Some(key), None) = (&self.key, &self.cert) {
            context.refuse(key.place, "`key` goes with `cert`");
            return None;
        }
        if let (Some(ca), false) = (&self.ca, self.verify) {
            context
                .refuse(ca.place, "`ca` says whose certificates are believed, `verify: false` that all are: give one");
            return None;
        }
        let directory = context.directory();
        let path = |named: &Option<Located<PathBuf>>| named.as_ref().map(|file| directory.join(&file.value));
        let files = ClientFiles {
            ca: path(&self.ca),
            cert: path(&self.cert),
            key: path(&self.key),
            server_name: self.server_name.as_ref().map(|name| name.value.clone()),
            verify: self.verify,
        };
        let place_of = |part| match part {
            Part::Certificate => self.cert.as_ref().map(|file| file.place),
            Part::Key => self.key.as_ref().or(self.cert.as_ref()).map(|file| file.place),
            Part::Authorities => self.ca.as_ref().map(|file| file.place),
            Part::ServerName => self.server_name.as_ref().map(|name| name.place),
        };
        let read = ClientTls::read(files);
        read.map_err(|TlsError { part, what }| context.refuse(place_of(part).unwrap_or(place), what)).ok()
    }
}
