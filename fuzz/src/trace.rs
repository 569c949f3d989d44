//! Any bytes as a recorded trace.

use isotherm_workload::{Arrivals, Azure, Mooncake, Plan, TraceSource, Workload};

/// A trace of each form: no panic; times do not go back, and it ends after the first line that is none.
pub fn check_trace(bytes: &[u8]) {
    let folder = std::env::temp_dir().join(format!("isotherm-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("trace");
    std::fs::write(&file, bytes).expect("written");
    let trace = || TraceSource::file(&file);
    let workloads: [Workload; 2] = [Azure { trace: trace() }.into(), Mooncake { trace: trace() }.into()];
    for workload in workloads {
        let Ok(plan) = Plan::with_arrivals(workload, Arrivals::Recorded { rate: 1.0 }, 1) else { continue };
        let Some(arrivals) = plan.open_loop() else { continue };
        let mut last = std::time::Duration::ZERO;
        let mut wrong = 0;
        for arrival in arrivals.take(10_000) {
            match arrival {
                Ok(arrival) => {
                    assert!(arrival.at >= last, "the time goes back");
                    last = arrival.at;
                }
                Err(_) => wrong += 1,
            }
        }
        assert!(wrong <= 1, "it went on behind an error");
    }
    let _ = std::fs::remove_dir_all(&folder);
}
