//! Thousands of streams at once through a real router: every one must end whole, and each may cost little memory.
//! `cargo xtask streams` builds and runs it; engines and clients are processes of their own.

mod clients;
mod engine;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use isotherm_tests::{Metrics, Running};

const ENGINES: usize = 4;
/// Processes that ask.
const CLIENTS: usize = 2;
/// One event a second for each stream.
const GAP: Duration = Duration::from_secs(1);
/// How long another process of this program may take to say what it has to.
const LONGEST_SILENCE: Duration = Duration::from_secs(120);
/// What a stream may cost beside its connection to the engine, in KiB of the router's resident memory.
const MOST_KIB: f64 = 64.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.to_string()),
    };
    match arguments.as_slice() {
        ["engine"] => {
            runtime.block_on(engine::serve(GAP)).map_or_else(|error| fail(&error.to_string()), |()| ExitCode::SUCCESS)
        }
        ["clients", url, streams, tokens] => match (streams.parse(), tokens.parse()) {
            (Ok(streams), Ok(tokens)) => runtime.block_on(clients::ask(url, streams, tokens)),
            _ => fail("usage: streams clients URL STREAMS TOKENS"),
        },
        [streams] => match streams.parse() {
            Ok(streams) => runtime.block_on(measure(streams)),
            Err(_) => fail("usage: streams STREAMS"),
        },
        _ => fail("usage: streams STREAMS"),
    }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(2)
}

async fn measure(streams: usize) -> ExitCode {
    let engines: Vec<Helper> = (0..ENGINES).map(|_| Helper::start(&["engine"])).collect();
    let mut arguments: Vec<String> = ["serve", "--port", "0", "--admin-port", "0"].map(str::to_owned).into();
    arguments.extend(["--strategy", "least-outstanding-requests"].map(str::to_owned));
    for engine in &engines {
        arguments.extend(["--instance".to_owned(), engine.first_line.clone()]);
    }
    let router = Running::start(&arguments);
    // Long enough that the first streams still run when the last have begun.
    let tokens = 30 + streams / 500;
    println!(
        "{streams} streams of {tokens} s through {}, {ENGINES} engines, {CLIENTS} clients over HTTP/2",
        router.url()
    );

    let before = router.resident_kib() as f64;
    let part = (streams / CLIENTS).to_string();
    let ask = ["clients", router.url(), &part, &tokens.to_string()];
    let clients: Vec<Helper> = (0..CLIENTS).map(|_| Helper::start(&ask)).collect();
    let (most, with_most) = watch(&router, streams, Duration::from_secs(tokens as u64 + 30)).await;
    let ended = clients.into_iter().map(Helper::wait).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let left = Metrics::read(router.admin()).await.in_flight();

    let each = (with_most - before) / most.max(1.0);
    println!("at once       {most:>10.0}  streams in flight");
    println!(
        "memory        {:>10.1}  MiB before, {:.1} MiB with them: {each:.1} KiB a stream",
        before / 1024.0,
        with_most / 1024.0
    );
    println!("whole         {:>10}  streams ended with [DONE], {} failed", ended.0, ended.1);
    println!("in flight     {left:>10.0}  after the load ended");
    let good =
        ended == (streams / CLIENTS * CLIENTS, 0) && left == 0.0 && most >= 0.99 * streams as f64 && each <= MOST_KIB;
    println!("{}", if good { "1 passed, 0 failed" } else { "0 passed, 1 failed" });
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The most that was in flight, and the router's memory then, until all is over.
async fn watch(router: &Running, streams: usize, within: Duration) -> (f64, f64) {
    let (mut most, mut with_most) = (0.0, 0.0);
    let started = Instant::now();
    while started.elapsed() < within {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let in_flight = Metrics::read(router.admin()).await.in_flight();
        if in_flight >= most {
            (most, with_most) = (in_flight, router.resident_kib() as f64);
        } else if in_flight < 0.5 * most {
            break;
        }
        if started.elapsed().as_secs().is_multiple_of(5) {
            println!("{:>6.0} s  {in_flight:.0} of {streams} in flight", started.elapsed().as_secs_f64());
        }
    }
    (most, with_most)
}

/// This program in another role; ended with its starter.
struct Helper {
    child: Child,
    lines: Receiver<String>,
    first_line: String,
}

impl Helper {
    fn start(arguments: &[&str]) -> Helper {
        let program = std::env::current_exe().expect("this program has a path");
        let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().expect("it starts again");
        let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let first_line = lines.recv_timeout(LONGEST_SILENCE).expect("it says where it is");
        Helper { child, lines, first_line: first_line.trim().to_owned() }
    }

    /// What it counted: `WHOLE FAILED` on its last line.
    fn wait(self) -> (usize, usize) {
        let line = self.lines.recv_timeout(LONGEST_SILENCE).expect("it tells what it counted");
        let mut numbers = line.split_whitespace().filter_map(|number| number.parse().ok());
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(usize::MAX))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
