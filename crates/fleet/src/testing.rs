//! What tests of this crate share: fleets from a few lines of configuration, and fake instances.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isotherm_config::{Config, Environment, Overrides};
use isotherm_telemetry::Metrics;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::{Clock, Fleet, Variant};

/// A configuration from its text.
pub(crate) fn config(yaml: &str) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("isotherm.yaml");
    std::fs::write(&path, yaml).unwrap();
    Config::load(Some(&path), &Environment::default(), &Overrides::default()).unwrap()
}

/// One endpoint `chat` with one variant `main`; `instances` are lines of YAML, each beginning with `- `.
pub(crate) fn one_variant(settings: &str, instances: &[&str]) -> Config {
    let instances = instances.join(", ");
    config(&format!("endpoints: [{{name: chat, variants: [{{name: main, {settings} instances: [{instances}]}}]}}]"))
}

/// The fleet of a configuration, with nothing running.
pub(crate) fn fleet(config: &Config) -> Fleet {
    Fleet::new(config, Arc::new(Metrics::new("0")), Clock::start())
}

/// The first variant of the default endpoint.
pub(crate) fn variant(fleet: &Fleet) -> Arc<Variant> {
    Arc::clone(&fleet.topology().default_endpoint().unwrap().variants()[0].variant)
}

/// How a fake instance answers a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// With this status and body.
    Http(u16, String),
    /// With these bytes, which may be anything.
    Raw(&'static str),
    /// Never.
    Nothing,
}

impl Reply {
    /// A listing of these models.
    pub(crate) fn models(ids: &[&str]) -> Reply {
        let objects: Vec<_> = ids.iter().map(|id| format!("{{\"id\":\"{id}\"}}")).collect();
        Reply::Http(200, format!("{{\"data\":[{}]}}", objects.join(",")))
    }

    pub(crate) fn status(status: u16) -> Reply {
        Reply::Http(status, String::new())
    }
}

/// Something that listens on loopback and answers as the test says; it ends when it is dropped.
pub(crate) struct FakeInstance {
    address: SocketAddr,
    replies: Arc<Mutex<HashMap<String, Reply>>>,
    asked: Arc<Mutex<Vec<String>>>,
    accepting: Option<JoinHandle<()>>,
}

impl FakeInstance {
    /// An instance that is well and lists one model, `m`.
    pub(crate) async fn start() -> FakeInstance {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let replies = [("/health", Reply::status(200)), ("/v1/models", Reply::models(&["m"]))];
        let mut fake = FakeInstance {
            address: listener.local_addr().unwrap(),
            replies: Arc::new(Mutex::new(replies.map(|(path, reply)| (path.to_owned(), reply)).into())),
            asked: Arc::default(),
            accepting: None,
        };
        fake.accept(listener);
        fake
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers a path so from now on.
    pub(crate) fn answer(&self, path: &str, reply: Reply) {
        self.replies.lock().insert(path.to_owned(), reply);
    }

    /// The heads of all requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }

    /// How often a path was asked for.
    pub(crate) fn times_asked(&self, path: &str) -> usize {
        self.asked.lock().iter().filter(|head| head.starts_with(&format!("GET {path} "))).count()
    }

    /// Listens no more: connections are refused.
    pub(crate) async fn stop(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            let _ = accepting.await;
        }
    }

    /// Listens again where it did.
    pub(crate) async fn restart(&mut self) {
        self.accept(TcpListener::bind(self.address).await.unwrap());
    }

    fn accept(&mut self, listener: TcpListener) {
        let (replies, asked) = (Arc::clone(&self.replies), Arc::clone(&self.asked));
        self.accepting = Some(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&replies), Arc::clone(&asked)));
            }
        }));
    }
}

impl Drop for FakeInstance {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
    }
}

async fn serve(mut stream: TcpStream, replies: Arc<Mutex<HashMap<String, Reply>>>, asked: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    asked.lock().push(head);
    let reply = replies.lock().get(&path).cloned().unwrap_or(Reply::status(404));
    let answer = match reply {
        Reply::Http(status, body) => format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
        Reply::Raw(bytes) => bytes.to_owned(),
        Reply::Nothing => return std::future::pending().await,
    };
    let _ = stream.write_all(answer.as_bytes()).await;
}

/// Waits until something is so; a test that waits for longer than 10 s has failed.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within 10 s: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
