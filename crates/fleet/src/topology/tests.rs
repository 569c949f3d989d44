//! Which endpoint and which variant a request goes to.

use std::sync::Arc;

use isotherm_core::{Evidence, ModelHash};

use crate::listing::Listing;
use crate::testing::{config, fleet};
use crate::{Fleet, Serving, Variant};

/// Two endpoints of two instances each; the first is the default one.
fn two_endpoints() -> Fleet {
    fleet(&config(
        "endpoints: [{name: chat, variants: [{name: v, instances: [{url: 'http://a'}, {url: 'http://b'}]}]}, \
         {name: code, variants: [{name: v, instances: [{url: 'http://c'}, {url: 'http://d'}]}]}]",
    ))
}

fn variant_of(fleet: &Fleet, endpoint: &str) -> Arc<Variant> {
    Arc::clone(fleet.topology().endpoint(endpoint).unwrap().variant("v").unwrap())
}

/// The instance of that place in its variant lists these models.
fn lists(fleet: &Fleet, endpoint: &str, place: usize, models: &[&str]) {
    let objects: Vec<_> = models.iter().map(|id| format!("{{\"id\":\"{id}\",\"by\":\"{endpoint}{place}\"}}")).collect();
    let body = format!("{{\"data\":[{}]}}", objects.join(","));
    let variant = variant_of(fleet, endpoint);
    let one = variant.instances(variant.clock().now()).remove(place);
    one.instance.set_listing(Arc::new(Listing::parse(body.as_bytes()).unwrap().unwrap()));
    fleet.listings_changed();
}

fn serving(fleet: &Fleet, model: &str) -> Option<String> {
    match fleet.topology().serving(None, Some(ModelHash::of(model))) {
        Serving::Endpoint(endpoint) => Some(endpoint.name().to_string()),
        Serving::Nowhere => None,
        Serving::NoEndpoint => panic!("there are two"),
    }
}

#[test]
fn a_model_goes_to_the_endpoint_that_lists_it_and_the_default_one_comes_first() {
    let fleet = two_endpoints();
    assert_eq!(serving(&fleet, "x").as_deref(), Some("chat"), "nobody has said anything");
    lists(&fleet, "code", 0, &["x", "both"]);
    assert_eq!(serving(&fleet, "x").as_deref(), Some("code"), "the one that surely serves it");
    assert_eq!(serving(&fleet, "z").as_deref(), Some("chat"));
    lists(&fleet, "chat", 0, &["both"]);
    assert_eq!(serving(&fleet, "both").as_deref(), Some("chat"));
    assert_eq!(serving(&fleet, "z").as_deref(), Some("chat"), "its second instance has not said");
    lists(&fleet, "chat", 1, &["both"]);
    assert_eq!(serving(&fleet, "z").as_deref(), Some("code"), "only there someone has not said");
    lists(&fleet, "code", 1, &["x"]);
    assert_eq!(serving(&fleet, "z"), None, "everybody has said, nobody lists it");
    assert!(
        matches!(fleet.topology().serving(None, None), Serving::Endpoint(endpoint) if **endpoint.name() == *"chat")
    );
}

#[test]
fn an_endpoint_without_instances_might_serve_anything_once_it_has_some() {
    let fleet = fleet(&config("endpoints: [{name: chat, variants: [{name: v, instances: []}]}]"));
    assert_eq!(serving(&fleet, "x").as_deref(), Some("chat"), "so that the answer is 503, not 404");
}

#[test]
fn models_are_the_union_without_duplicates_as_the_engines_wrote_them() {
    let fleet = two_endpoints();
    lists(&fleet, "chat", 1, &["both", "x"]);
    lists(&fleet, "code", 0, &["both", "y"]);
    let objects: Vec<_> = fleet.topology().models(|_| true).iter().map(|model| model.object().to_owned()).collect();
    let expected = [r#"{"id":"both","by":"chat1"}"#, r#"{"id":"x","by":"chat1"}"#, r#"{"id":"y","by":"code0"}"#];
    assert_eq!(objects, expected);
}

#[test]
fn variants_are_picked_by_their_share_of_traffic() {
    let fleet = fleet(&config(
        "endpoints: [{name: e, variants: [{name: a, weight: 1, instances: []}, {name: b, weight: 0, instances: []}, \
         {name: c, weight: 3, instances: []}]}]",
    ));
    let topology = fleet.topology();
    let endpoint = topology.default_endpoint().unwrap();
    let mut counts = [0u32; 3];
    for step in 0..4_000u64 {
        let picked = endpoint.pick_variant((2 * step + 1) * (u64::MAX / 8_000)).unwrap();
        counts[usize::from(picked.name().as_bytes()[0] - b'a')] += 1;
    }
    assert_eq!(counts, [1_000, 0, 3_000]);
    assert_eq!(&**endpoint.pick_variant(u64::MAX).unwrap().name(), "c");
}

#[test]
fn a_fleet_is_eligible_while_one_is_and_ready_once_one_was_heard_of() {
    let fleet = two_endpoints();
    let now = fleet.clock().now();
    assert!(fleet.topology().has_eligible(now), "until a probe says otherwise");
    assert!(!fleet.is_ready(), "nobody was heard of");
    let chat = variant_of(&fleet, "chat");
    chat.instances(now)[0].instance.note_byte(now);
    assert!(fleet.is_ready());
    for variant in fleet.topology().variants() {
        for one in variant.instances(now) {
            assert!(fleet.topology().has_eligible(now));
            variant.observe(one.generation, Evidence::ConnectRefused, now);
        }
    }
    assert!(!fleet.topology().has_eligible(now) && !fleet.is_ready());
    let generation = chat.instances(now)[1].generation;
    chat.observe(generation, Evidence::ProbeAnswered, now);
    assert!(fleet.topology().default_endpoint().unwrap().has_eligible(now));
    assert!(!fleet.topology().endpoint("code").unwrap().has_eligible(now));
    chat.set_draining(&"http://b".into(), true);
    assert!(!fleet.topology().has_eligible(now));
}
