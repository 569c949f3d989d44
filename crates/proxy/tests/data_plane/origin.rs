//! An instance under script: it records what it is asked and answers byte by byte as it is told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Notify;

/// One step of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Sends bytes as they are.
    Send(Vec<u8>),
    /// Sends bytes one at a time, each in a packet of its own.
    Drip(Vec<u8>),
    /// Waits.
    Pause(Duration),
    /// Waits for leave.
    Wait(Arc<Notify>),
    /// Ends the connection.
    Close,
    /// Never does anything again.
    Hang,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The connection that it came on, counted from 0.
    pub(crate) connection: usize,
    /// The request line.
    pub(crate) line: String,
    /// Names in lower case, and values.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// The values of a header, joined.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> =
            self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

type Script = dyn Fn(&Seen) -> Vec<Step> + Send + Sync;

#[derive(Default)]
struct Log {
    seen: Vec<Seen>,
    connections: usize,
    /// How many connections were closed by the router within an answer.
    left: usize,
    /// How many connections this one has closed.
    closed: usize,
}

/// A scripted instance.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Log>>,
    changed: Arc<Notify>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Origin {
    /// Serves by a script, which is asked for the steps of every answer.
    pub(crate) async fn start(script: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Origin {
        Origin::start_at("127.0.0.1:0".parse().unwrap(), script).await
    }

    /// Like [`Origin::start`], at a known address.
    pub(crate) async fn start_at(
        address: SocketAddr,
        script: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static,
    ) -> Origin {
        let listener = listen(address);
        let (log, changed) = (Arc::new(Mutex::new(Log::default())), Arc::new(Notify::new()));
        let address = listener.local_addr().unwrap();
        let script: Arc<Script> = Arc::new(script);
        let serving = tokio::spawn(accept(listener, script, Arc::clone(&log), Arc::clone(&changed)));
        Origin { address, log, changed, serving }
    }

    /// Always the same answer.
    pub(crate) async fn answering(answer: &str) -> Origin {
        let steps = vec![Step::Send(answer.as_bytes().to_vec())];
        Origin::start(move |_| steps.clone()).await
    }

    /// Where it is reached.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.log.lock().unwrap().seen.clone()
    }

    /// How many connections it has accepted.
    pub(crate) fn connections(&self) -> usize {
        self.log.lock().unwrap().connections
    }

    /// Waits until it was asked so many times.
    pub(crate) async fn asked(&self, times: usize) {
        self.until(|log| log.seen.len() >= times).await;
    }

    /// Waits until the router has closed a connection within an answer.
    pub(crate) async fn left(&self) {
        self.until(|log| log.left > 0).await;
    }

    /// Waits until it has closed so many connections itself.
    pub(crate) async fn closed(&self, connections: usize) {
        self.until(|log| log.closed >= connections).await;
    }

    async fn until(&self, condition: impl Fn(&Log) -> bool) {
        let waiting = async {
            loop {
                let notified = self.changed.notified();
                if condition(&self.log.lock().unwrap()) {
                    return;
                }
                notified.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("the origin waits in vain");
    }
}

async fn accept(listener: TcpListener, script: Arc<Script>, log: Arc<Mutex<Log>>, changed: Arc<Notify>) {
    let mut answering = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        stream.set_nodelay(true).unwrap();
        let connection = {
            let mut log = log.lock().unwrap();
            log.connections += 1;
            log.connections - 1
        };
        changed.notify_waiters();
        let (script, log, changed) = (Arc::clone(&script), Arc::clone(&log), Arc::clone(&changed));
        answering.spawn(async move {
            let mut stream = stream;
            let mut read = Vec::new();
            while let Some(seen) = read_request(&mut stream, &mut read, connection).await {
                log.lock().unwrap().seen.push(seen.clone());
                changed.notify_waiters();
                match answer(&mut stream, script(&seen)).await {
                    Ended::Whole => {}
                    Ended::Closed => {
                        drop(stream);
                        log.lock().unwrap().closed += 1;
                        changed.notify_waiters();
                        return;
                    }
                    Ended::Left => {
                        log.lock().unwrap().left += 1;
                        changed.notify_waiters();
                        return;
                    }
                }
            }
        });
    }
}

enum Ended {
    Whole,
    Closed,
    Left,
}

async fn answer(stream: &mut TcpStream, steps: Vec<Step>) -> Ended {
    let (mut reader, mut writer) = stream.split();
    let stepping = async {
        for step in steps {
            let sent = match step {
                Step::Send(bytes) => writer.write_all(&bytes).await,
                Step::Drip(bytes) => {
                    for byte in bytes {
                        if writer.write_all(&[byte]).await.is_err() {
                            return Ended::Left;
                        }
                        tokio::task::yield_now().await;
                    }
                    Ok(())
                }
                Step::Pause(length) => {
                    tokio::time::sleep(length).await;
                    Ok(())
                }
                Step::Wait(leave) => {
                    leave.notified().await;
                    Ok(())
                }
                Step::Close => return Ended::Closed,
                Step::Hang => std::future::pending().await,
            };
            if sent.is_err() {
                return Ended::Left;
            }
        }
        Ended::Whole
    };
    let mut byte = [0; 1];
    tokio::select! {
        biased;
        ended = stepping => ended,
        // The router sends nothing behind a request: whatever comes is its end.
        read = reader.read(&mut byte) => match read {
            Ok(0) | Err(_) => Ended::Left,
            Ok(_) => panic!("bytes behind a request"),
        },
    }
}

/// An address at which nobody listens, and nobody else will: it is taken for as long as the test's process lives.
pub(crate) fn nobody() -> SocketAddr {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    std::mem::forget(socket);
    address
}

/// With room for as many that wait to be accepted as real engines have.
fn listen(address: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket.listen(2_048).unwrap()
}

async fn read_request(stream: &mut TcpStream, read: &mut Vec<u8>, connection: usize) -> Option<Seen> {
    let end_of_head = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&read[..end_of_head]).into_owned();
    let mut lines = head.lines();
    let line = lines.next().unwrap().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    while read.len() < end_of_head + length {
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
    let body = read[end_of_head..end_of_head + length].to_vec();
    read.drain(..end_of_head + length);
    Some(Seen { connection, line, headers, body })
}

/// A JSON answer.
pub(crate) fn json(status: u16, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// The head of a stream of events.
pub(crate) const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

/// One chunk of a chunked body.
pub(crate) fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// The end of a chunked body.
pub(crate) const END: &str = "0\r\n\r\n";
