//! What a reload changes, and what it leaves alone.

use std::sync::Arc;

use isotherm_core::{Availability, Evidence, InstanceId, Refusal, RouteRequest, Strategy, Weight};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::testing::{config, fleet, one_variant, variant};
use crate::{Fleet, InstanceName, InstanceNow, NewInstance, Origin, Placement, Variant};

const A: &str = "{url: 'http://a:1'}";
const B: &str = "{url: 'http://b:1'}";

fn instances(variant: &Variant) -> Vec<InstanceNow> {
    variant.instances(variant.clock().now())
}

fn ids(variant: &Variant) -> Vec<String> {
    instances(variant).iter().map(|one| one.instance.id().to_string()).collect()
}

fn choose(variant: &Arc<Variant>, pinned: Option<&str>) -> Result<Placement, Refusal> {
    let pinned = pinned.map(InstanceId::from);
    let request = RouteRequest { pinned: pinned.as_ref(), ..RouteRequest::default() };
    variant.choose(&request, variant.clock().now(), &mut Pcg64::seed_from_u64(0))
}

fn by_api(url: &str) -> NewInstance {
    NewInstance {
        endpoint: None,
        variant: None,
        id: None,
        url: url.parse().unwrap(),
        weight: Weight::ONE,
        max_in_flight: None,
        api_key: None,
        origin: Origin::Api,
    }
}

fn named(id: &str) -> InstanceName<'_> {
    InstanceName { id, endpoint: None, variant: None }
}

#[test]
fn what_stays_keeps_its_life_its_counters_and_its_health() {
    let fleet = fleet(&one_variant("", &[A, B]));
    let variant = variant(&fleet);
    let _held = choose(&variant, Some("http://b:1")).unwrap();
    let generation = instances(&variant)[0].generation;
    variant.observe(generation, Evidence::ConnectRefused, variant.clock().now());

    let changed = one_variant(
        "routing: {strategy: RANDOM}, weight: 3,",
        &["{url: 'http://c:1'}", "{url: 'http://b:1', weight: 2, max_in_flight: 7}", A],
    );
    fleet.apply(&changed);
    assert!(Arc::ptr_eq(&variant, &self::variant(&fleet)), "the variant is the same");
    assert_eq!(variant.routing().strategy, Strategy::Random);
    assert_eq!(ids(&variant), ["http://a:1", "http://b:1", "http://c:1"]);
    let after = instances(&variant);
    assert_eq!((after[0].generation, after[0].availability), (generation, Availability::Down));
    assert_eq!((after[1].in_flight, after[1].weight.get(), after[1].max_in_flight.unwrap().get()), (1, 2.0, 7));
}

#[test]
fn what_the_file_no_longer_lists_is_removed_and_its_requests_end_undisturbed() {
    let fleet = fleet(&one_variant("", &[A, B]));
    let variant = variant(&fleet);
    let held = choose(&variant, Some("http://b:1")).unwrap();
    fleet.apply(&one_variant("", &[A]));
    assert_eq!(ids(&variant), ["http://a:1"]);
    assert_eq!(&**held.instance.address().url(), "http://b:1");
    drop(held);
    assert_eq!(instances(&variant)[0].in_flight, 0);
}

#[test]
fn another_url_under_the_same_id_is_another_life_and_still_drained() {
    let fleet = fleet(&one_variant("", &["{id: x, url: 'http://a:1'}", B]));
    let variant = variant(&fleet);
    let _held = choose(&variant, Some("x")).unwrap();
    fleet.set_draining(named("x"), true).unwrap();
    let before = instances(&variant)[0].clone();
    fleet.apply(&one_variant("", &["{id: x, url: 'http://a:2'}", B]));
    let after = instances(&variant).into_iter().find(|one| one.instance.id().as_str() == "x").unwrap();
    assert_ne!(after.generation, before.generation);
    assert_eq!((&**after.instance.address().url(), after.in_flight), ("http://a:2", 0));
    assert_eq!(after.availability, Availability::Draining);
}

#[test]
fn a_reload_leaves_alone_what_the_admin_api_did() {
    let fleet = fleet(&one_variant("", &[A, B]));
    let variant = variant(&fleet);
    fleet.add_instance(by_api("http://api:1")).unwrap();
    fleet.set_draining(named("http://a:1"), true).unwrap();
    fleet.remove_instance(named("http://b:1"), crate::IfLast::Keep).unwrap();

    fleet.apply(&one_variant("", &[A, B, "{url: 'http://c:1'}"]));
    assert_eq!(ids(&variant), ["http://a:1", "http://api:1", "http://c:1"]);
    assert_eq!(instances(&variant)[0].availability, Availability::Draining);

    // Once the file did not list it, it may list it again.
    fleet.apply(&one_variant("", &[A]));
    assert_eq!(ids(&variant), ["http://a:1", "http://api:1"]);
    fleet.apply(&one_variant("", &[A, B]));
    assert_eq!(ids(&variant), ["http://a:1", "http://api:1", "http://b:1"]);
}

#[test]
fn an_instance_of_the_api_stays_its_own_when_the_file_lists_it_too() {
    let fleet = fleet(&one_variant("", &[A]));
    fleet.add_instance(by_api("http://b:1")).unwrap();
    fleet.apply(&one_variant("", &[A, B]));
    fleet.apply(&one_variant("", &[A]));
    assert_eq!(ids(&variant(&fleet)), ["http://a:1", "http://b:1"]);
}

fn two_endpoints(second: &str) -> Fleet {
    fleet(&config(&format!("endpoints: [{{name: first, variants: [{{name: v, instances: [{A}]}}]}}, {second}]")))
}

#[test]
fn no_series_stays_of_what_was_removed() {
    let fleet = fleet(&one_variant("", &[A, B]));
    let series = || {
        fleet.refresh_gauges();
        let text = fleet.metrics().expose(None).body;
        text.lines().filter(|line| line.contains("instance_id=\"http://b:1\"")).count()
    };
    let held = choose(&variant(&fleet), Some("http://b:1")).unwrap();
    assert!(series() > 0);
    fleet.apply(&one_variant("", &[A]));
    // Until its last request has ended, there is something to tell of it.
    drop(held);
    assert_eq!(series(), 0);
}

#[test]
fn equal_names_in_two_endpoints_share_nothing() {
    let fleet = two_endpoints(&format!("{{name: second, variants: [{{name: v, instances: [{A}]}}]}}"));
    let topology = Arc::clone(&fleet.topology());
    let [first, second] = ["first", "second"].map(|name| topology.endpoint(name).unwrap().variant("v").unwrap());
    let _held = choose(first, None).unwrap();
    first.observe(instances(first)[0].generation, Evidence::ConnectRefused, first.clock().now());
    let state = |variant| (instances(variant)[0].in_flight, instances(variant)[0].availability);
    assert_eq!((ids(first), state(first)), (ids(second), (1, Availability::Down)));
    assert_eq!(state(second), (0, Availability::Up));
}

#[test]
fn endpoints_and_variants_come_and_go_and_requests_in_what_is_gone_end() {
    let fleet = two_endpoints(
        "{name: second, variants: [{name: one, instances: [{url: 'http://b:1'}]}, {name: two, instances: []}]}",
    );
    let before = Arc::clone(&fleet.topology());
    let gone = Arc::clone(before.endpoint("second").unwrap().variant("one").unwrap());
    let held = choose(&gone, None).unwrap();
    fleet.apply(&config(&format!(
        "endpoints: [{{name: third, variants: [{{name: v, instances: [{B}]}}]}}, \
         {{name: first, variants: [{{name: v, instances: [{A}]}}]}}]"
    )));
    let after = fleet.topology();
    let names: Vec<_> = after.endpoints().iter().map(|endpoint| endpoint.name().to_string()).collect();
    assert_eq!(names, ["third", "first"]);
    assert!(after.endpoint("second").is_none());
    assert!(after.variant_at(held.instance.location()).is_none());
    assert_eq!(choose(&gone, None).unwrap_err(), Refusal::NoInstance);
    let (kept, before) = (after.endpoint("first").unwrap(), before.endpoint("first").unwrap());
    assert!(Arc::ptr_eq(kept.variant("v").unwrap(), before.variant("v").unwrap()));
    assert_eq!(gone.waiting(), 0);
    drop(held);
}

#[test]
fn a_key_of_the_file_goes_out_as_a_bearer_token_and_never_into_debug_output() {
    use isotherm_config::{Config, Environment, Overrides};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("isotherm.yaml");
    let yaml = "endpoints: [{name: e, variants: [{name: v, instances: [{url: 'http://a', api_key_env: KEY}]}]}]";
    std::fs::write(&path, yaml).unwrap();
    let environment: Environment = [("KEY".to_owned(), "sk-secret".to_owned())].into_iter().collect();
    let fleet = fleet(&Config::load(Some(&path), &environment, &Overrides::default()).unwrap());
    let instance = Arc::clone(&instances(&variant(&fleet))[0].instance);
    assert_eq!(instance.authorization().unwrap(), "Bearer sk-secret");
    assert!(!format!("{fleet:?}").contains("sk-secret"));
}
