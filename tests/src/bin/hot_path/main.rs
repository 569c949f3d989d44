//! Pieces of a request's way that run on the processor alone, so many times: `cargo xtask perf --count` counts their
//! instructions.

mod decide;
mod extract;
mod relay;

use std::process::ExitCode;
use std::time::Instant;

/// A piece that is ready to run again and again.
type Piece = Box<dyn FnMut()>;
/// What a piece is called, and what makes it ready.
type Named = (&'static str, fn() -> Piece);

/// The pieces by name, each in the middle of a run that has settled.
const PIECES: [Named; 5] = [
    ("extract-prefix", || Box::new(extract::prefix())),
    ("extract-blocks", || Box::new(extract::blocks())),
    ("decide-prefix-aware", || Box::new(decide::prefix_aware())),
    ("decide-adaptive", || Box::new(decide::adaptive())),
    ("relay-stream", || Box::new(relay::stream())),
];

/// Before anything is counted: what is only done the first times.
const WARM: u32 = 512;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = PIECES.iter().map(|(name, _)| *name).collect();
    let asked = match arguments.as_slice() {
        [piece, times] => PIECES.iter().find(|(name, _)| name == piece).zip(times.parse::<u32>().ok()),
        _ => None,
    };
    let Some(((name, prepare), times)) = asked else {
        eprintln!("usage: hot_path PIECE TIMES\npieces: {}", names.join(" "));
        return ExitCode::from(2);
    };
    let mut piece = prepare();
    (0..WARM).for_each(|_| piece());
    let started = Instant::now();
    (0..times).for_each(|_| piece());
    println!("{name}: {:.0} ns each", started.elapsed().as_nanos() as f64 / f64::from(times.max(1)));
    ExitCode::SUCCESS
}
