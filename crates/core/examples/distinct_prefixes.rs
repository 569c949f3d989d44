//! What `ADAPTIVE` takes when no prompt begins like another: a million distinct prompts a line, 10 million by default, of
//! 100,000 tenants, 8,192 bytes each.
//!
//! `cargo run --release -p isotherm-core --example distinct_prefixes [MILLIONS] [INSTANCES]` prints the index's own count
//! of its bytes, the process's resident memory (Linux), and the time that a request takes from choice to end.

use std::time::Instant;

use isotherm_core::{
    BlockHasher, HashSeed, InstanceSpec, KeyScope, Prompt, Rollout, RouteRequest, Routing, Strategy, Time, VariantState,
};
use rand::SeedableRng;

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let (millions, instances) = (arguments.next().unwrap_or(10), arguments.next().unwrap_or(8));
    let mut state = VariantState::new(Routing { strategy: Strategy::Adaptive, rollout: Rollout::FULL }, Time::ZERO);
    for instance in 0..instances {
        state.add(InstanceSpec::new(format!("instance-{instance}").as_str()), instance);
    }
    let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
    println!("prompts      index     resident   per request        p99");
    for million in 1..=millions {
        let mut took = Vec::with_capacity(1_000_000);
        for i in 0..1_000_000 {
            let number = (million - 1) * 1_000_000 + i;
            let prompt = prompt(number);
            let start = Instant::now();
            serve(&mut state, &prompt, Time::from_nanoseconds(number * 100_000), &mut rng);
            took.push(start.elapsed().as_nanos() as u32);
        }
        took.sort_unstable();
        let mean = took.iter().map(|&nanoseconds| f64::from(nanoseconds)).sum::<f64>() / 1e9;
        let p99 = f64::from(took[990_000]) / 1e3;
        let mebibytes = state.index_bytes() as f64 / f64::from(1 << 20);
        println!("{million:5} M {mebibytes:8.1} MiB {:>12} {mean:10.2} µs {p99:7.2} µs", resident());
    }
}

/// Blocks that no other prompt has.
fn prompt(number: u64) -> Prompt {
    let seed = HashSeed::default();
    let mut hasher = BlockHasher::new(seed);
    hasher.update(format!("{number:064}").repeat(128).as_bytes());
    let tenant = format!("tenant-{}", number % 100_000);
    let scope = KeyScope { tenant: Some(&tenant), ..KeyScope::default() };
    hasher.finish().expect("a text").within(seed, &scope, None, None)
}

fn serve(state: &mut VariantState<u64>, prompt: &Prompt, now: Time, rng: &mut rand_pcg::Pcg64) {
    let request = RouteRequest { prompt: Some(prompt), ..RouteRequest::default() };
    let mut choice = state.choose(&request, now, rng).expect("instances are there");
    state.first_token(&mut choice.slot, now);
    state.finish(choice.slot);
}

fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
