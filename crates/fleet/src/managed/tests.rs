//! What a control plane changes, and what lives on.

use std::sync::Arc;

use isotherm_core::{Availability, Evidence, Refusal, RouteRequest, Strategy};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::*;
use crate::testing::{config, fleet};
use crate::{ChangeError, IfLast, InstanceName, InstanceNow, Placement};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn instance(id: &str) -> ManagedInstance {
    ManagedInstance::new(id, format!("http://{id}:1").parse().unwrap())
}

fn on(host: &str, id: &str) -> ManagedInstance {
    ManagedInstance { host: Some(host.into()), ..instance(id) }
}

fn variant(text: &str, revision: u64, weight: f64, ids: &[&str]) -> ManagedVariant {
    ManagedVariant {
        name: name(text),
        revision,
        weight: TrafficWeight::new(weight).unwrap(),
        routing: Routing::default(),
        health: Health::default(),
        instances: ids.iter().map(|id| instance(id)).collect(),
    }
}

fn endpoint(variants: Vec<ManagedVariant>) -> ManagedEndpoint {
    ManagedEndpoint { name: "ep".into(), variants, shadow: None, components: None, async_output: None }
}

fn empty() -> Fleet {
    fleet(&config("endpoints: [{name: file, variants: [{name: v, instances: [{url: 'http://f'}]}]}]"))
}

fn found(fleet: &Fleet) -> Arc<Endpoint> {
    Arc::clone(fleet.topology().endpoint("ep").unwrap())
}

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

#[test]
fn what_stays_keeps_its_life_its_counters_and_its_health_while_the_strategy_switches() {
    let fleet = empty();
    fleet.put_endpoint(&endpoint(vec![variant("v", 1, 1.0, &["v-0", "v-1"])])).unwrap();
    let before = Arc::clone(found(&fleet).variant("v").unwrap());
    let _held = choose(&before, Some("v-1")).unwrap();
    let generation = instances(&before)[0].generation;
    before.observe(generation, Evidence::ConnectRefused, before.clock().now());

    let mut wanted = variant("v", 1, 1.0, &["v-2", "v-1", "v-0"]);
    wanted.routing.strategy = Strategy::Random;
    fleet.put_endpoint(&endpoint(vec![wanted])).unwrap();
    let after = found(&fleet);
    let after = after.variant("v").unwrap();
    assert!(Arc::ptr_eq(&before, after));
    assert_eq!(after.routing().strategy, Strategy::Random);
    assert_eq!(ids(after), ["v-0", "v-1", "v-2"]);
    let now = instances(after);
    assert_eq!((now[0].generation, now[0].availability), (generation, Availability::Down));
    assert_eq!((now[1].in_flight, now[2].in_flight), (1, 0));
}

#[test]
fn another_url_is_another_life() {
    let fleet = empty();
    fleet.put_endpoint(&endpoint(vec![variant("v", 1, 1.0, &["v-0"])])).unwrap();
    let before = instances(found(&fleet).variant("v").unwrap())[0].generation;
    let mut wanted = variant("v", 1, 1.0, &["v-0"]);
    wanted.instances[0].url = "http://elsewhere".parse().unwrap();
    fleet.put_endpoint(&endpoint(vec![wanted])).unwrap();
    assert_ne!(instances(found(&fleet).variant("v").unwrap())[0].generation, before);
}

#[test]
fn a_deployment_has_two_variants_of_one_name_and_traffic_goes_by_weight() {
    let fleet = empty();
    let (blue, green) = (|weight| variant("v", 1, weight, &["v-0"]), |weight| variant("v", 2, weight, &["v-1"]));
    fleet.put_endpoint(&endpoint(vec![blue(1.0)])).unwrap();
    let old = Arc::clone(found(&fleet).variant("v").unwrap());
    let held = choose(&old, None).unwrap();

    fleet.put_endpoint(&endpoint(vec![blue(0.75), green(0.25)])).unwrap();
    let both = found(&fleet);
    let share = |random: u64| both.pick_variant_named("v", random).unwrap().revision();
    assert_eq!([0, u64::MAX / 10 * 7, u64::MAX / 10 * 8].map(share), [1, 1, 2]);
    assert!(Arc::ptr_eq(&old, both.variant("v").unwrap()));
    // Where a request went that wants to come back is told by its instance.
    for revision in [1, 2] {
        let variant = both.all_variants().find(|variant| variant.revision() == revision).unwrap();
        let location = Arc::clone(instances(variant)[0].instance.location());
        assert!(Arc::ptr_eq(fleet.topology().variant_at(&location).unwrap(), variant));
    }

    fleet.put_endpoint(&endpoint(vec![blue(0.0), green(1.0)])).unwrap();
    assert_eq!([0, u64::MAX].map(|random| found(&fleet).pick_variant(random).unwrap().revision()), [2, 2]);
    fleet.put_endpoint(&endpoint(vec![green(1.0)])).unwrap();
    assert!(instances(&old).is_empty(), "its lives have ended");
    drop(held);
    assert_eq!(found(&fleet).variants().len(), 1);
}

#[test]
fn who_asks_for_a_variant_by_name_gets_it_even_where_its_share_is_nothing() {
    let fleet = empty();
    fleet.put_endpoint(&endpoint(vec![variant("a", 1, 1.0, &[]), variant("b", 1, 0.0, &[])])).unwrap();
    let endpoint = found(&fleet);
    assert_eq!(&**endpoint.pick_variant_named("b", 7).unwrap().name(), "b");
    assert!(endpoint.pick_variant_named("c", 7).is_none());
}

#[test]
fn a_draining_instance_takes_nothing_new_and_keeps_what_it_has() {
    let fleet = empty();
    fleet.put_endpoint(&endpoint(vec![variant("v", 1, 1.0, &["v-0", "v-1"])])).unwrap();
    let mut wanted = variant("v", 1, 1.0, &["v-0", "v-1"]);
    let v = Arc::clone(found(&fleet).variant("v").unwrap());
    let _held = choose(&v, Some("v-1")).unwrap();
    wanted.instances[1].draining = true;
    fleet.put_endpoint(&endpoint(vec![wanted])).unwrap();
    assert_eq!(instances(&v)[1].availability, Availability::Draining);
    assert_eq!(instances(&v)[1].in_flight, 1);
    for _ in 0..5 {
        assert_eq!(choose(&v, None).unwrap().instance.id().as_str(), "v-0");
    }
}

#[test]
fn components_are_routed_over_their_copies_and_adapters_over_their_bases() {
    let fleet = empty();
    let base = |copies: Vec<ManagedInstance>| ManagedComponent {
        name: name("base"),
        production_variant: name("v"),
        kind: ComponentKind::Base { routing: Routing::default(), health: Health::default(), copies },
    };
    let adapter = ManagedComponent {
        name: name("tuned"),
        production_variant: name("v"),
        kind: ComponentKind::Adapter { base: name("base"), copies: vec!["base-1".into()] },
    };
    let wanted =
        |components| ManagedEndpoint { components: Some(components), ..endpoint(vec![variant("v", 1, 1.0, &[])]) };
    fleet.put_endpoint(&wanted(vec![])).unwrap();
    assert!(found(&fleet).has_components() && !fleet.topology().endpoint("file").unwrap().has_components());

    // In whatever order they come.
    let copies = || vec![on("v-0", "base-0"), on("v-1", "base-1")];
    fleet.put_endpoint(&wanted(vec![adapter.clone(), base(copies())])).unwrap();
    let endpoint = found(&fleet);
    let (base_component, tuned) = (endpoint.component("base").unwrap(), endpoint.component("tuned").unwrap());
    assert_eq!(&**base_component.variant.name(), "v/base");
    assert_eq!(&*tuned.production_variant, "v");
    assert!(Arc::ptr_eq(&base_component.variant, &tuned.variant));
    assert_eq!(tuned.adapter.as_ref().unwrap().copies, ["base-1".into()]);
    assert_eq!(ids(&tuned.variant), ["base-0", "base-1"]);
    assert_eq!(fleet.topology().variants().count(), 3, "the file's, the endpoint's, the component's");
    assert!(endpoint.has_eligible(fleet.clock().now()));
    // Else a request that was led there would look for ever: it looks again where what it found is no longer served.
    let topology = fleet.topology();
    let is_served = |variant: &Arc<Variant>| topology.variants().any(|served| Arc::ptr_eq(served, variant));
    assert!(endpoint.components().iter().all(|component| is_served(&component.variant)));

    // A copy more leaves the others' lives as they are.
    let generation = instances(&tuned.variant)[0].generation;
    let more = copies().into_iter().chain([on("v-0", "base-2")]).collect();
    fleet.put_endpoint(&wanted(vec![base(more)])).unwrap();
    assert!(found(&fleet).component("tuned").is_none());
    assert_eq!(instances(&tuned.variant)[0].generation, generation);

    let error = fleet.put_endpoint(&wanted(vec![adapter])).unwrap_err().to_string();
    assert_eq!(error, r#"component "tuned" lies on component "base", which the endpoint does not have"#);
    assert!(found(&fleet).component("base").is_some(), "nothing was changed");
}

#[test]
fn the_file_and_the_control_plane_leave_each_others_endpoints_alone() {
    let fleet = empty();
    let mine = || endpoint(vec![variant("v", 1, 1.0, &["v-0"])]);
    let file = ManagedEndpoint { name: "file".into(), ..mine() };
    assert!(fleet.put_endpoint(&file).unwrap_err().to_string().contains("comes from the configuration file"));
    assert!(!fleet.remove_endpoint("file"));

    fleet.put_endpoint(&mine()).unwrap();
    let lives = Arc::clone(found(&fleet).variant("v").unwrap());
    fleet.apply(&config(
        "endpoints: [{name: other, variants: [{name: v, instances: []}]}, \
         {name: ep, variants: [{name: v, instances: []}]}]",
    ));
    let names: Vec<_> = fleet.topology().endpoints().iter().map(|endpoint| endpoint.name().to_string()).collect();
    assert_eq!(names, ["other", "ep"], "the file's come first: they have the default one");
    assert_eq!(ids(&lives), ["v-0"]);

    let held = choose(&lives, None).unwrap();
    assert!(fleet.remove_endpoint("ep"));
    assert!(fleet.topology().endpoint("ep").is_none());
    assert!(ids(&lives).is_empty());
    drop(held);
}

#[test]
fn the_admin_api_drains_but_neither_adds_nor_removes_what_is_managed() {
    let fleet = empty();
    fleet.put_endpoint(&endpoint(vec![variant("v", 1, 1.0, &["v-0"])])).unwrap();
    let one = InstanceName { id: "v-0", endpoint: Some("ep"), variant: None };
    assert!(matches!(fleet.remove_instance(one, IfLast::Remove), Err(ChangeError::Managed { .. })));
    assert_eq!(fleet.set_draining(one, true).unwrap().availability, "draining");
    fleet.put_endpoint(&endpoint(vec![variant("v", 1, 1.0, &["v-0"])])).unwrap();
    assert_eq!(fleet.list().iter().find(|one| &*one.id == "v-0").unwrap().availability, "draining");
}
