//! Mixed traffic on a healthy fleet, for an hour of emulated time: no alarm may be raised. `cargo xtask alarms` builds and
//! runs it.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use isotherm_tests::{Engines, MixedTraffic, Running, Webhook};

/// Emulated seconds of each second.
const SPEED: f64 = 60.0;

/// How long a user thinks between two requests, in emulated time.
const THINK: Duration = Duration::from_secs(9);

fn main() -> ExitCode {
    let minutes = std::env::args().nth(1).and_then(|minutes| minutes.parse::<f64>().ok());
    let Some(minutes) = minutes.filter(|minutes| *minutes > 0.0) else {
        eprintln!("usage: alarms MINUTES");
        return ExitCode::from(2);
    };
    match tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() {
        Ok(runtime) => runtime.block_on(watch(minutes)),
        Err(error) => {
            eprintln!("runtime: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn watch(minutes: f64) -> ExitCode {
    let webhook = Webhook::start().await;
    let engines = Engines::start(4, &["--speed", &SPEED.to_string()]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("isotherm.yaml");
    std::fs::write(&file, configuration(&engines, &webhook)).expect("the configuration");
    let router = Running::start(&["serve", "--config", &file.to_string_lossy()]);
    println!("{minutes:.0} emulated minutes of mixed traffic on {}, {SPEED} times faster", router.url());
    let traffic = MixedTraffic::start(router.url(), THINK.div_f64(SPEED));
    let (started, wall) = (Instant::now(), Duration::from_secs_f64(minutes * 60.0 / SPEED));
    while started.elapsed() < wall {
        tokio::time::sleep(Duration::from_secs(10).min(wall.saturating_sub(started.elapsed()))).await;
        let passed = started.elapsed().as_secs_f64() * SPEED / 60.0;
        println!("{passed:>5.0} min  {:>7} answered  {} alarms", traffic.answered(), webhook.told().len());
    }
    let answered = traffic.answered();
    traffic.stop().await;
    let told = webhook.told();
    told.iter().for_each(|alarm| println!("false alarm: {alarm}"));
    let good = told.is_empty() && answered > 0;
    println!("{}", if good { "1 passed, 0 failed" } else { "0 passed, 1 failed" });
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Stricter than the defaults: what holds for a moment fires at once. Times to first token are emulated ones, too.
fn configuration(engines: &Engines, webhook: &Webhook) -> String {
    let rules = ["hit_rate", "cache_pressure", "hot_prefix", "spills", "instance_ill"].map(String::from);
    let others = ["prefix_caching_off", "replicas_disagree"].map(String::from);
    let at_once: String = rules.iter().chain(&others).map(|rule| format!("  {rule}: {{ for: 0s }}\n")).collect();
    format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: '127.0.0.1:0' }}\n\
         alerts:\n  webhooks: ['{}']\n  window: 2m\n  first_token: {{ for: 0s, p95: {}ms }}\n{at_once}\
         endpoints:\n  - name: chat\n    variants:\n      - name: main\n        instances: [{}]\n",
        webhook.url(),
        (5_000.0 / SPEED).ceil(),
        engines.listed()
    )
}
