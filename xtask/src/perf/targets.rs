//! The targets of the data plane, case by case: beside nginx, and beside the best router for language models.

use isotherm_report::{Align, Table};

use super::figures::{Figures, Results};
use super::plan::Plan;

/// CPU time of a request may be so many times nginx's.
const CPU: f64 = 1.2;
/// Requests a second at the least: this part of nginx's, or of the direct way's where that is lower.
const RATE: f64 = 0.9;
/// And so many times those of any router for language models.
const RATE_OF_ROUTERS: f64 = 2.0;
/// Microseconds that one request at a time may gain at the 99th percentile.
const P99_US: f64 = 1_000.0;
/// Routers for language models.
pub(crate) const ROUTERS: [&str; 4] = ["vllm-router", "sglang-router", "smg", "litellm"];

/// One target in one case.
struct Verdict {
    case: String,
    what: &'static str,
    measured: String,
    bound: String,
    is_met: bool,
}

/// The table of what was met and what was not; `None` without Isotherm, or with nothing to set it beside.
pub(crate) fn table(results: &Results, plan: &Plan) -> Option<Table> {
    let isotherm = results.find("isotherm")?;
    let mut verdicts = Vec::new();
    for &case in plan.cases.iter().filter(|case| case.has_targets()) {
        let own = results.of(isotherm, case);
        let name = format!("{}, {} at once", case.shape(), case.connections);
        let mut judge = |what, measured: f64, bound: f64, is_met| {
            let [measured, bound] = [measured, bound].map(|value| format!("{value:.0}"));
            verdicts.push(Verdict { case: name.clone(), what, measured, bound, is_met });
        };
        if case.connections == 1 {
            judge("added p99, µs", own.added_p99, P99_US, own.added_p99 <= P99_US);
        }
        if let Some(nginx) = results.find("nginx").map(|nginx| results.of(nginx, case)) {
            judge("added p50, µs: nginx's", own.added_p50, nginx.added_p50, own.added_p50 <= nginx.added_p50);
            if case.connections > 1 {
                judge("added p99, µs: nginx's", own.added_p99, nginx.added_p99, own.added_p99 <= nginx.added_p99);
                let bound = lower_of(RATE * nginx.sample.per_second, &results.of(0, case));
                judge("requests/s: 0.9 × nginx", own.sample.per_second, bound, own.sample.per_second >= bound);
            }
            let bound = CPU * nginx.sample.cpu_us;
            judge("CPU µs a request: 1.2 × nginx", own.sample.cpu_us, bound, own.sample.cpu_us <= bound);
        }
        let routers =
            ROUTERS.iter().filter_map(|router| Some(results.of(results.find(router)?, case).sample.per_second));
        let best = routers.filter(|rate| rate.is_finite()).max_by(f64::total_cmp);
        if let Some(best) = best.filter(|_| case.connections > 1) {
            let bound = lower_of(RATE_OF_ROUTERS * best, &results.of(0, case));
            judge("requests/s: 2 × any LLM router", own.sample.per_second, bound, own.sample.per_second >= bound);
        }
    }
    (!verdicts.is_empty()).then(|| laid_out(&verdicts))
}

/// Where nine tenths of the direct way are less, load and engines are the limit.
fn lower_of(bound: f64, direct: &Figures) -> f64 {
    bound.min(RATE * direct.sample.per_second)
}

fn laid_out(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new([Align::Left, Align::Left, Align::Right, Align::Right, Align::Left]);
    table.row(["case", "target", "measured", "bound", ""]);
    for verdict in verdicts {
        let word = if verdict.is_met { "met" } else { "NOT met" };
        table.row([&verdict.case, verdict.what, &verdict.measured, &verdict.bound, word]);
    }
    table
}
