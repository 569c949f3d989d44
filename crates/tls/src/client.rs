//! The side that connects to instances: whose certificates are believed, and which one to show.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore, version};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::material::{Part, Reader, key_file, mismatched, wrong};
use crate::unverified::Unverified;
use crate::{Stream, TlsError, Validity, provider};

static NEXT_SERIAL: AtomicU64 = AtomicU64::new(1);

/// What TLS to instances is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFiles {
    /// Who has to have signed their certificates, in PEM; this machine's authorities where none is named.
    pub ca: Option<PathBuf>,
    /// The certificate to show them.
    pub cert: Option<PathBuf>,
    /// Its private key; in the certificate's file where none is named.
    pub key: Option<PathBuf>,
    /// The name that their certificates have to be for; the URL's host where none is named.
    pub server_name: Option<String>,
    /// Whether their certificates are checked at all.
    pub verify: bool,
}

impl Default for ClientFiles {
    fn default() -> ClientFiles {
        ClientFiles { ca: None, cert: None, key: None, server_name: None, verify: true }
    }
}

/// The router's side of TLS to instances, ready for use; cheap to clone. Two are equal when the same stood in the same
/// files.
#[derive(Clone)]
pub struct ClientTls(Arc<Inner>);

struct Inner {
    connector: TlsConnector,
    server_name: Option<ServerIdentity>,
    files: ClientFiles,
    digest: [u8; 32],
    serial: u64,
    validity: Option<Validity>,
    /// Whether there is anybody whose signature is believed.
    trusts_nobody: bool,
}

/// Whom an instance has to prove to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity(ServerName<'static>);

impl ServerIdentity {
    /// A name or an address, if it can stand in a certificate. A name's last dot is left out, as in certificates.
    pub fn of(host: &str) -> Option<ServerIdentity> {
        let host = host.strip_suffix('.').unwrap_or(host);
        ServerName::try_from(host.to_owned()).ok().map(ServerIdentity)
    }
}

impl ClientTls {
    /// Reads the files and checks that they fit together.
    ///
    /// # Errors
    ///
    /// When a file can't be read or does not hold what it should, when the key is another certificate's, or when the
    /// server's name can't stand in a certificate.
    pub fn read(files: ClientFiles) -> Result<ClientTls, TlsError> {
        let mut reader = Reader::default();
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])
            .map_err(|error| wrong(Part::Authorities, error.to_string()))?;
        let mut trusts_nobody = false;
        let builder = if files.verify {
            let roots = match &files.ca {
                Some(file) => reader.authorities(file)?,
                None => of_this_machine(),
            };
            trusts_nobody = roots.is_empty();
            builder.with_root_certificates(roots)
        } else {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider())))
        };
        let mut validity = None;
        let mut config = match &files.cert {
            None => builder.with_no_client_auth(),
            Some(cert) => {
                let key_file = key_file(cert, &files.key);
                let (chain, key) = (reader.chain(cert)?, reader.key(key_file)?);
                validity = chain.first().and_then(|certificate| Validity::of(certificate));
                builder.with_client_auth_cert(chain, key).map_err(|error| mismatched(cert, key_file, &error))?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let server_name =
            match &files.server_name {
                None => None,
                Some(name) => Some(ServerIdentity::of(name).ok_or_else(|| {
                    wrong(Part::ServerName, format!("{name:?} is neither a host's name nor an address"))
                })?),
            };
        Ok(ClientTls(Arc::new(Inner {
            connector: TlsConnector::from(Arc::new(config)),
            server_name,
            files,
            digest: reader.digest(),
            serial: NEXT_SERIAL.fetch_add(1, Ordering::Relaxed),
            validity,
            trusts_nobody,
        })))
    }

    /// With this machine's authorities and no certificate of one's own, as where nothing is configured. Read once.
    pub fn of_this_machine() -> ClientTls {
        static OF_THIS_MACHINE: OnceLock<ClientTls> = OnceLock::new();
        let read = || ClientTls::read(ClientFiles::default());
        OF_THIS_MACHINE.get_or_init(|| read().unwrap_or_else(|error| unreachable!("without files: {error}"))).clone()
    }

    /// Connects within a TCP connection, to whoever proves to be `identity`. Takes as long as the other side does: the
    /// caller bounds it.
    ///
    /// # Errors
    ///
    /// When the other side leaves, speaks no TLS, or its certificate is not to be believed.
    pub async fn connect(&self, tcp: TcpStream, identity: &ServerIdentity) -> io::Result<Stream> {
        let session = self.0.connector.connect(identity.0.clone(), tcp).await?;
        Ok(Stream::Tls(Box::new(session.into())))
    }

    /// The identity that was configured, whatever the URL says.
    pub fn server_name(&self) -> Option<&ServerIdentity> {
        self.0.server_name.as_ref()
    }

    /// A number that no other one of this process has: connections made by another are not to be used.
    pub fn serial(&self) -> u64 {
        self.0.serial
    }

    /// The files that it was read from, to be watched for changes.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let ClientFiles { ca, cert, key, .. } = &self.0.files;
        ca.iter().chain(cert).chain(key).map(PathBuf::as_path)
    }

    /// From when until when the router's own certificate counts, where there is one and that can be read.
    pub fn validity(&self) -> Option<Validity> {
        self.0.validity
    }

    /// Whether certificates are checked.
    pub fn verifies(&self) -> bool {
        self.0.files.verify
    }

    /// Whether no certificate will ever be believed: none is named, and this machine has no authorities.
    pub fn trusts_nobody(&self) -> bool {
        self.0.trusts_nobody
    }
}

impl PartialEq for ClientTls {
    fn eq(&self, other: &ClientTls) -> bool {
        self.0.digest == other.0.digest && self.0.files == other.0.files
    }
}

impl Eq for ClientTls {}

/// Tells the files, and nothing of what they hold.
impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientTls").field(&self.0.files).finish()
    }
}

/// The authorities that this machine believes: those of its system, or of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
fn of_this_machine() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(%error, "an authority of this machine cannot be read");
    }
    // Some systems list certificates that are too old to be read.
    roots.add_parsable_certificates(found.certs);
    roots
}
