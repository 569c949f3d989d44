//! Certificates for a test: an authority of its own, and what it signs, as PEM files in a folder.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use isotherm_tls::{ClientFiles, ClientTls, Protocols, ServerFiles, ServerTls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A folder with `ca.pem`, and `NAME.pem` and `NAME.key` for each certificate that was issued.
pub struct Certificates {
    folder: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    pub fn in_folder(folder: &Path) -> Certificates {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("authority of {}", folder.display()));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(folder.join("ca.pem"), authority.pem()).expect("written");
        Certificates { folder: folder.to_owned(), authority }
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// A certificate for these host names or addresses. Written as a careful operator does it: each file whole, the key
    /// first.
    pub fn issue(&self, file: &str, names: &[&str]) {
        self.write(file, parameters(names));
    }

    /// The same, of yesterday, and until then.
    pub fn issue_until(&self, file: &str, names: &[&str], until: SystemTime) {
        let yesterday = SystemTime::now() - Duration::from_secs(86_400);
        let mut params = parameters(names);
        (params.not_before, params.not_after) = (yesterday.into(), until.into());
        self.write(file, params);
    }

    fn write(&self, file: &str, params: CertificateParams) {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.authority).expect("a certificate");
        for (ending, text) in [("key", key.serialize_pem()), ("pem", certificate.pem())] {
            let next = self.path(&format!("{file}.{ending}.next"));
            std::fs::write(&next, text).expect("written");
            std::fs::rename(&next, self.path(&format!("{file}.{ending}"))).expect("renamed");
        }
    }

    /// A client that believes this authority, and shows a certificate that was issued as `own`.
    pub fn client(&self, own: Option<&str>) -> ClientTls {
        let file = |ending: &str| own.map(|own| self.path(&format!("{own}.{ending}")));
        let files =
            ClientFiles { ca: Some(self.path("ca.pem")), cert: file("pem"), key: file("key"), ..Default::default() };
        ClientTls::read(files).expect("certificates")
    }

    /// A server that shows what was issued as `own`, to clients whose certificates this authority has signed, if
    /// `asks`.
    pub fn server(&self, own: &str, asks: bool) -> ServerTls {
        let files = ServerFiles {
            cert: self.path(&format!("{own}.pem")),
            key: Some(self.path(&format!("{own}.key"))),
            client_ca: asks.then(|| self.path("ca.pem")),
        };
        ServerTls::read(files, Protocols::Http1).expect("certificates")
    }
}

fn parameters(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).expect("names")
}

/// Tells the folder, and no key.
impl fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Certificates({})", self.folder.display())
    }
}

/// Ends TLS in front of a server that speaks in the clear. Gone when dropped.
#[derive(Debug)]
pub struct TlsFront {
    address: SocketAddr,
    accepting: JoinHandle<()>,
    agreed: Arc<AtomicUsize>,
}

impl TlsFront {
    /// In front of `http://HOST:PORT`.
    pub async fn before(url: &str, tls: ServerTls) -> TlsFront {
        let behind = url.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let agreed = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&agreed);
        let accepting = tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (tls, behind, counted) = (tls.clone(), behind.clone(), Arc::clone(&counted));
                tokio::spawn(async move {
                    let Ok(mut outside) = tls.accept(tcp).await else { return };
                    counted.fetch_add(1, Ordering::Relaxed);
                    let Ok(mut inside) = TcpStream::connect(behind).await else { return };
                    // How it ends is told by either side.
                    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                });
            }
        });
        TlsFront { address, accepting, agreed }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many clients have agreed on TLS so far.
    pub fn connections(&self) -> usize {
        self.agreed.load(Ordering::Relaxed)
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
