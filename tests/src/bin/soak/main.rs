//! Closed-loop load at the machine's limit on a real router, for minutes: memory must stay flat, nothing may fail, and
//! nothing may be left in flight. `cargo xtask soak` builds and runs it.

mod load;
mod memory;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use isotherm_tests::{Engines, Metrics, Running, eventually};
use load::{Load, Totals};
use memory::{Memory, Verdict};

const ENGINES: usize = 4;
const USERS: usize = 64;
/// What a router has to do on a usual day, in requests a second: some two hundred users who ask every ten seconds.
const USUAL_RATE: f64 = 20.0;

fn main() -> ExitCode {
    let Some(duration) = duration() else {
        eprintln!("usage: soak MINUTES");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(soak(duration)),
        Err(error) => {
            eprintln!("runtime: {error}");
            ExitCode::FAILURE
        }
    }
}

fn duration() -> Option<Duration> {
    let minutes: f64 = std::env::args().nth(1)?.parse().ok()?;
    (minutes > 0.0).then(|| Duration::from_secs_f64(minutes * 60.0))
}

async fn soak(duration: Duration) -> ExitCode {
    // Engines so fast that the machine is the limit, not they.
    let engines = Engines::start(ENGINES, &["--profile", "llama3.1-8b-tp1-bf16", "--speed", "1000"]);
    let mut arguments: Vec<String> = ["serve", "--port", "0", "--admin-port", "0"].map(str::to_owned).into();
    arguments.extend(engines.instance_flags());
    let router = Running::start(&arguments);
    println!(
        "{USERS} users against {} with {ENGINES} emulated engines, for {:.1} min",
        router.url(),
        minutes(duration)
    );

    let load = Load::start(router.url(), USERS);
    let mut memory = Memory::default();
    let started = Instant::now();
    while started.elapsed() < duration {
        tokio::time::sleep(Duration::from_secs(1)).await;
        memory.sample(&router, load.totals().requests);
        if memory.samples().is_multiple_of(30) {
            println!("{:>5.1} min  {}  {}", minutes(started.elapsed()), load.totals(), memory);
        }
    }
    let (totals, failures) = load.stop().await;
    let elapsed = started.elapsed();
    eventually("nothing is in flight any more", Duration::from_secs(10), async || {
        (Metrics::read(router.admin()).await.in_flight() == 0.0).then_some(())
    })
    .await;
    report(&totals, &failures, &memory.verdict(), elapsed)
}

fn report(totals: &Totals, failures: &[String], verdict: &Verdict, elapsed: Duration) -> ExitCode {
    let per_second = totals.requests as f64 / elapsed.as_secs_f64();
    println!("\n{verdict}");
    println!("requests      {:>12}  {per_second:.0} a second", totals.requests);
    println!("  streamed    {:>12}", totals.streamed);
    println!("  left early  {:>12}  by the client, in the middle of a stream", totals.left);
    println!("  failed      {:>12}", failures.len());
    let days = totals.requests as f64 / (USUAL_RATE * 86_400.0);
    println!("as much as    {days:>12.2}  days of {USUAL_RATE} requests a second");
    println!("in flight     {:>12}  after the load ended", 0);
    for failure in failures.iter().take(10) {
        println!("failed: {failure}");
    }
    let good = failures.is_empty() && verdict.is_flat() && totals.requests > 0;
    println!("{}", if good { "1 passed, 0 failed" } else { "0 passed, 1 failed" });
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn minutes(duration: Duration) -> f64 {
    duration.as_secs_f64() / 60.0
}
