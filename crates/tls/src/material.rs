//! What is read from PEM files: chains of certificates, private keys, trusted roots.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};

/// Which of the files something is wrong with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// One's own certificate.
    Certificate,
    /// The key to it.
    Key,
    /// What the other side's certificates have to be signed by.
    Authorities,
    /// The name that the other side's certificate has to be for.
    ServerName,
}

/// Something that TLS cannot be spoken with. Never tells what a key file holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct TlsError {
    /// Where the mistake is.
    pub part: Part,
    /// What is wrong, and what would be right.
    pub what: String,
}

/// Reads files, and remembers by a hash what they held.
#[derive(Default)]
pub(crate) struct Reader {
    digest: Sha256,
}

impl Reader {
    /// A hash over all that was read.
    pub(crate) fn digest(self) -> [u8; 32] {
        self.digest.finalize().into()
    }

    /// A certificate, and behind it those by which it was signed.
    pub(crate) fn chain(&mut self, file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        self.certificates(file, Part::Certificate, "certificate")
    }

    /// Certificates that others' have to be signed by.
    pub(crate) fn authorities(&mut self, file: &Path) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in self.certificates(file, Part::Authorities, "authority's certificate")? {
            roots.add(certificate).map_err(|error| {
                wrong(Part::Authorities, format!("{}: a certificate that cannot be read: {error}", file.display()))
            })?;
        }
        Ok(roots)
    }

    /// The first private key of a file, which may hold the certificate, too.
    pub(crate) fn key(&mut self, file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
        let text = self.read(file, Part::Key, "private key")?;
        PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
            let encrypted = text.windows(9).any(|window| window == b"ENCRYPTED");
            let why = match error {
                pem::Error::NoItemsFound if encrypted => {
                    "its private key is encrypted; the router has nobody to ask for a passphrase: \
                     `openssl pkey` writes one without"
                        .to_owned()
                }
                pem::Error::NoItemsFound => "holds no private key in PEM (PKCS #8, PKCS #1 or SEC 1)".to_owned(),
                error => format!("is no PEM: {error}"),
            };
            wrong(Part::Key, format!("{} {why}", file.display()))
        })
    }

    fn certificates(&mut self, file: &Path, part: Part, what: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let text = self.read(file, part, what)?;
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let certificates = read.map_err(|error| wrong(part, format!("{} is no PEM: {error}", file.display())))?;
        if certificates.is_empty() {
            return Err(wrong(part, format!("{} holds no {what} in PEM", file.display())));
        }
        Ok(certificates)
    }

    fn read(&mut self, file: &Path, part: Part, what: &str) -> Result<Vec<u8>, TlsError> {
        let text = std::fs::read(file)
            .map_err(|error| wrong(part, format!("the {what} {} cannot be read: {error}", file.display())))?;
        self.digest.update((text.len() as u64).to_le_bytes());
        self.digest.update(&text);
        Ok(text)
    }
}

pub(crate) fn wrong(part: Part, what: impl Into<String>) -> TlsError {
    TlsError { part, what: what.into() }
}

/// What is wrong with a certificate and its key together, in words.
pub(crate) fn mismatched(cert: &Path, key: &Path, error: &rustls::Error) -> TlsError {
    match error {
        rustls::Error::InconsistentKeys(_) => wrong(
            Part::Key,
            format!("the private key of {} is not the key of the certificate in {}", key.display(), cert.display()),
        ),
        error => wrong(
            Part::Certificate,
            format!("the certificate of {} and the key of {} cannot be used: {error}", cert.display(), key.display()),
        ),
    }
}

/// A key lies in the file of the certificate where no other is named.
pub(crate) fn key_file<'f>(cert: &'f Path, key: &'f Option<PathBuf>) -> &'f Path {
    key.as_deref().unwrap_or(cert)
}
