//! The testkit: starts the real binary, speaks HTTP to it, reads its metrics. Everything here panics with what was
//! seen when something is not as it should be, as a test's assertion does.

mod aws;
mod certificates;
mod engines;
mod fault_proxy;
mod http;
mod metrics;
mod mixed_traffic;
mod process;
mod prompts;
mod stopwatch;
mod webhook;

pub use aws::Aws;
pub use certificates::{Certificates, TlsFront};
pub use engines::{Engines, ObservedRequest, engine_requests, highest_concurrency, set_faults};
pub use fault_proxy::{Fault, FaultProxy};
pub use http::{Answer, Broken, Client, Stream};
pub use metrics::Metrics;
pub use mixed_traffic::MixedTraffic;
pub use process::{Ended, Running, binary, run};
pub use prompts::{chat, document, streamed_chat};
pub use stopwatch::Stopwatch;
pub use webhook::Webhook;

use std::time::Duration;

/// Waits until `holds` gives a value, at most `within`; panics with `what` otherwise. Time in which the machine stands
/// still does not count.
pub async fn eventually<T>(what: &str, within: Duration, mut holds: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Stopwatch::start();
    loop {
        if let Some(value) = holds().await {
            return value;
        }
        assert!(started.elapsed() < within, "not within {within:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
