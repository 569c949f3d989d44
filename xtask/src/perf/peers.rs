//! What is measured: Isotherm and its peers, each started and seen to answer, or skipped by name with the reason.

mod debian;
mod isotherm;
mod wheels;

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::plan::Plan;
use super::process::Process;
use crate::failure::Failure;
use crate::machine;

/// A router that runs.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) version: String,
    /// How it is set up, in words.
    pub(crate) tuning: &'static str,
    /// `HOST:PORT`.
    pub(crate) authority: String,
    pub(crate) process: Process,
}

impl Subject {
    /// Whether it answers some dozens of requests a second.
    pub(crate) fn is_slow(&self) -> bool {
        self.name == "litellm"
    }
}

/// What could not be measured, and why.
pub(crate) type Skipped = (&'static str, String);

/// What starting needs to know.
struct Place<'p> {
    /// The engines.
    urls: &'p [String],
    /// Our own binary.
    isotherm: &'p Path,
    /// Where peers are installed and keep what they write.
    folder: PathBuf,
}

type Start = fn(&Place<'_>) -> Result<Subject, Failure>;

const ALL: [(&str, Start); 8] = [
    ("isotherm", isotherm::prefix_aware),
    ("isotherm-adaptive", isotherm::adaptive),
    ("nginx", debian::nginx),
    ("haproxy", debian::haproxy),
    ("vllm-router", wheels::vllm_router),
    ("sglang-router", wheels::sglang_router),
    ("smg", wheels::smg),
    ("litellm", wheels::litellm),
];

/// How long a router may take to answer its first request: Python reads many modules before, longer on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(180);

/// Starts all that are wanted.
pub(crate) fn start(plan: &Plan, urls: &[String], isotherm: &Path) -> (Vec<Subject>, Vec<Skipped>) {
    let place = Place { urls, isotherm, folder: machine::target().join("perf") };
    let (mut subjects, mut skipped) = (Vec::new(), Vec::new());
    for (name, start) in ALL {
        if !(plan.wants(name) || plan.wants_all() && wheels::is_installed(&place.folder, name)) {
            let why = if name == "litellm" { "only with --litellm" } else { "not asked for" };
            skipped.push((name, why.to_owned()));
            continue;
        }
        match start(&place).and_then(wait_until_ready) {
            Ok(subject) => subjects.push(subject),
            Err(failure) => {
                println!("skipped: {name}: {failure}");
                skipped.push((name, failure.to_string()));
            }
        }
    }
    (subjects, skipped)
}

/// Until it takes connections. What it then answers, the load generator checks.
fn wait_until_ready(mut subject: Subject) -> Result<Subject, Failure> {
    let started = Instant::now();
    while TcpStream::connect(&subject.authority).is_err() {
        if subject.process.has_ended() {
            return Err(Failure::Failed(format!(
                "it ended at once; its output is in {}",
                log_of(subject.name).display()
            )));
        }
        if started.elapsed() > READY_WITHIN {
            return Err(Failure::Failed(format!("it took no connection within {READY_WITHIN:?}")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    // Routers that look at their engines first do so within a second or two.
    std::thread::sleep(Duration::from_secs(2));
    Ok(subject)
}

fn log_of(name: &str) -> PathBuf {
    machine::target().join("perf").join(format!("{name}.log"))
}

/// A port that nobody listens on at this moment.
fn free_port() -> Result<u16, Failure> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| Failure::Failed(format!("no free port: {error}")))
}
