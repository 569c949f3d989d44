//! Tests of what a scrape shows after things were counted.

use std::collections::HashSet;
use std::time::Duration;

use isotherm_core::{Arm, Decision, Reason, StrategyName};

use super::*;
use crate::sample::{at_random, spilled};
use crate::{
    CacheOutcome, ClientStage, EngineReading, InvocationFault, RetryKind, ShadowCopy, ShedCause, UpstreamErrorKind,
};

/// The lines of a scrape that begin so, without comments.
fn lines(metrics: &Metrics, beginning: &str) -> Vec<String> {
    let text = metrics.expose(None).body;
    text.lines().filter(|line| line.starts_with(beginning)).map(str::to_owned).collect()
}

/// One of everything.
fn counted() -> (Metrics, Arc<InstanceMetrics>) {
    let metrics = Metrics::new("1.2.3");
    let variant = metrics.variant("chat", "AllTraffic");
    let instance = metrics.instance(&variant, "http://10.0.0.1:8000");
    variant.request("chat_completions", 200, Duration::from_millis(1_500));
    variant.request("chat_completions", 499, Duration::from_millis(30));
    variant.model("llama");
    variant.decision(&spilled());
    variant.decision(&at_random());
    variant.routed(Duration::from_micros(7));
    variant.first_token(Arm::Strategy, Reason::Spill, Duration::from_millis(60));
    variant.first_token_by_outcome(CacheOutcome::Spill, Duration::from_millis(60));
    variant.retry(RetryKind::Resend);
    variant.resend_refused();
    variant.client_left(ClientStage::Prefill);
    variant.shed(ShedCause::QueueFull);
    variant.invocation_fault(InvocationFault::ModelError);
    variant.shadow_copy(ShadowCopy::Sent);
    variant.waiting().inc();
    variant.set_index_bytes(1_024);
    instance.in_flight().inc();
    let expecting = Decision { expected_cached_tokens: Some(8_000), ..spilled() };
    instance.prompt(&expecting, 8_000, Some(7_984));
    instance.prompt(&at_random(), 500, None);
    instance.output(40);
    instance.upstream_error(UpstreamErrorKind::Broken);
    instance.set_up(true);
    instance.set_engine(Some(&reading()));
    instance.engine_restarted();
    instance.set_request_share(Some(0.25));
    instance.repeated(8, 2);
    variant.set_hot_prefixes(&[("ab".repeat(16), 0.5)]);
    variant.keys_compared(70);
    variant.keys_remapped("http://10.0.0.1:8000", 10);
    metrics.alerts().set_firing("InstanceIll", 1);
    metrics.shadows().count("chat", "a", "RANDOM", 100, 40);
    metrics.unplaced().request("none", 404, Duration::from_millis(1));
    metrics.config_loaded(SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_955_696));
    (metrics, instance)
}

fn reading() -> EngineReading {
    EngineReading {
        running: Some(3),
        waiting: Some(1),
        kv_cache_usage: Some(0.5),
        gpu_memory_bytes: Some(1 << 36),
        start_time: Some(1_795_955_000.5),
        new_prefix_cache_queries: Some(1_000),
        new_prefix_cache_hits: Some(600),
    }
}

#[test]
fn what_an_engine_tells_no_more_is_shown_no_more_and_counts_go_on() {
    let (metrics, instance) = counted();
    instance.set_engine(Some(&EngineReading { waiting: None, ..reading() }));
    assert_eq!(lines(&metrics, "isotherm_engine_running_requests").len(), 1);
    assert_eq!(lines(&metrics, "isotherm_engine_waiting_requests").len(), 0);
    instance.set_engine(None);
    assert!(lines(&metrics, "isotherm_engine_scrape_success")[0].ends_with(" 0"));
    for gone in ["running_requests", "kv_cache_usage_ratio", "gpu_memory_bytes", "start_time_seconds"] {
        assert!(lines(&metrics, &format!("isotherm_engine_{gone}")).is_empty(), "{gone}");
    }
    assert!(lines(&metrics, "isotherm_engine_prefix_cache_hits_total")[0].ends_with(" 1200"));
    assert_eq!(instance.engine_restarts(), 1);
    drop(instance);
    assert!(lines(&metrics, "isotherm_engine").is_empty());
}

#[test]
fn a_prefix_that_is_not_hot_any_more_loses_its_series() {
    let metrics = Metrics::new("test");
    let variant = metrics.variant("chat", "a");
    variant.set_hot_prefixes(&[("aa".to_owned(), 0.5), ("bb".to_owned(), 0.25)]);
    variant.set_hot_prefixes(&[("bb".to_owned(), 0.75)]);
    let series = "isotherm_hot_prefix_share{endpoint=\"chat\",variant=\"a\",prefix=\"bb\"} 0.75";
    assert_eq!(lines(&metrics, "isotherm_hot_prefix_share"), [series]);
}

#[test]
fn a_scrape_shows_what_was_counted() {
    let (metrics, _instance) = counted();
    let text = metrics.expose(None).body;
    let (of_router, _) = text.split_once("# HELP process_").expect("the process comes last");
    // Buckets are many and each has a test of its own.
    let shown: Vec<&str> = of_router.lines().filter(|line| !line.contains("_bucket{")).collect();
    assert_eq!(shown.join("\n") + "\n", include_str!("golden.txt"));
}

#[test]
fn every_metric_has_its_name_and_help_and_no_other_is_exported() {
    let (metrics, _instance) = counted();
    let text = metrics.expose(None).body;
    let shown: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# HELP ")).collect();
    let expected: Vec<String> = names::ALL.iter().map(|metric| format!("{} {}.", metric.name, metric.help)).collect();
    assert_eq!(shown, expected);
}

/// What only traffic can name (models, prefixes, shadow strategies), only ADAPTIVE expects, or only an engine can tell.
const COMES_LATER: [&str; 15] = [
    "isotherm_model_requests_total",
    "isotherm_expected_cached_tokens_total",
    "isotherm_index_bytes",
    "isotherm_instance_request_share",
    "isotherm_hot_prefix_share",
    "isotherm_engine_scrape_success",
    "isotherm_engine_running_requests",
    "isotherm_engine_waiting_requests",
    "isotherm_engine_kv_cache_usage_ratio",
    "isotherm_engine_gpu_memory_bytes",
    "isotherm_engine_prefix_cache_queries_total",
    "isotherm_engine_prefix_cache_hits_total",
    "isotherm_engine_start_time_seconds",
    "isotherm_shadow_prompt_tokens_total",
    "isotherm_shadow_cached_tokens_total",
];

#[test]
fn before_the_first_request_every_metric_is_there_at_zero() {
    let metrics = Metrics::new("test");
    let variant = metrics.variant("chat", "a");
    variant.begin_strategy(StrategyName::PrefixAware);
    let _instance = metrics.instance(&variant, "i");
    metrics.alerts().set_firing("InstanceIll", 0);
    let text = metrics.expose(None).body;
    let shown: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let expected = names::ALL.iter().map(|metric| metric.name).filter(|name| !COMES_LATER.contains(name));
    assert_eq!(shown, expected.collect::<Vec<_>>());
    let counts = |line: &&str| line.starts_with("isotherm_") && line.contains("_total");
    assert!(text.lines().filter(counts).all(|line| line.ends_with(" 0")), "{text}");
    for reason in ["home", "spill", "saturated"] {
        assert!(text.contains(&format!("arm=\"strategy\",reason=\"{reason}\"")), "{reason}");
    }
}

#[test]
fn no_label_is_one_that_a_prometheus_server_sets_itself() {
    let (metrics, _instance) = counted();
    for line in lines(&metrics, "isotherm_") {
        assert!(!line.contains("{instance=") && !line.contains(",instance=") && !line.contains("job="), "{line}");
    }
}

#[test]
fn every_metric_is_documented() {
    let page = include_str!("../../../../docs/observability.md");
    for metric in names::ALL {
        let row = format!("| `{}` | {} |", metric.name, metric.help);
        assert!(page.contains(&row), "docs/observability.md lacks\n{row}");
    }
}

#[test]
fn names_keep_the_conventions_that_promtool_checks() {
    let names: HashSet<&str> = names::ALL.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), names::ALL.len(), "a name is taken twice");
    let (metrics, _instance) = counted();
    let text = metrics.expose(None).body;
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a name and a type");
        assert!(name.starts_with("isotherm_") || name.starts_with("process_"), "{name}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
        for unit in ["_ms", "_milliseconds", "_kib", "_percent", "_count", "_sum", "_bucket"] {
            assert!(!name.ends_with(unit), "{name}");
        }
    }
}

#[test]
fn buckets_of_routing_begin_at_a_microsecond_and_are_cumulative() {
    let metrics = Metrics::new("test");
    let variant = metrics.variant("chat", "a");
    for nanoseconds in [500, 1_000, 1_001, 30_000, 2_000_000_000] {
        variant.routed(Duration::from_nanos(nanoseconds));
    }
    let shown = lines(&metrics, "isotherm_route_seconds");
    let of = |bound: &str| format!("isotherm_route_seconds_bucket{{endpoint=\"chat\",variant=\"a\",le=\"{bound}\"}}");
    for (bound, count) in [("1e-06", 2), ("2e-06", 3), ("2e-05", 3), ("5e-05", 4), ("0.1", 4), ("+Inf", 5)] {
        assert!(shown.contains(&format!("{} {count}", of(bound))), "{bound}: {shown:#?}");
    }
    assert!(shown.contains(&"isotherm_route_seconds_sum{endpoint=\"chat\",variant=\"a\"} 2.000032501".to_owned()));
}

#[test]
fn the_format_is_the_one_that_the_scraper_asks_for() {
    let (metrics, _instance) = counted();
    for accept in [None, Some("*/*"), Some("text/plain;version=0.0.4")] {
        let exposition = metrics.expose(accept);
        assert_eq!(exposition.content_type, "text/plain; version=0.0.4; charset=utf-8");
        assert!(exposition.body.contains("# TYPE isotherm_requests_total counter\n"));
    }
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4";
    let exposition = metrics.expose(Some(prometheus));
    assert_eq!(exposition.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(exposition.body.contains("# TYPE isotherm_requests counter\n"));
    assert!(exposition.body.contains("# UNIT isotherm_route_seconds seconds\n"));
    assert!(exposition.body.ends_with("# EOF\n"));
}

#[test]
fn a_removed_instance_leaves_no_series_and_its_neighbour_keeps_them() {
    let (metrics, instance) = counted();
    let variant = metrics.variant("chat", "AllTraffic");
    let neighbour = metrics.instance(&variant, "http://10.0.0.2:8000");
    neighbour.set_up(true);
    drop(instance);
    let shown = lines(&metrics, "isotherm_");
    assert!(!shown.iter().any(|line| line.contains("10.0.0.1")), "{shown:#?}");
    assert!(
        shown.contains(
            &"isotherm_instance_up{endpoint=\"chat\",variant=\"AllTraffic\",instance_id=\"http://10.0.0.2:8000\"} 1"
                .to_owned()
        )
    );
    drop((neighbour, variant));
    let shown = lines(&metrics, "isotherm_");
    assert!(!shown.iter().any(|line| line.contains("AllTraffic")), "{shown:#?}");
}

#[test]
fn equal_labels_share_one_handle_and_one_made_after_the_last_begins_anew() {
    let metrics = Metrics::new("test");
    let variant = metrics.variant("chat", "a");
    let (first, second) = (metrics.instance(&variant, "i"), metrics.instance(&variant, "i"));
    first.output(1);
    second.output(1);
    let total = "isotherm_output_tokens_total{endpoint=\"chat\",variant=\"a\",instance_id=\"i\"}";
    assert_eq!(lines(&metrics, total), [format!("{total} 2")]);
    drop((first, second));
    assert!(lines(&metrics, total).is_empty());
    metrics.instance(&variant, "i").output(5);
    assert!(lines(&metrics, total).is_empty(), "the handle is gone already");
    let third = metrics.instance(&variant, "i");
    third.output(5);
    assert_eq!(lines(&metrics, total), [format!("{total} 5")]);
}

#[test]
fn models_beyond_the_bound_count_as_other_and_no_name_can_break_the_text() {
    let metrics = Metrics::new("test");
    let variant = metrics.variant("chat", "a");
    variant.model("evil\"} 1\nisotherm_fake 1\r\\");
    variant.model(&"x".repeat(1_000));
    for model in 0..1_000 {
        variant.model(&format!("model-{model}"));
        variant.model(&format!("model-{model}"));
    }
    let shown = lines(&metrics, "isotherm_model_requests_total");
    assert_eq!(shown.len(), 101);
    let total =
        |model: &str| format!("isotherm_model_requests_total{{endpoint=\"chat\",variant=\"a\",model=\"{model}\"}}");
    assert!(shown.contains(&format!("{} 2", total("model-0"))));
    assert!(shown.contains(&format!("{} {}", total("other"), 2 * (1_000 - 98))), "{shown:#?}");
    assert!(shown.contains(&format!("{} 1", total("evil\\\"} 1\u{fffd}isotherm_fake 1\u{fffd}\\\\"))), "{shown:#?}");
    assert!(shown.contains(&format!("{} 1", total(&"x".repeat(100)))));
    assert!(lines(&metrics, "isotherm_fake").is_empty());
}

#[test]
fn apis_beyond_the_bound_share_a_label() {
    let metrics = Metrics::new("test");
    let variant = metrics.variant("chat", "a");
    let names: Vec<&'static str> = (0..100).map(|api| &*format!("api-{api}").leak()).collect();
    for api in names {
        variant.request(api, 200, Duration::ZERO);
    }
    let shown = lines(&metrics, "isotherm_requests_total");
    // The usual one has three classes from the beginning.
    assert_eq!(shown.len(), 31 + 3);
    let counts = shown.iter().map(|line| line.rsplit(' ').next().unwrap_or_default().parse::<u64>().unwrap());
    assert_eq!(counts.sum::<u64>(), 100);
}

#[test]
fn counts_from_many_threads_add_up() {
    let metrics = Metrics::new("test");
    let variant = metrics.variant("chat", "a");
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for _ in 0..1_000 {
                    variant.decision(&spilled());
                    variant.request("completions", 200, Duration::from_millis(1));
                }
            });
        }
    });
    let spills = "isotherm_spills_total{endpoint=\"chat\",variant=\"a\",cause=\"threshold\"}";
    assert_eq!(lines(&metrics, spills), [format!("{spills} 4000")]);
    assert!(lines(&metrics, "isotherm_request_duration_seconds_count")[0].ends_with(" 4000"));
}

#[test]
fn a_refused_configuration_shows_and_keeps_the_time_of_the_one_in_force() {
    let (metrics, _instance) = counted();
    metrics.config_refused();
    assert_eq!(lines(&metrics, "isotherm_config_reload_success"), ["isotherm_config_reload_success 0"]);
    assert_eq!(
        lines(&metrics, "isotherm_config_reload_timestamp_seconds"),
        ["isotherm_config_reload_timestamp_seconds 1795955696"]
    );
}
