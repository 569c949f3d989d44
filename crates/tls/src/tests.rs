//! Tests with certificates made for them: what is refused, and who believes whom.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A directory with certificates in it, all signed by one authority.
struct Certificates {
    directory: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    fn new() -> Certificates {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let certificates = Certificates { directory: tempfile::tempdir().unwrap(), authority };
        certificates.write("ca.pem", &certificates.authority.pem());
        certificates
    }

    /// Writes `NAME.pem` and `NAME.key`.
    fn issue(&self, name: &str) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn server(&self, cert: &str, key: &str, client_ca: Option<&str>) -> Result<ServerTls, TlsError> {
        let key = (!key.is_empty()).then(|| self.path(key));
        let client_ca = client_ca.map(|file| self.path(file));
        ServerTls::read(ServerFiles { cert: self.path(cert), key, client_ca }, Protocols::Http2And1)
    }

    fn client(&self, change: impl FnOnce(&mut ClientFiles)) -> ClientTls {
        let mut files = ClientFiles { ca: Some(self.path("ca.pem")), ..ClientFiles::default() };
        change(&mut files);
        ClientTls::read(files).unwrap()
    }

    /// What is wrong with a listener's files, without the directory.
    fn refused(&self, cert: &str, key: &str, client_ca: Option<&str>) -> (Part, String) {
        let TlsError { part, what } = self.server(cert, key, client_ca).unwrap_err();
        (part, what.replace(&format!("{}/", self.directory.path().display()), ""))
    }
}

/// Whether two sides that agree can say a word to each other.
async fn meet(server: &ServerTls, client: &ClientTls, name: &str) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = async {
        let mut stream = server.accept(listener.accept().await.unwrap().0).await?;
        let mut word = [0; 4];
        stream.read_exact(&mut word).await?;
        stream.write_all(&word).await?;
        stream.flush().await
    };
    let asking = async {
        let tcp = TcpStream::connect(address).await.unwrap();
        let mut stream = client.connect(tcp, &ServerIdentity::of(name).unwrap()).await?;
        stream.write_all(b"word").await?;
        stream.flush().await?;
        let mut word = [0; 4];
        stream.read_exact(&mut word).await?;
        assert_eq!(&word, b"word");
        Ok::<_, std::io::Error>(())
    };
    let (served, asked) = tokio::join!(serving, asking);
    asked.map_err(|error| error.to_string())?;
    served.map_err(|error| error.to_string())
}

#[test]
fn files_that_do_not_serve_are_refused_by_name() {
    let files = Certificates::new();
    files.issue("one.internal");
    files.issue("two.internal");
    files.write("empty", "");
    files.write("broken", "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n");
    files.write("locked", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    assert!(files.server("one.internal.pem", "one.internal.key", Some("ca.pem")).is_ok());
    let cases = [
        (("none", "empty", None), Part::Certificate, "the certificate none cannot be read: No such file or directory"),
        (("one.internal.key", "", None), Part::Certificate, "one.internal.key holds no certificate in PEM"),
        (("broken", "", None), Part::Certificate, "broken is no PEM:"),
        (("one.internal.pem", "", None), Part::Key, "one.internal.pem holds no private key in PEM"),
        (("one.internal.pem", "none", None), Part::Key, "the private key none cannot be read"),
        (("one.internal.pem", "locked", None), Part::Key, "locked its private key is encrypted"),
        (
            ("one.internal.pem", "two.internal.key", None),
            Part::Key,
            "the private key of two.internal.key is not the key of the certificate in one.internal.pem",
        ),
        (
            ("one.internal.pem", "one.internal.key", Some("empty")),
            Part::Authorities,
            "empty holds no authority's certificate in PEM",
        ),
    ];
    for ((cert, key, client_ca), part, what) in cases {
        let refused = files.refused(cert, key, client_ca);
        assert_eq!(refused.0, part, "{}", refused.1);
        assert!(refused.1.starts_with(what), "{}", refused.1);
    }
    let name = ClientFiles { server_name: Some("a b".into()), ..ClientFiles::default() };
    assert_eq!(ClientTls::read(name).unwrap_err().part, Part::ServerName);
}

#[test]
fn key_and_certificate_may_lie_in_one_file() {
    let files = Certificates::new();
    files.issue("one.internal");
    let read = |name| std::fs::read_to_string(files.path(name)).unwrap();
    files.write("both.pem", &(read("one.internal.key") + &read("one.internal.pem")));
    assert!(files.server("both.pem", "", None).is_ok());
}

#[test]
fn what_stood_in_the_files_makes_the_difference() {
    let files = Certificates::new();
    files.issue("one.internal");
    let before = files.server("one.internal.pem", "one.internal.key", None).unwrap();
    assert_eq!(before, files.server("one.internal.pem", "one.internal.key", None).unwrap());
    assert_ne!(before, files.server("one.internal.pem", "one.internal.key", Some("ca.pem")).unwrap());
    files.issue("one.internal");
    assert_ne!(before, files.server("one.internal.pem", "one.internal.key", None).unwrap());
    assert_eq!(before.files().count(), 2);
}

#[test]
fn a_certificate_tells_until_when_it_counts() {
    let files = Certificates::new();
    let mut params = CertificateParams::new(vec!["old.internal".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2020, 2, 1));
    let key = KeyPair::generate().unwrap();
    files.write("old.pem", &params.signed_by(&key, &files.authority).unwrap().pem());
    files.write("old.key", &key.serialize_pem());
    let validity = files.server("old.pem", "old.key", None).unwrap().validity().unwrap();
    let until = SystemTime::UNIX_EPOCH + Duration::from_secs(1_580_515_200);
    assert_eq!(validity.until, until);
    let complaint = validity.complaint(until + Duration::from_secs(86_400), Duration::ZERO);
    assert_eq!(complaint.as_deref(), Some("has expired 1 days ago"));
}

#[tokio::test]
async fn until_when_a_servers_certificate_counts_is_known_whether_it_is_believed_or_not() {
    const DAY: Duration = Duration::from_secs(86_400);
    let files = Certificates::new();
    let shown = async |from: SystemTime, until: SystemTime| {
        let mut params = CertificateParams::new(vec!["one.internal".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (from.into(), until.into());
        let key = KeyPair::generate().unwrap();
        files.write("one.pem", &params.signed_by(&key, &files.authority).unwrap().pem());
        files.write("one.key", &key.serialize_pem());
        let (server, client) = (files.server("one.pem", "one.key", None).unwrap(), files.client(|_| {}));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let identity = ServerIdentity::of("one.internal").unwrap();
        let accepting = async { server.accept(listener.accept().await.unwrap().0).await };
        let (_, connected) = tokio::join!(accepting, client.connect(tcp, &identity));
        match connected {
            Ok(stream) => (true, stream.peer_validity().unwrap()),
            Err(error) => (false, Validity::of_refused(&error).unwrap()),
        }
    };
    // Certificates tell whole seconds.
    let today = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let today = SystemTime::UNIX_EPOCH + Duration::from_secs(today);
    assert_eq!(
        shown(today - DAY, today + 3 * DAY).await,
        (true, Validity { from: today - DAY, until: today + 3 * DAY })
    );
    let (believed, validity) = shown(today - 9 * DAY, today - 2 * DAY).await;
    assert_eq!((believed, validity.until), (false, today - 2 * DAY));
    let (believed, validity) = shown(today + DAY, today + 9 * DAY).await;
    assert_eq!((believed, validity.from), (false, today + DAY));
    let other = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    assert_eq!(Validity::of_refused(&other), None);
}

#[tokio::test]
async fn a_server_is_believed_by_its_authority_and_its_name() {
    let (files, others) = (Certificates::new(), Certificates::new());
    files.issue("one.internal");
    let server = files.server("one.internal.pem", "one.internal.key", None).unwrap();
    let client = files.client(|_| {});
    assert_eq!(meet(&server, &client, "one.internal").await, Ok(()));
    assert_eq!(meet(&server, &client, "ONE.internal.").await, Ok(()));
    let error = meet(&server, &client, "two.internal").await.unwrap_err();
    assert!(error.contains("not valid for name"), "{error}");
    let error = meet(&server, &others.client(|_| {}), "one.internal").await.unwrap_err();
    assert!(error.contains("invalid peer certificate"), "{error}");
    let anybody = others.client(|files| (files.ca, files.verify) = (None, false));
    assert_eq!(meet(&server, &anybody, "two.internal").await, Ok(()));
}

#[tokio::test]
async fn a_client_is_let_in_by_its_authority() {
    let (files, others) = (Certificates::new(), Certificates::new());
    files.issue("one.internal");
    files.issue("router");
    others.issue("router");
    let server = files.server("one.internal.pem", "one.internal.key", Some("ca.pem")).unwrap();
    let showing = |from: &Certificates| {
        let (cert, key) = (from.path("router.pem"), from.path("router.key"));
        files.client(|files| (files.cert, files.key) = (Some(cert), Some(key)))
    };
    assert_eq!(meet(&server, &showing(&files), "one.internal").await, Ok(()));
    assert!(meet(&server, &files.client(|_| {}), "one.internal").await.is_err());
    assert!(meet(&server, &showing(&others), "one.internal").await.is_err());
}
