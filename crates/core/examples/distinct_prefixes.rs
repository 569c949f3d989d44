//! What `ADAPTIVE` takes when no prompt begins like another: a million distinct prompts a line, 10 million by default.
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
    println!("prompts      index     resident   per request");
    for million in 1..=millions {
        let start = Instant::now();
        for i in 0..1_000_000 {
            let number = (million - 1) * 1_000_000 + i;
            serve(&mut state, &prompt(number), Time::from_nanoseconds(number * 100_000), &mut rng);
        }
        let microseconds = start.elapsed().as_secs_f64();
        let mebibytes = state.index_bytes() as f64 / f64::from(1 << 20);
        println!("{million:5} M {mebibytes:8.1} MiB {:>12} {microseconds:10.2} µs", resident());
    }
}

/// Four blocks that no other prompt has.
fn prompt(number: u64) -> Prompt {
    let seed = HashSeed::default();
    let mut hasher = BlockHasher::new(seed);
    hasher.update(format!("{number:064}").repeat(4).as_bytes());
    hasher.finish().expect("a text").within(seed, &KeyScope::default(), None, None)
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
