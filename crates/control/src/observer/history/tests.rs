//! Tests of the steps that are kept.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use isotherm_config::{Config, Environment, Overrides};
use isotherm_core::{Arm, Reason, RouteRequest};
use isotherm_fleet::Clock;
use isotherm_telemetry::{CacheOutcome, Metrics};
use rand::SeedableRng;

use super::*;

fn fleet() -> Fleet {
    let overrides = Overrides {
        instances: ["http://127.0.0.1:1", "http://127.0.0.1:2"].map(str::to_owned).to_vec(),
        host: Some(IpAddr::V4(Ipv4Addr::LOCALHOST).to_string()),
        ..Overrides::default()
    };
    let config = Config::load(None, &std::iter::empty().collect::<Environment>(), &overrides)
        .expect("a configuration of two instances");
    Fleet::new(&config, Arc::new(Metrics::new("test")), Clock::start())
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 + seconds)
}

#[tokio::test]
async fn a_step_holds_what_came_since_the_one_before() {
    let fleet = fleet();
    let variant = Arc::clone(fleet.topology().variants().next().expect("one variant"));
    let mut history = History::default();
    assert!(!history.is_due(at(0)) && !history.is_due(at(4)) && history.is_due(at(5)));
    history.step(&fleet, BTreeMap::new(), at(5));
    let request = RouteRequest::default();
    let placed = variant.choose(&request, fleet.clock().now(), &mut rand_pcg::Pcg64::seed_from_u64(1));
    let placed = placed.expect("an instance");
    variant.metrics().decision(&placed.decision);
    placed.instance.metrics().prompt(&placed.decision, 1_000, Some(800));
    variant.metrics().first_token(Arm::Strategy, Reason::Home, Duration::from_millis(20));
    variant.metrics().first_token_by_outcome(CacheOutcome::Hit, Duration::from_millis(20));
    history.note_key(variant.endpoint(), variant.name(), true);
    history.step(&fleet, BTreeMap::new(), at(10));
    drop(placed);
    history.step(&fleet, BTreeMap::new(), at(15));

    let history = history.of(variant.endpoint(), variant.name()).expect("the variant's steps");
    let points: Vec<&VariantPoint> = history.points(POINTS).collect();
    assert_eq!(points.iter().map(|point| point.counts.decisions.iter().sum::<u64>()).collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!(points.iter().map(|point| point.in_flight).collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!((points[1].seconds, points[1].time), (5.0, 1_010.0));
    assert_eq!((points[1].served.cached_tokens, points[1].keys, points[1].repeats), (800, 1, 1));
    assert_eq!(points[1].counts.first_token[CacheOutcome::Hit as usize].count(), 1);
    assert_eq!(history.points(2).len(), 2);
}

#[tokio::test]
async fn as_many_steps_are_kept_as_make_a_quarter_of_an_hour() {
    let fleet = fleet();
    let mut history = History::default();
    (1..=200).for_each(|step| history.step(&fleet, BTreeMap::new(), at(5 * step)));
    let topology = fleet.topology();
    let variant = topology.variants().next().expect("one variant");
    let history = history.of(variant.endpoint(), variant.name()).expect("the variant's steps");
    assert_eq!(history.points(usize::MAX).len(), POINTS);
    let serial = variant.instances(fleet.clock().now())[0].instance.serial();
    assert_eq!(history.instance(serial, usize::MAX).len(), POINTS);
    assert!(history.instance(0, 9).is_empty());
}
