//! The side that clients connect to: a certificate to show, and whose clients' certificates are taken.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{ServerConfig, version};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::material::{Part, Reader, key_file, mismatched, wrong};
use crate::{Stream, TlsError, Validity, provider};

/// What a listener speaks within TLS, as it tells its clients (ALPN).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocols {
    /// HTTP/2, else HTTP/1.1.
    Http2And1,
    /// HTTP/1.1.
    Http1,
}

/// Where a listener's certificate lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFiles {
    /// The certificate and those by which it was signed, in PEM.
    pub cert: PathBuf,
    /// Its private key; in the certificate's file where none is named.
    pub key: Option<PathBuf>,
    /// Whose clients are let in; anyone where none is named.
    pub client_ca: Option<PathBuf>,
}

/// A listener's side of TLS, ready for use. Two are equal when the same stood in the same files.
#[derive(Clone)]
pub struct ServerTls {
    acceptor: TlsAcceptor,
    files: Arc<ServerFiles>,
    digest: [u8; 32],
    validity: Option<Validity>,
}

impl ServerTls {
    /// Reads the files and checks that they fit together.
    ///
    /// # Errors
    ///
    /// When a file can't be read or does not hold what it should, or when the key is another certificate's. A
    /// certificate that is out of date is none: see [`ServerTls::validity`].
    pub fn read(files: ServerFiles, protocols: Protocols) -> Result<ServerTls, TlsError> {
        let mut reader = Reader::default();
        let key_file = key_file(&files.cert, &files.key);
        let (chain, key) = (reader.chain(&files.cert)?, reader.key(key_file)?);
        let validity = chain.first().and_then(|certificate| Validity::of(certificate));
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])
            .map_err(|error| wrong(Part::Certificate, error.to_string()))?;
        let builder = match &files.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let roots = Arc::new(reader.authorities(file)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
                let unusable = |error| wrong(Part::Authorities, format!("{}: {error}", file.display()));
                builder.with_client_cert_verifier(verifier.map_err(unusable)?)
            }
        };
        let with_key = builder.with_single_cert(chain, key);
        let mut config = with_key.map_err(|error| mismatched(&files.cert, key_file, &error))?;
        config.alpn_protocols = match protocols {
            Protocols::Http2And1 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Protocols::Http1 => vec![b"http/1.1".to_vec()],
        };
        // Sessions are resumed without keeping anything of them here.
        match rustls::crypto::ring::Ticketer::new() {
            Ok(ticketer) => config.ticketer = ticketer,
            Err(error) => tracing::warn!(%error, "TLS sessions are not resumed"),
        }
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(ServerTls { acceptor, files: Arc::new(files), digest: reader.digest(), validity })
    }

    /// Agrees with a client on keys. Takes as long as the client does: the caller bounds it.
    ///
    /// # Errors
    ///
    /// When the client leaves, speaks no TLS, no version or cipher of ours, or shows no certificate that it should have.
    pub async fn accept(&self, tcp: TcpStream) -> io::Result<Stream> {
        let session = self.acceptor.accept(tcp).await?;
        Ok(Stream::Tls(Box::new(session.into())))
    }

    /// The files that it was read from, to be watched for changes.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let ServerFiles { cert, key, client_ca } = &*self.files;
        std::iter::once(cert).chain(key).chain(client_ca).map(PathBuf::as_path)
    }

    /// From when until when the certificate counts, where that can be read.
    pub fn validity(&self) -> Option<Validity> {
        self.validity
    }

    /// Whether clients have to show a certificate.
    pub fn asks_for_certificates(&self) -> bool {
        self.files.client_ca.is_some()
    }
}

impl PartialEq for ServerTls {
    fn eq(&self, other: &ServerTls) -> bool {
        self.digest == other.digest && self.files == other.files
    }
}

impl Eq for ServerTls {}

/// Tells the files, and nothing of what they hold.
impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerTls").field(&self.files).finish()
    }
}
