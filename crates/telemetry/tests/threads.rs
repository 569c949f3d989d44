//! Counters that threads share: nothing is lost, whoever reads meanwhile, and series end with the last handle on them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isotherm_core::{Arm, Reason};
use isotherm_telemetry::{Invocation, Metrics, Outcome};

const THREADS: usize = 8;
const EACH: usize = 5_000;
const ALL: f64 = (THREADS * EACH) as f64;

/// The sum over all series of this name.
fn sum(page: &str, name: &str) -> f64 {
    let of_name = page.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
    of_name.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[test]
fn whatever_threads_count_at_once_is_all_there() {
    let metrics = Metrics::new("test");
    let variant = metrics.variant("chat", "AllTraffic");
    let instance = metrics.instance(&variant, "http://10.0.0.1:8000");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let counting: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (metrics, variant, instance) = (&metrics, &variant, &instance);
                scope.spawn(move || {
                    for number in 0..EACH {
                        instance.in_flight().inc();
                        metrics.client_connections().inc();
                        variant.request("chat_completions", [200, 404, 503][number % 3], Duration::from_millis(7));
                        variant.model(["llama", "qwen", "mistral"][(number + thread) % 3]);
                        variant.first_token(Arm::Strategy, Reason::Home, Duration::from_millis(3));
                        variant.invocations().count(&Invocation {
                            status: 200,
                            outcome: Outcome::Ok,
                            spilled: number.is_multiple_of(2),
                            overhead: Some(Duration::from_micros(80)),
                            model: Some(Duration::from_millis(5)),
                            first_token: None,
                            cached_of_prompt: Some((10, 4)),
                        });
                        instance.output(3);
                        instance.in_flight().dec();
                        metrics.client_connections().dec();
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            // What is read meanwhile never goes back.
            let mut last = 0.0;
            while !done.load(Ordering::Relaxed) {
                let now = sum(&metrics.expose(None).body, "isotherm_requests_total");
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
        });
        let counted = counting.into_iter().map(|thread| thread.join().is_ok()).filter(|counted| *counted).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(counted, THREADS);
    });
    let page = metrics.expose(None).body;
    for (name, expected) in [
        ("isotherm_requests_total", ALL),
        ("isotherm_request_duration_seconds_count", ALL),
        ("isotherm_model_requests_total", ALL),
        ("isotherm_time_to_first_token_seconds_count", ALL),
        ("isotherm_output_tokens_total", 3.0 * ALL),
        ("isotherm_in_flight", 0.0),
        ("isotherm_client_connections", 0.0),
    ] {
        assert_eq!(sum(&page, name), expected, "{name}");
    }
    let figures = variant.invocations().figures();
    assert_eq!((figures.requests, figures.spills), (ALL as u64, ALL as u64 / 2));
    assert_eq!((figures.prompt_tokens, figures.cached_tokens), (10 * ALL as u64, 4 * ALL as u64));
    assert_eq!((figures.overhead.count(), figures.first_token.count()), (ALL as u64, 0));
}

#[test]
fn handles_that_come_and_go_at_once_leave_no_series_behind_and_take_none_away() {
    let metrics = Metrics::new("test");
    let kept = metrics.variant("chat", "kept");
    let kept_instance = metrics.instance(&kept, "http://10.0.0.1:8000");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let metrics = &metrics;
            scope.spawn(move || {
                for _ in 0..200 {
                    let variant = metrics.variant("chat", "fleeting");
                    let other = ["http://10.0.0.2:8000", "http://10.0.0.3:8000"][thread % 2];
                    let instance = metrics.instance(&variant, other);
                    variant.request("chat_completions", 200, Duration::from_millis(1));
                    instance.in_flight().inc();
                    let page = metrics.expose(None).body;
                    assert!(page.contains("variant=\"fleeting\""), "the series of a handle that is alive are gone");
                    instance.in_flight().dec();
                    metrics.variant("chat", "kept").request("chat_completions", 200, Duration::from_millis(1));
                }
            });
        }
    });
    let page = metrics.expose(None).body;
    assert!(!page.contains("fleeting"), "{page}");
    assert_eq!(sum(&page, "isotherm_requests_total"), (THREADS * 200) as f64);
    kept_instance.in_flight().inc();
    assert_eq!(sum(&metrics.expose(None).body, "isotherm_in_flight"), 1.0);
}
