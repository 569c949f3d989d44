//! Probes and listings against instances on loopback that are well, ill, gone, slow, or talk nonsense.

use std::sync::Arc;
use std::time::Duration;

use isotherm_core::{Availability, ModelHash, Refusal, RouteRequest};
use isotherm_telemetry::Metrics;
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::Watch;
use crate::testing::{FakeInstance, Reply, eventually, fleet, one_variant, variant};
use crate::{Clock, Fleet, FleetTasks, IfLast, InstanceName, InstanceNow, Variant};

const QUICK: &str = "health: {interval: 10ms, timeout: 40ms},";

/// A fleet of one instance, watched.
fn watching(settings: &str, url: &str) -> (Arc<Variant>, Fleet, FleetTasks) {
    let fleet = fleet(&one_variant(settings, &[&format!("{{url: '{url}'}}")]));
    let tasks = fleet.spawn();
    (variant(&fleet), fleet, tasks)
}

fn now(variant: &Variant) -> InstanceNow {
    variant.instances(variant.clock().now()).remove(0)
}

fn is(variant: &Variant, availability: Availability) -> bool {
    now(variant).availability == availability
}

fn problem(variant: &Variant) -> String {
    now(variant).instance.problem().map(|problem| problem.to_string()).unwrap_or_default()
}

#[tokio::test]
async fn an_instance_that_goes_is_down_at_once_and_returns_by_itself_with_what_it_serves_then() {
    let mut engine = FakeInstance::start().await;
    let (variant, fleet, _tasks) = watching(QUICK, &engine.url());
    eventually("heard of", || fleet.is_ready()).await;
    eventually("listed", || now(&variant).instance.listing().is_some()).await;
    engine.stop().await;
    eventually("down", || is(&variant, Availability::Down)).await;
    assert_eq!(problem(&variant), "connection refused");
    assert!(!fleet.is_ready());
    assert_eq!(now(&variant).instance.listing().unwrap().models().len(), 1, "what it listed is not forgotten");

    engine.answer("/v1/models", Reply::models(&["m", "n"]));
    engine.restart().await;
    eventually("up", || is(&variant, Availability::Up)).await;
    assert_eq!(now(&variant).instance.problem(), None);
    eventually("listed anew", || fleet.topology().models(|_| true).len() == 2).await;
}

#[tokio::test]
async fn an_engine_that_still_loads_is_asked_for_its_models_when_it_is_there() {
    let mut engine = FakeInstance::start().await;
    engine.stop().await;
    let (variant, fleet, _tasks) = watching(QUICK, &engine.url());
    eventually("down", || is(&variant, Availability::Down)).await;
    engine.restart().await;
    eventually("listed", || fleet.topology().models(|_| true).len() == 1).await;
}

#[tokio::test]
async fn an_engine_that_refuses_to_list_while_it_loads_is_asked_again_soon() {
    let engine = FakeInstance::start().await;
    engine.answer("/v1/models", Reply::status(503));
    let (_variant, fleet, _tasks) = watching(QUICK, &engine.url());
    eventually("asked", || engine.times_asked("/v1/models") > 0).await;
    engine.answer("/v1/models", Reply::models(&["m"]));
    eventually("listed", || fleet.topology().models(|_| true).len() == 1).await;
}

#[tokio::test]
async fn three_bad_answers_make_it_down_and_one_good_one_ends_it() {
    let engine = FakeInstance::start().await;
    engine.answer("/health", Reply::status(503));
    let (variant, _fleet, _tasks) = watching(QUICK, &engine.url());
    eventually("down", || is(&variant, Availability::Down)).await;
    assert!(engine.times_asked("/health") >= 3);
    assert_eq!(problem(&variant), "GET /health was answered with 503 Service Unavailable");
    engine.answer("/health", Reply::status(200));
    eventually("up", || is(&variant, Availability::Up)).await;
}

#[tokio::test]
async fn an_answer_that_is_no_http_is_a_bad_one() {
    let engine = FakeInstance::start().await;
    engine.answer("/health", Reply::Raw("\u{1}\u{2} SSH-2.0\r\n\r\n"));
    let (variant, _fleet, _tasks) = watching(QUICK, &engine.url());
    eventually("down", || is(&variant, Availability::Down)).await;
    assert!(problem(&variant).starts_with("broken answer to GET /health: "), "{}", problem(&variant));
}

#[tokio::test]
async fn an_engine_without_a_health_check_is_asked_for_its_models_instead() {
    let engine = FakeInstance::start().await;
    for unknown in [404, 405] {
        engine.answer("/health", Reply::status(unknown));
        let asked_before = engine.times_asked("/health");
        let (_variant, fleet, _tasks) = watching(QUICK, &engine.url());
        eventually("heard of", || fleet.is_ready()).await;
        let models_before = engine.times_asked("/v1/models");
        eventually("probed again", || engine.times_asked("/v1/models") > models_before + 3).await;
        assert_eq!(engine.times_asked("/health"), asked_before + 1, "once is enough to know");
    }
}

#[tokio::test]
async fn an_engine_that_knows_neither_path_is_down() {
    let engine = FakeInstance::start().await;
    engine.answer("/health", Reply::status(404));
    engine.answer("/v1/models", Reply::status(404));
    let (variant, _fleet, _tasks) = watching(QUICK, &engine.url());
    eventually("down", || is(&variant, Availability::Down)).await;
    assert_eq!(problem(&variant), "GET /v1/models was answered with 404 Not Found");
}

#[tokio::test]
async fn a_configured_path_is_the_only_one() {
    let engine = FakeInstance::start().await;
    engine.answer("/ready?full=1", Reply::status(200));
    let settings = "health: {path: '/ready?full=1', interval: 10ms},";
    let (_variant, fleet, _tasks) = watching(settings, &engine.url());
    eventually("heard of", || fleet.is_ready()).await;
    assert_eq!(engine.times_asked("/health"), 0);
}

#[tokio::test]
async fn an_instance_that_hangs_is_down_unless_it_streams() {
    let engine = FakeInstance::start().await;
    engine.answer("/health", Reply::Nothing);
    let (variant, _fleet, _tasks) = watching(QUICK, &engine.url());
    let streaming = now(&variant);
    streaming.instance.note_byte(variant.clock().now());
    eventually("probed", || engine.times_asked("/health") >= 6).await;
    assert!(is(&variant, Availability::Up), "tokens come from it: a long prefill is not death");
    assert_eq!(problem(&variant), "no answer to GET /health within 0.04 s");

    let silent = FakeInstance::start().await;
    silent.answer("/health", Reply::Nothing);
    let (variant, _fleet, _tasks) = watching(QUICK, &silent.url());
    eventually("down", || is(&variant, Availability::Down)).await;
}

#[tokio::test]
async fn a_question_is_what_the_engine_expects() {
    let engine = FakeInstance::start().await;
    engine.answer("/engine/health", Reply::status(200));
    let (_variant, fleet, _tasks) = watching(QUICK, &format!("{}/engine", engine.url()));
    eventually("heard of", || fleet.is_ready()).await;
    let head = engine.asked().into_iter().find(|head| head.starts_with("GET /engine/health HTTP/1.1\r\n")).unwrap();
    let host = format!("\r\nhost: {}\r\n", engine.url().trim_start_matches("http://"));
    assert!(head.contains(&host) && head.contains("\r\nconnection: close\r\n"), "{head}");
    assert!(!head.contains("authorization"), "{head}");
}

#[tokio::test]
async fn the_listing_decides_who_may_serve_a_model() {
    let engine = FakeInstance::start().await;
    let (variant, fleet, _tasks) = watching(QUICK, &engine.url());
    eventually("listed", || fleet.topology().models(|_| true).len() == 1).await;
    let choose = |model: &str| {
        let request = RouteRequest { model: Some(ModelHash::of(model)), ..RouteRequest::default() };
        variant.choose(&request, variant.clock().now(), &mut Pcg64::seed_from_u64(0))
    };
    assert!(choose("m").is_ok());
    assert_eq!(choose("n").unwrap_err(), Refusal::ModelNotFound);
}

#[tokio::test]
async fn an_answer_that_is_no_listing_leaves_the_last_one_in_force() {
    let engine = FakeInstance::start().await;
    let fleet = fleet(&one_variant(QUICK, &[&format!("{{url: '{}'}}", engine.url())]));
    let variant = variant(&fleet);
    let one = now(&variant);
    let mut watch = Watch::new(fleet.clone(), Arc::clone(&variant), Arc::clone(&one.instance), one.generation);
    watch.list_every = Duration::from_millis(1);
    let listing = tokio::spawn(watch.run(Duration::ZERO));
    eventually("listed", || fleet.topology().models(|_| true).len() == 1).await;
    let oversized = format!("{{\"data\":[{{\"id\":\"n\",\"x\":\"{}\"}}]}}", "x".repeat(9 << 20));
    for nonsense in [
        Reply::status(500),
        Reply::Http(200, String::from("NaN")),
        Reply::Http(200, String::from("{\"data\":[]}")),
        Reply::Http(200, oversized),
        Reply::Raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"data\":[{\"id\":\"n\"}"),
    ] {
        engine.answer("/v1/models", nonsense);
        let before = engine.times_asked("/v1/models");
        eventually("asked twice more", || engine.times_asked("/v1/models") >= before + 2).await;
        let ids: Vec<_> = fleet.topology().models(|_| true).iter().map(|model| model.id().to_owned()).collect();
        assert_eq!(ids, ["m"]);
    }
    engine.answer("/v1/models", Reply::models(&["n"]));
    eventually("listed anew", || fleet.topology().models(|_| true).iter().any(|model| model.id() == "n")).await;
    listing.abort();
}

#[tokio::test]
async fn what_is_removed_is_asked_no_more_and_leaves_no_series_behind() {
    let engine = FakeInstance::start().await;
    let config =
        one_variant(QUICK, &[&format!("{{id: gone, url: '{}'}}", engine.url()), "{url: 'http://127.0.0.1:1'}"]);
    let metrics = Arc::new(Metrics::new("0"));
    let fleet = Fleet::new(&config, Arc::clone(&metrics), Clock::start());
    let tasks = fleet.spawn();
    let series = |name: &str, instance: &str| {
        let text = metrics.expose(None);
        let text = String::from_utf8(text.body.into()).unwrap();
        let is_it = |line: &&str| line.starts_with(name) && line.contains(&format!("instance_id=\"{instance}\""));
        text.lines().find(is_it).and_then(|line| line.rsplit(' ').next()).map(str::to_owned)
    };
    eventually("heard of", || engine.times_asked("/health") >= 2).await;
    fleet.set_draining(InstanceName { id: "gone", endpoint: None, variant: None }, true).unwrap();
    eventually("the other is down", || {
        fleet.refresh_gauges();
        series("isotherm_instance_up", "http://127.0.0.1:1").as_deref() == Some("0")
    })
    .await;
    assert_eq!(series("isotherm_instance_up", "gone").as_deref(), Some("1"));
    assert_eq!(series("isotherm_instance_draining", "gone").as_deref(), Some("1"));
    assert_eq!(series("isotherm_instance_ejected", "gone").as_deref(), Some("0"));

    let name = InstanceName { id: "gone", endpoint: None, variant: None };
    fleet.remove_instance(name, IfLast::Keep).unwrap();
    eventually("its series ended", || series("isotherm_instance_up", "gone").is_none()).await;
    let asked = engine.asked().len();
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(engine.asked().len() <= asked + 1, "a probe may have been under way");
    drop(tasks);
}

const QUICK_FIGURES: &str = "health: {interval: 10ms, timeout: 40ms}, engine_metrics: {interval: 10ms},";

/// A metrics page of vLLM.
fn page(started: u64, queries: u64, hits: u64) -> Reply {
    let text = format!(
        "vllm:num_requests_running{{engine=\"0\"}} 3.0\nvllm:prefix_cache_queries_total{{engine=\"0\"}} {queries}\n\
         vllm:prefix_cache_hits_total{{engine=\"0\"}} {hits}\nprocess_start_time_seconds {started}\n"
    );
    Reply::Http(200, text)
}

fn metric(metrics: &Metrics, name: &str) -> Option<String> {
    let text = metrics.expose(None).body;
    text.lines().find(|line| line.starts_with(name)).and_then(|line| line.rsplit(' ').next()).map(str::to_owned)
}

#[tokio::test]
async fn figures_of_an_engine_are_read_and_its_restart_is_told_to_routing_once() {
    let engine = FakeInstance::start().await;
    engine.answer("/metrics", page(100, 1_000, 600));
    engine.answer("/version", Reply::Http(200, "{\"version\":\"0.32.0\"}".to_owned()));
    let fleet = fleet(&one_variant(QUICK_FIGURES, &[&format!("{{url: '{}'}}", engine.url())]));
    let (metrics, variant) = (fleet.metrics(), variant(&fleet));
    let _tasks = fleet.spawn();
    let report = || now(&variant).instance.engine();
    eventually("figures", || report().figures.is_some()).await;
    eventually("version", || report().version.as_deref() == Some("0.32.0")).await;
    assert_eq!(metric(&metrics, "isotherm_engine_running_requests").as_deref(), Some("3"));
    assert_eq!(metric(&metrics, "isotherm_engine_prefix_cache_queries_total").as_deref(), Some("1000"));
    engine.answer("/metrics", page(100, 1_500, 700));
    eventually("counted on", || {
        metric(&metrics, "isotherm_engine_prefix_cache_queries_total").as_deref() == Some("1500")
    })
    .await;
    assert_eq!(report().restarts, 0);

    engine.answer("/metrics", page(200, 40, 0));
    eventually("restarted", || report().restarts == 1).await;
    assert_eq!(metric(&metrics, "isotherm_engine_prefix_cache_queries_total").as_deref(), Some("1540"));
    assert_eq!(metric(&metrics, "isotherm_engine_restarts_total").as_deref(), Some("1"));
    assert!(is(&variant, Availability::Up), "a new process is no illness");
}

#[tokio::test]
async fn an_engine_without_metrics_serves_all_the_same_and_is_asked_at_tensorrt_llms_path_too() {
    let engine = FakeInstance::start().await;
    let (variant, _fleet, _tasks) = watching(QUICK_FIGURES, &engine.url());
    let report = || now(&variant).instance.engine();
    eventually("asked at both", || engine.times_asked("/prometheus/metrics") == 1).await;
    eventually("told", || report().problem.as_deref() == Some("GET /metrics was answered with 404 Not Found")).await;
    assert!(is(&variant, Availability::Up));
    assert_eq!(engine.times_asked("/metrics"), 1, "what has no metrics is left alone for a while");
}

#[tokio::test]
async fn pages_that_never_end_or_never_come_are_given_up() {
    let engine = FakeInstance::start().await;
    engine.answer("/metrics", Reply::Http(200, "vllm:x 1\n".repeat(600_000)));
    let settings = "health: {interval: 10ms, timeout: 40ms}, engine_metrics: {interval: 10ms, timeout: 200ms},";
    let (variant, _fleet, _tasks) = watching(settings, &engine.url());
    let problem = || now(&variant).instance.engine().problem.unwrap_or_default().to_string();
    eventually("too large", || problem().contains("length limit exceeded")).await;
    engine.answer("/metrics", Reply::Nothing);
    eventually("too slow", || problem() == "no answer to GET /metrics within 0.2 s").await;
    assert!(is(&variant, Availability::Up));
}

#[tokio::test]
async fn nobody_asks_for_figures_where_they_are_off() {
    let engine = FakeInstance::start().await;
    let settings = "health: {interval: 10ms}, engine_metrics: {enabled: false, interval: 10ms},";
    let (_variant, _fleet, _tasks) = watching(settings, &engine.url());
    eventually("probed often", || engine.times_asked("/health") > 10).await;
    assert_eq!(engine.times_asked("/metrics"), 0);
}
