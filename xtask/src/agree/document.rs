//! The page with the figures: `docs/agreement.md`, written whole by each run that agrees.

use std::fs;

use crate::failure::Failure;
use crate::machine;

/// Writes the page: what was compared, when, by which command, and the table.
pub(crate) fn write(scenario: &str, speed: f64, table: &str) -> Result<(), Failure> {
    let file = machine::root().join("docs/agreement.md");
    let date = machine::output(machine::command("date").args(["--utc", "+%Y-%m-%d %H:%M UTC"]))?;
    let commit = machine::output(machine::command("git").args(["rev-parse", "--short", "HEAD"]));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let page = format!(
        "\
# The simulator and real HTTP agree

`isotherm simulate` and `isotherm bench` run the same scenario: the same sessions arrive at the same times and ask the
same questions, whatever became of those before. One computes in virtual time what the router's code would decide; the
other sends every byte through the router to emulated engines, {speed} times as fast as real ones, and reads tokens from
the streams. Both have the same model of the engines, so what is compared is everything around it: prompts as text
against prompts as lists of pieces, keys, the router's counters and what it learns, connections, time-outs, clocks.

Allowed are 3 points of hit rate, and for TTFT P50 15 % or 10 ms. Random choices differ between the two, so figures
under RANDOM are never equal. Over HTTP a prompt is a few tokens longer, because the chat template counts there.

Written by `cargo xtask agree` on {date} at commit {commit}, {cores} cores. It ran

```text
isotherm simulate --scenario {scenario} --seeds 1
isotherm bench --scenario {scenario} --speed {speed}
```

```text
{table}
```
",
        date = date.trim(),
        commit = commit.as_deref().unwrap_or("unknown").trim(),
        table = table.trim_end(),
    );
    fs::write(&file, page).map_err(|error| Failure::file(&file, &error))?;
    println!("written: {}", file.display());
    Ok(())
}
