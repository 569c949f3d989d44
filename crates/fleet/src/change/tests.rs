//! What the admin API may change, and how it is told what it may not.

use isotherm_core::{Availability, Evidence, RouteRequest, Weight};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::*;
use crate::Problem;
use crate::problem::ProblemKind;
use crate::testing::{config, fleet, one_variant, variant};

fn new(url: &str) -> NewInstance {
    NewInstance {
        endpoint: None,
        variant: None,
        id: None,
        url: url.parse().unwrap(),
        weight: Weight::ONE,
        max_in_flight: NonZeroU32::new(3),
        api_key: None,
        origin: Origin::Api,
    }
}

fn named(id: &str) -> InstanceName<'_> {
    InstanceName { id, endpoint: None, variant: None }
}

#[test]
fn an_instance_is_added_listed_drained_and_removed() {
    let fleet = fleet(&one_variant("", &["{url: 'http://a:1'}"]));
    let added = fleet.add_instance(new("http://B:1/")).unwrap();
    assert_eq!((&*added.id, &*added.url, added.origin), ("http://b:1", "http://b:1", "api"));
    assert_eq!((&*added.endpoint, &*added.variant, added.max_in_flight), ("chat", "main", Some(3)));
    assert_eq!((added.availability, added.in_flight, added.models), ("up", 0, None));
    let list = fleet.list();
    assert_eq!(list.iter().map(|status| status.origin).collect::<Vec<_>>(), ["file", "api"]);

    let variant = variant(&fleet);
    let now = variant.clock().now();
    let held = variant.choose(&RouteRequest::default(), now, &mut Pcg64::seed_from_u64(0)).unwrap();
    let id = held.instance.id().to_string();
    assert_eq!(fleet.set_draining(named(&id), true).unwrap().availability, "draining");
    assert_eq!(fleet.set_draining(named(&id), false).unwrap().availability, "up");
    assert_eq!(fleet.remove_instance(named(&id), IfLast::Keep).unwrap().in_flight, 1);
    assert_eq!(fleet.list().len(), 1);
}

#[test]
fn what_is_not_there_or_not_clear_is_told_with_what_there_is() {
    let fleet = fleet(&config(
        "endpoints: [{name: chat, variants: [{name: one, instances: [{url: 'http://a:1'}]}, \
         {name: two, instances: [{url: 'http://a:1'}]}]}, {name: code, variants: [{name: one, instances: []}]}]",
    ));
    let at = |endpoint: Option<&str>, variant: Option<&str>| NewInstance {
        endpoint: endpoint.map(str::to_owned),
        variant: variant.map(str::to_owned),
        ..new("http://a:1")
    };
    let messages = [
        fleet.add_instance(at(Some("chat2"), None)),
        fleet.add_instance(at(None, None)),
        fleet.add_instance(at(None, Some("three"))),
        fleet.add_instance(at(None, Some("one"))),
        fleet.add_instance(NewInstance { id: Some("other".into()), ..at(None, Some("one")) }),
        fleet.set_draining(named("http://b:1"), true),
        fleet.set_draining(named("http://a:1"), true),
        fleet.remove_instance(InstanceName { variant: Some("one"), ..named("http://a:1") }, IfLast::Keep),
    ]
    .map(|outcome| outcome.unwrap_err().to_string());
    let expected = [
        r#"there is no endpoint "chat2"; there are: chat, code"#,
        r#"endpoint "chat" has more than one variant: name one of one, two"#,
        r#"endpoint "chat" has no variant "three"; it has: one, two"#,
        r#"http://a:1 is there already as instance "http://a:1""#,
        r#"http://a:1 is there already as instance "http://a:1""#,
        r#"there is no instance "http://b:1" there"#,
        r#"instance "http://a:1" is in chat/one and in chat/two: name the endpoint and the variant"#,
        r#""http://a:1" is the last instance of variant "one": without it nothing would answer; add another one first"#,
    ];
    assert_eq!(messages, expected);
    assert_eq!(fleet.add_instance(at(Some("code"), None)).unwrap().variant, "one".into());
    let one = InstanceName { endpoint: Some("chat"), variant: Some("one"), ..named("http://a:1") };
    fleet.remove_instance(one, IfLast::Remove).unwrap();
    assert_eq!(fleet.list().len(), 2);
}

#[test]
fn what_was_removed_can_be_added_again_and_then_belongs_to_the_api() {
    let fleet = fleet(&one_variant("", &["{url: 'http://a:1'}", "{url: 'http://b:1'}"]));
    fleet.remove_instance(named("http://a:1"), IfLast::Keep).unwrap();
    fleet.add_instance(new("http://a:1")).unwrap();
    fleet.apply(&one_variant("", &["{url: 'http://b:1'}"]));
    let origins: Vec<_> = fleet.list().iter().map(|status| (status.id.clone(), status.origin)).collect();
    assert_eq!(origins, [("http://b:1".into(), "file"), ("http://a:1".into(), "api")]);
}

#[test]
fn a_listing_says_how_an_instance_stands() {
    let fleet = fleet(&one_variant("", &["{url: 'http://a:1', weight: 0.5}"]));
    let variant = variant(&fleet);
    let one = variant.instances(variant.clock().now()).remove(0);
    for _ in 0..5 {
        variant.observe(one.generation, Evidence::RequestFailed, variant.clock().now());
    }
    one.instance.set_problem(Some(Problem::new(&"connection refused", ProblemKind::Refused)));
    let status = serde_json::to_value(fleet.list().remove(0)).unwrap();
    let ejected_for = status["ejected_for_seconds"].as_f64().unwrap();
    assert!((9.0..=10.0).contains(&ejected_for), "{ejected_for}");
    let since: jiff::Timestamp = status["since"].as_str().unwrap().parse().unwrap();
    assert!((jiff::Timestamp::now() - since).get_seconds().abs() < 60);
    let mut rest = status.clone();
    for key in ["ejected_for_seconds", "since"] {
        rest.as_object_mut().unwrap().remove(key);
    }
    let expected = serde_json::json!({
        "id": "http://a:1", "endpoint": "chat", "variant": "main", "url": "http://a:1", "availability": "ejected",
        "problem": "connection refused",
        "problem_detail": { "message": "connection refused", "kind": "refused" }, "in_flight": 0, "max_in_flight": null, "weight": 0.5, "models": null,
        "origin": "file"
    });
    assert_eq!(rest, expected);
    variant.observe(one.generation, Evidence::ConnectRefused, variant.clock().now());
    assert_eq!(variant.instances(variant.clock().now())[0].availability, Availability::Down);
    assert_eq!(fleet.list()[0].ejected_for_seconds, None);
}

#[test]
fn a_strategy_is_switched_in_place_and_only_where_the_file_says_what_it_is() {
    use crate::{ManagedEndpoint, ManagedVariant};

    let fleet = fleet(&one_variant("", &["{url: 'http://a:1'}"]));
    let random = |routing: Routing| Routing { strategy: isotherm_core::Strategy::Random, ..routing };
    let variant = variant(&fleet);
    fleet.set_routing("chat", "main", random).unwrap();
    assert_eq!(variant.routing().strategy, isotherm_core::Strategy::Random);
    assert_eq!(fleet.list().len(), 1, "its instances stay");
    let missing = fleet.set_routing("chat", "other", random).unwrap_err().to_string();
    assert_eq!(missing, r#"endpoint "chat" has no variant "other"; it has: main"#);

    let managed = ManagedEndpoint {
        name: "llama".into(),
        variants: vec![ManagedVariant {
            name: "blue".parse().unwrap(),
            revision: 1,
            weight: isotherm_config::TrafficWeight::new(1.0).unwrap(),
            routing: Routing::default(),
            health: isotherm_config::Health::default(),
            instances: Vec::new(),
        }],
        shadow: None,
        components: None,
        async_output: None,
    };
    fleet.put_endpoint(&managed).unwrap();
    let refused = fleet.set_routing("llama", "blue", random).unwrap_err();
    assert_eq!(refused, ChangeError::ManagedRouting { endpoint: "llama".into() });
}
