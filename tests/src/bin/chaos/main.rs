//! Random faults on a real fleet under load: engines are killed, hang, slow down, fail and come back, the file is
//! reloaded, clients leave. `cargo xtask chaos` builds and runs it.
//!
//! A ledger compares what clients asked for with what engines did. The same seed gives the same faults at the same times.

mod faults;
mod fleet;
mod ledger;
mod users;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use faults::Random;
use fleet::Fleet;
use ledger::Ledger;
use users::Users;

const USERS: usize = 24;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(minutes), Some(seed)) = (
        arguments.first().and_then(|minutes| minutes.parse::<f64>().ok()).filter(|minutes| *minutes > 0.0),
        arguments.get(1).map_or(Some(1), |seed| seed.parse::<u64>().ok()),
    ) else {
        eprintln!("usage: chaos MINUTES [SEED]");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(chaos(Duration::from_secs_f64(minutes * 60.0), seed)),
        Err(error) => {
            eprintln!("runtime: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn chaos(duration: Duration, seed: u64) -> ExitCode {
    let mut fleet = Fleet::start();
    let ledger = Arc::new(Ledger::default());
    println!(
        "{USERS} users against {} for {:.1} min, seed {seed}",
        fleet.router().url(),
        duration.as_secs_f64() / 60.0
    );
    let users = Users::start(fleet.router().url(), USERS, seed, &ledger);
    let mut random = Random::new(seed);
    let started = Instant::now();
    let mut counts = std::collections::BTreeMap::new();
    while started.elapsed() < duration {
        tokio::time::sleep(Duration::from_millis(random.between(100, 900))).await;
        fleet.collect(&ledger).await;
        let done = fleet.disturb(&mut random, &ledger).await;
        *counts.entry(done).or_insert(0) += 1;
    }
    fleet.calm().await;
    users.stop().await;
    fleet.collect(&ledger).await;
    let left = fleet.left_over().await;
    println!("\nfaults");
    for (fault, count) in &counts {
        println!("  {fault:<28}{count:>8}");
    }
    println!("{ledger}");
    println!("left in flight or waiting     {left:>8}");
    let wrong = ledger.wrong();
    for line in wrong.iter().take(10) {
        println!("wrong: {line}");
    }
    let good = wrong.is_empty() && left == 0.0 && ledger.answered() > 0;
    println!("{}", if good { "1 passed, 0 failed" } else { "0 passed, 1 failed" });
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
