//! Tests of the snapshot.

use std::sync::atomic::AtomicBool;

use isotherm_config::{Config, Environment, Overrides};
use isotherm_core::RouteRequest;
use isotherm_fleet::Clock;
use isotherm_telemetry::{AccessLog, Metrics};
use rand::SeedableRng;
use serde_json::Value;

use super::*;
use crate::token::AdminToken;

/// A router of two instances that nobody answers for, without a listener.
fn admin() -> AdminState {
    let overrides = Overrides {
        instances: ["http://127.0.0.1:1", "http://127.0.0.1:2"].map(str::to_owned).to_vec(),
        port: Some("0".to_owned()),
        ..Overrides::default()
    };
    let config = Config::load(None, &std::iter::empty().collect::<Environment>(), &overrides).expect("valid");
    let metrics = Arc::new(Metrics::new("test"));
    let fleet = Fleet::new(&config, Arc::clone(&metrics), Clock::start());
    let settings = isotherm_proxy::Settings::of(&config);
    let data_plane =
        isotherm_proxy::DataPlane::start(settings, fleet.clone(), Arc::clone(&metrics), AccessLog::off(), None);
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    std::fs::write(&token, "secret").expect("the token");
    AdminState {
        hosts: Arc::default(),
        fleet,
        metrics,
        rules: data_plane.expect("a free port").rules(),
        reloader: None,
        token: AdminToken::read(&token).expect("the token"),
        deployments: None,
        analyst: None,
        config: Arc::new(arc_swap::ArcSwap::from_pointee(config)),
        draining: Arc::new(AtomicBool::new(false)),
    }
}

fn told(admin: &AdminState, seen: &Seen) -> Value {
    serde_json::to_value(Overview::of(admin, seen, &Extent::default())).expect("JSON")
}

#[tokio::test]
async fn a_router_without_traffic_tells_nothing_rather_than_zero() {
    let overview = told(&admin(), &Seen::default());
    let variant = &overview["variants"][0];
    assert_eq!(variant["strategy"], "PREFIX_AWARE");
    assert_eq!((&variant["concurrency_threshold"], &variant["prefix_length"]), (&10.into(), &4_096.into()));
    assert_eq!(variant["minute"]["hit_rate"], Value::Null);
    assert_eq!(variant["minute"]["ttft"]["hit"]["p50_ms"], Value::Null);
    assert_eq!(variant["instances"][0]["share"], Value::Null);
    assert_eq!(variant["instances"][0]["fair_share"], 0.5);
    assert_eq!(overview["hot_prefixes"], serde_json::json!([]));
}

#[tokio::test]
async fn what_was_served_shows_as_shares_of_the_instances() {
    let admin = admin();
    let variant = Arc::clone(admin.fleet.topology().variants().next().expect("one variant"));
    let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
    let placed = variant.choose(&RouteRequest::default(), admin.fleet.clock().now(), &mut rng).expect("an instance");
    variant.metrics().decision(&placed.decision);
    placed.instance.metrics().invocations().count(&isotherm_telemetry::Invocation {
        status: 200,
        outcome: isotherm_telemetry::Outcome::Ok,
        spilled: false,
        overhead: None,
        model: None,
        first_token: None,
        cached_of_prompt: None,
    });
    placed.instance.metrics().prompt(&placed.decision, 1_000, Some(750));
    let mut seen = Seen::default();
    seen.history.step(&admin.fleet, BTreeMap::new(), SystemTime::now());
    let overview = told(&admin, &seen);
    let instances = overview["variants"][0]["instances"].as_array().expect("instances");
    let chosen = instances.iter().find(|one| one["in_flight"] == 1).expect("the chosen one");
    assert_eq!((&chosen["share"], &chosen["hit_rate"]), (&1.0.into(), &0.75.into()));
    assert_eq!(chosen["series"]["requests"], serde_json::json!([1]));
    assert_eq!(overview["variants"][0]["series"]["hit_rate"], serde_json::json!([0.75]));
    let short = Extent { points: 0, requests: 0 };
    let brief = serde_json::to_value(Overview::of(&admin, &seen, &short)).expect("JSON");
    assert_eq!(brief["variants"][0]["series"]["time"], serde_json::json!([]));
}
