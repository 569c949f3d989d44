//! A thousand streams of one engine at once, thousands of clients that hardly say anything, and floods: what they cost
//! the others, and the router.

use std::sync::Arc;
use std::time::{Duration, Instant};

use isotherm_tests::{Metrics, Running, Stopwatch, eventually};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

const STREAMS: usize = 1_000;
const SLOW: usize = 2_000;
/// How long those may say nothing.
const SILENT_FOR: Duration = Duration::from_secs(5);
const EVENT: &str = "16\r\ndata: {\"choices\":[]}\n\n\r\n";
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// This process holds both ends of many connections.
fn raise_the_limit_of_descriptors() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// An engine that begins every stream at once. Those of `long` requests get an event a second and end together.
async fn engine(end: watch::Receiver<bool>) -> (String, tokio::task::JoinHandle<()>) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let listener = socket.listen(4_096).expect("a listener");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let serving = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let end = end.clone();
            connections.spawn(async move {
                let _ = serve(stream, end).await;
            });
        }
    });
    (url, serving)
}

async fn serve(mut stream: TcpStream, mut end: watch::Receiver<bool>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut read = vec![0; 16 * 1024];
    loop {
        let length = stream.read(&mut read).await?;
        let request = String::from_utf8_lossy(&read[..length]).into_owned();
        if request.is_empty() {
            return Ok(());
        }
        if request.starts_with("GET") {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await?;
            continue;
        }
        stream.write_all(format!("{HEAD}{EVENT}").as_bytes()).await?;
        while request.contains("long") && !*end.borrow() {
            tokio::select! {
                _ = end.changed() => {}
                () = tokio::time::sleep(Duration::from_secs(1)) => stream.write_all(EVENT.as_bytes()).await?,
            }
        }
        stream.write_all(b"0\r\n\r\n").await?;
    }
}

/// A connection that asks for one stream after the other.
struct Asking {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Asking {
    async fn to(url: &str) -> Asking {
        let stream = TcpStream::connect(url.trim_start_matches("http://")).await.expect("a connection");
        stream.set_nodelay(true).expect("an option");
        Asking { stream, read: Vec::new() }
    }

    /// Asks, and tells how long the first event took.
    async fn begin(&mut self, what: &str) -> Duration {
        let body = format!(r#"{{"messages":[{{"role":"user","content":"{what}"}}],"stream":true}}"#);
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\nhost: r\r\ncontent-length: {}\r\n\r\n", body.len());
        let asked = Instant::now();
        self.stream.write_all(format!("{head}{body}").as_bytes()).await.expect("sent");
        self.until("data: ").await;
        asked.elapsed()
    }

    /// Reads to the end of this text.
    async fn until(&mut self, end: &str) {
        loop {
            if let Some(at) = self.read.windows(end.len()).position(|window| window == end.as_bytes()) {
                self.read.drain(..at + end.len());
                return;
            }
            let read = self.stream.read_buf(&mut self.read).await.expect("an answer");
            assert!(read > 0, "{}", String::from_utf8_lossy(&self.read));
        }
    }

    /// The times to the first event of many requests, sorted.
    async fn measure(&mut self) -> Vec<Duration> {
        let mut times = Vec::new();
        for number in 0..200 {
            times.push(self.begin(&format!("short {number}")).await);
            self.until("\r\n0\r\n\r\n").await;
        }
        times.sort_unstable();
        times
    }
}

fn router(url: &str, options: &[&str]) -> Running {
    let instance = format!("engine={url}");
    let arguments = [&["serve", "--port", "0", "--admin-port", "0", "--instance", &instance], options].concat();
    Running::start(&arguments)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_streams_of_one_engine_run_at_once_and_hardly_delay_another() {
    raise_the_limit_of_descriptors();
    let (finish, end) = watch::channel(false);
    let (url, engine) = engine(end).await;
    let router = router(&url, &[]);
    let mut streams = Vec::new();
    for number in 0..STREAMS {
        let mut stream = Asking::to(router.url()).await;
        stream.begin(&format!("long {number}")).await;
        streams.push(stream);
    }
    assert_eq!(Metrics::read(router.admin()).await.in_flight(), STREAMS as f64);
    // Whatever else the machine does disturbs some rounds: what counts is what the router takes when it may.
    let (mut direct, mut through) = (Asking::to(&url).await, Asking::to(router.url()).await);
    let mut rounds = Vec::new();
    while rounds.len() < 20 {
        let (without, with) = (direct.measure().await, through.measure().await);
        let added = |rank: usize| with[rank].saturating_sub(without[rank]);
        rounds.push((added(100), added(198)));
        if added(100) < Duration::from_micros(300) && added(198) < Duration::from_millis(2) {
            break;
        }
    }
    let (p50, p99) = rounds[rounds.len() - 1];
    println!("added beside {STREAMS} streams: p50 {p50:?}, p99 {p99:?}, in round {}", rounds.len());
    assert!(p50 < Duration::from_micros(300) && p99 < Duration::from_millis(2), "{rounds:?}");
    finish.send_replace(true);
    for mut stream in streams {
        stream.until("\r\n0\r\n\r\n").await;
    }
    eventually("nothing is in flight", Duration::from_secs(10), async || {
        (Metrics::read(router.admin()).await.in_flight() == 0.0).then_some(())
    })
    .await;
    engine.abort();
}

fn descriptors(router: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", router.process_id())).expect("its descriptors").count()
}

/// The 99th of a hundred answers' times, sorted.
async fn nearly_slowest(router: &Running) -> Duration {
    let mut times = Vec::new();
    for number in 0..100 {
        let mut client = Asking::to(router.url()).await;
        times.push(client.begin(&format!("short {number}")).await);
    }
    times.sort_unstable();
    times[98]
}

/// The least of that within some time: whatever else the machine does disturbs some rounds.
async fn undisturbed(router: &Running, bound: Duration, within: Duration) -> Duration {
    let begun = Instant::now();
    let mut least = nearly_slowest(router).await;
    while least >= bound && begun.elapsed() < within {
        least = least.min(nearly_slowest(router).await);
    }
    least
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_clients_that_hardly_say_anything_are_closed_and_cost_nobody_anything() {
    raise_the_limit_of_descriptors();
    let (_finish, end) = watch::channel(false);
    let (url, engine) = engine(end).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("isotherm.yaml");
    let timeouts = format!("timeouts: {{ client_header: {}s }}\n", SILENT_FOR.as_secs());
    let endpoints = "endpoints: [{ name: chat, variants: [{ name: AllTraffic, instances: [{ url: \"URL\" }] }] }]\n";
    std::fs::write(&file, format!("auth: none\n{timeouts}{}", endpoints.replace("URL", &url))).expect("written");
    let router =
        Running::start(&["serve", "--port", "0", "--admin-port", "0", "--config", file.to_str().expect("a path")]);
    let before = nearly_slowest(&router).await;
    let (open, begun) = (descriptors(&router), Stopwatch::start());
    let said: [&[u8]; 4] = [b"", b"POST /v1/chat", b"POST / HTTP/1.1\r\nhost: r\r\nx: ", b"\x16\x03\x01\x02\0\x01\0"];
    let mut slow = Vec::new();
    for number in 0..SLOW {
        let mut stream = TcpStream::connect(router.url().trim_start_matches("http://")).await.expect("a connection");
        stream.write_all(said[number % said.len()]).await.expect("sent");
        slow.push(stream);
    }
    let bound = Duration::from_millis(50).max(2 * before);
    let beside = undisturbed(&router, bound, SILENT_FOR - Duration::from_secs(2)).await;
    assert!(beside < bound, "{beside:?} beside them, {before:?} before");
    for stream in &mut slow {
        let mut rest = Vec::new();
        let end = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "a connection stays");
    }
    let closed = begun.elapsed();
    assert!(closed < SILENT_FOR + Duration::from_secs(1) + beside * 20, "all are closed after {closed:?}");
    eventually("its descriptors are given back", Duration::from_secs(10), async || {
        (descriptors(&router) <= open + 4).then_some(())
    })
    .await;
    engine.abort();
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_http2_take_little_memory_and_delay_nobody() {
    let (_finish, end) = watch::channel(false);
    let (url, engine) = engine(end).await;
    let router = router(&url, &[]);
    nearly_slowest(&router).await;
    let (usual, before) = (nearly_slowest(&router).await, router.memory_kib());
    let head: &[u8] = &[0x82, 0x84, 0x86];
    let field = Arc::new([&[0x00, 0x01, b'x', 0x7f, 0x81, 0x1e][..], &[b'y'; 4_096][..]].concat());
    type Flood = Box<dyn Fn(u32) -> Vec<u8> + Send>;
    let floods: [(&str, Flood); 5] = [
        (
            "rapid reset",
            Box::new(move |n| [frame(1, 5, 2 * n + 1, head), frame(3, 0, 2 * n + 1, &[0, 0, 0, 8])].concat()),
        ),
        ("continuation", Box::new(move |n| if n == 0 { frame(1, 0, 1, head) } else { frame(9, 0, 1, &field) })),
        ("ping", Box::new(|_| frame(6, 0, 0, &[0; 8]))),
        ("settings", Box::new(|_| frame(4, 0, 0, &[0, 3, 0, 0, 0, 100]))),
        (
            "resets that it is made to send",
            Box::new(move |n| [frame(1, 5, 2 * n + 1, head), frame(8, 0, 2 * n + 1, &[0; 4])].concat()),
        ),
    ];
    for (name, flood) in floods {
        let mut stream = TcpStream::connect(router.url().trim_start_matches("http://")).await.expect("a connection");
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("sent");
        let _ = stream.write_all(&frame(4, 0, 0, &[])).await;
        // Nothing of what comes back is read.
        let flooding = async {
            for piece in 0..100_000 {
                if stream.write_all(&flood(piece)).await.is_err() {
                    return;
                }
            }
        };
        // The flood comes from this process, on the same two cores: what it takes from the others is in the measure, too.
        let flooding = tokio::time::timeout(Duration::from_secs(2), flooding);
        let bound = (2 * usual).max(Duration::from_millis(50));
        let (_, beside) = tokio::join!(flooding, undisturbed(&router, bound, Duration::from_secs(2)));
        assert!(beside <= bound, "{name}: {beside:?} beside it, {usual:?} before");
        let grown = router.memory_kib().saturating_sub(before);
        assert!(grown < 32 * 1024, "{name}: {grown} KiB");
    }
    engine.abort();
}
