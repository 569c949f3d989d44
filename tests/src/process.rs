//! The real binary as a child process: started, read, signalled, and gone with the test.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long a command may take to say that it is ready, on a machine that is busy with other things too.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A command that serves until it is told to stop. Killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    command: String,
    url: String,
    admin: Option<String>,
    output: Arc<Mutex<String>>,
}

/// How a command ended by itself.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Running {
    /// Starts `isotherm` with these arguments and waits for its line `ready URL`.
    pub fn start<S: AsRef<str>>(arguments: &[S]) -> Running {
        Self::start_with(arguments, |_| {})
    }

    /// As [`Running::start`], with the command changed first, for instance its environment.
    pub fn start_with<S: AsRef<str>>(arguments: &[S], change: impl FnOnce(&mut Command)) -> Running {
        let mut command = isotherm(arguments);
        change(&mut command);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Running {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} did not start: {error}"));
        let output = Arc::new(Mutex::new(String::new()));
        let lines = collect_lines(&mut child, &output);
        let mut running = Running { child, command: format!("{command:?}"), url: String::new(), admin: None, output };
        running.wait_until_ready(&lines);
        running
    }

    /// As [`Running::start`], with a listening socket handed over as systemd does it.
    pub fn start_on<S: AsRef<str>>(socket: &TcpListener, arguments: &[S]) -> Running {
        let socket = socket.try_clone().expect("a descriptor");
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@" 3<&0 0</dev/null"#]);
        shell.arg(binary()).args(arguments.iter().map(AsRef::as_ref)).stdin(OwnedFd::from(socket));
        Self::spawn(shell)
    }

    /// Where the data plane, or the engine, is served: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where the admin plane is served.
    pub fn admin(&self) -> &str {
        self.admin.as_deref().unwrap_or_else(|| panic!("{} named no admin plane\n{}", self.command, self.output()))
    }

    /// The port of [`Running::url`].
    pub fn port(&self) -> u16 {
        let port = self.url.rsplit(':').next().and_then(|port| port.parse().ok());
        port.unwrap_or_else(|| panic!("{} has no port", self.url))
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Memory that is the process's own, in KiB; pages of its program, which come as they are first needed, are not.
    pub fn memory_kib(&self) -> u64 {
        self.status_kib("RssAnon:")
    }

    /// All of its memory that is there, in KiB.
    pub fn resident_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// A figure of Linux's about the living process.
    fn status_kib(&self, field: &str) -> u64 {
        let path = format!("/proc/{}/status", self.process_id());
        let status = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let kib =
            status.lines().find_map(|line| line.strip_prefix(field)).and_then(|kib| kib.split_whitespace().next());
        kib.and_then(|kib| kib.parse().ok()).unwrap_or_else(|| panic!("{path} tells no {field} the process has ended"))
    }

    /// What it printed so far, both streams as they came.
    pub fn output(&self) -> String {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// What asks for the configuration to be read again.
    pub fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// kill −9: the process is gone when this returns.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for the process to end by itself.
    pub fn wait(&mut self, within: Duration) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status;
            }
            assert!(started.elapsed() < within, "{} still runs after {within:?}\n{}", self.command, self.output());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn wait_until_ready(&mut self, lines: &Receiver<String>) {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let mut words = line.split_whitespace();
                    if words.next() == Some("admin") {
                        self.admin = words.next().map(str::to_owned);
                    }
                    if let Some(url) = line.strip_prefix("ready ") {
                        self.url = url.trim().to_owned();
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("{} is not ready\n{}", self.command, self.output()),
                Err(RecvTimeoutError::Disconnected) => panic!("{} ended\n{}", self.command, self.output()),
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let process = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let sent = process.map(|process| kill_process(process, signal));
        assert!(matches!(sent, Some(Ok(()))), "{signal:?} to {}: {sent:?}", self.command);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.command, self.output());
        }
    }
}

/// Runs `isotherm` with these arguments to its end, at most a minute.
pub fn run<S: AsRef<str>>(arguments: &[S]) -> Ended {
    let mut command = isotherm(arguments);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{command:?} did not start: {error}"));
    let stdout = read_all(child.stdout.take());
    let stderr = read_all(child.stderr.take());
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            _ if started.elapsed() > Duration::from_secs(60) => {
                let _ = child.kill();
                panic!("{command:?} did not end");
            }
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let text = |reader: std::thread::JoinHandle<String>| reader.join().unwrap_or_default();
    Ended { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// The command, undisturbed by what the developer's own environment says.
fn isotherm<S: AsRef<str>>(arguments: &[S]) -> Command {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ISOTHERM_") {
            command.env_remove(name);
        }
    }
    command.args(arguments.iter().map(AsRef::as_ref)).stdin(Stdio::null());
    command
}

/// `ISOTHERM_BIN`, else the one that cargo built beside this test.
pub fn binary() -> PathBuf {
    if let Some(binary) = std::env::var_os("ISOTHERM_BIN") {
        return binary.into();
    }
    let test = std::env::current_exe().unwrap_or_default();
    let binary = test.parent().and_then(|folder| folder.parent()).map(|folder| folder.join("isotherm"));
    let binary = binary.unwrap_or_default();
    assert!(binary.is_file(), "{} is missing: `cargo build -p isotherm` makes it", binary.display());
    binary
}

/// Sends the lines of standard output, and keeps all that is printed.
fn collect_lines(child: &mut Child, output: &Arc<Mutex<String>>) -> Receiver<String> {
    let (sender, lines) = channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    ];
    for (index, stream) in streams.into_iter().enumerate() {
        let Some(stream) = stream else { continue };
        let sender = (index == 0).then(|| sender.clone());
        let output = Arc::clone(output);
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let mut kept = output.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_str(&line);
                kept.push('\n');
                if let Some(sender) = &sender {
                    let _ = sender.send(line);
                }
            }
        });
    }
    lines
}

fn read_all(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
