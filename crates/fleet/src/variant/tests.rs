//! What sharing a variant adds to choosing: slots that come back by themselves, and the queue.

use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use std::sync::atomic::{AtomicUsize, Ordering};

use isotherm_core::{Evidence, InstanceId, InstanceSpec, ModelHash, Models, Refusal, RouteRequest};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::{Bounds, LONGEST_FOR_HOME, NotPlaced, Placement, Rank, Variant, Waiting};
use crate::testing::{FakeInstance, Reply, eventually, fleet, one_variant, variant as first_variant};

const ANY: RouteRequest<'static> =
    RouteRequest { key: None, prompt: None, model: None, pinned: None, within: None, tried: &[] };

/// A variant of instances `a`, `b`, … that take one request each.
fn variant(n: usize) -> Arc<Variant> {
    let instances: Vec<_> =
        ('a'..).take(n).map(|id| format!("{{id: {id}, url: \"http://{id}\", max_in_flight: 1}}")).collect();
    let instances: Vec<_> = instances.iter().map(String::as_str).collect();
    first_variant(&fleet(&one_variant("", &instances)))
}

fn choose(variant: &Arc<Variant>, request: &RouteRequest<'_>) -> Result<Placement, Refusal> {
    variant.choose(request, variant.clock().now(), &mut Pcg64::seed_from_u64(0))
}

fn wait(variant: &Arc<Variant>, request: &RouteRequest<'_>) -> Waiting {
    wait_as(variant, request, Rank::default())
}

fn wait_as(variant: &Arc<Variant>, request: &RouteRequest<'_>, rank: Rank<'_>) -> Waiting {
    variant.wait(request, rank, &mut Pcg64::seed_from_u64(0), Bounds { waiting: 10, bytes: 1_000 })
}

/// Counts how often it is woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Bell {
    fn rings(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn poll(waiting: &mut Waiting, bell: &Arc<Bell>) -> Poll<Result<Placement, NotPlaced>> {
    Pin::new(waiting).poll(&mut Context::from_waker(&Waker::from(Arc::clone(bell))))
}

fn look(waiting: &mut Waiting) -> Poll<Result<Placement, NotPlaced>> {
    poll(waiting, &Arc::default())
}

fn in_flight(variant: &Variant) -> Vec<u32> {
    variant.instances(variant.clock().now()).iter().map(|one| one.in_flight).collect()
}

#[test]
fn a_slot_counts_until_it_is_dropped() {
    let variant = variant(2);
    let placement = choose(&variant, &ANY).unwrap();
    assert_eq!(in_flight(&variant), [1, 0]);
    assert_eq!(placement.instance.metrics().in_flight().get(), 1);
    let instance = Arc::clone(&placement.instance);
    drop(placement);
    assert_eq!(in_flight(&variant), [0, 0]);
    assert_eq!(instance.metrics().in_flight().get(), 0);
}

#[tokio::test]
async fn neither_probes_nor_an_engine_that_says_it_is_full_change_a_count_or_stop_a_request() {
    let engine = FakeInstance::start().await;
    let full = "vllm:num_requests_running 1000\nvllm:num_requests_waiting 100000\nvllm:kv_cache_usage_perc 1.0\n";
    engine.answer("/metrics", Reply::Http(200, full.to_owned()));
    let settings = "health: {interval: 10ms, timeout: 40ms}, engine_metrics: {interval: 10ms, timeout: 20ms},";
    let fleet = fleet(&one_variant(settings, &[&format!("{{url: '{}'}}", engine.url())]));
    let variant = first_variant(&fleet);
    let held: Vec<_> = (0..5).map(|_| choose(&variant, &ANY).unwrap()).collect();
    let _tasks = fleet.spawn();
    let report = || variant.instances(variant.clock().now()).remove(0).instance.engine();
    eventually("it says that it is full", || report().figures.is_some()).await;
    // Three times as many as some gateway took to begin anew.
    eventually("probed often", || engine.times_asked("/health") >= 30).await;
    assert_eq!(in_flight(&variant), [5]);
    // And from then on says nothing.
    engine.answer("/metrics", Reply::Nothing);
    eventually("its figures are old", || report().problem.is_some()).await;
    let another = choose(&variant, &ANY).unwrap();
    assert_eq!(in_flight(&variant), [6]);
    drop((held, another));
    assert_eq!(in_flight(&variant), [0]);
}

#[test]
fn a_slot_outlives_its_instance_and_frees_nothing_in_the_next_life() {
    let variant = variant(1);
    let old = choose(&variant, &ANY).unwrap();
    let (spec, again) = (InstanceSpec::new("a"), Arc::clone(&old.instance));
    variant.remove(&InstanceId::from("a"), "test");
    variant.add(spec, again);
    let _new = choose(&variant, &ANY).unwrap();
    drop(old);
    assert_eq!(in_flight(&variant), [1]);
}

#[test]
fn who_waits_longest_gets_the_room_and_no_newcomer_takes_it_away() {
    let variant = variant(1);
    let held = choose(&variant, &ANY).unwrap();
    let bells: [Arc<Bell>; 2] = Default::default();
    let (mut first, mut second) = (wait(&variant, &ANY), wait(&variant, &ANY));
    assert!(poll(&mut first, &bells[0]).is_pending() && poll(&mut second, &bells[1]).is_pending());
    assert_eq!(variant.waiting(), 2);
    assert_eq!(variant.metrics().waiting().get(), 2);

    drop(held);
    assert_eq!(bells.each_ref().map(|bell| bell.rings()), [1, 0]);
    assert_eq!(choose(&variant, &ANY).unwrap_err(), Refusal::Full, "the room is the first waiter's");
    assert!(look(&mut second).is_pending());
    let Poll::Ready(Ok(placement)) = look(&mut first) else { panic!("the first was placed") };

    drop(placement);
    let Poll::Ready(Ok(_placement)) = look(&mut second) else { panic!("then the second") };
    assert_eq!(variant.waiting(), 0);
    assert_eq!(variant.metrics().waiting().get(), 0);
}

#[test]
fn a_waiter_that_leaves_passes_its_room_on() {
    let variant = variant(1);
    let held = choose(&variant, &ANY).unwrap();
    let (first, mut second) = (wait(&variant, &ANY), wait(&variant, &ANY));
    drop(held);
    // The first has the room by now, and goes without having looked.
    drop(first);
    let Poll::Ready(Ok(placement)) = look(&mut second) else { panic!("the second was placed") };
    drop(placement);
    assert_eq!(in_flight(&variant), [0]);
}

#[test]
fn a_waiter_that_leaves_without_room_takes_nothing_with_it() {
    let variant = variant(1);
    let held = choose(&variant, &ANY).unwrap();
    drop(wait(&variant, &ANY));
    assert_eq!(variant.waiting(), 0);
    drop(held);
    assert_eq!(in_flight(&variant), [0]);
}

#[test]
fn the_queue_is_bounded_and_room_found_on_the_way_in_needs_no_place() {
    let variant = variant(1);
    let rng = &mut Pcg64::seed_from_u64(0);
    let mut wait = |waiting| variant.wait(&ANY, Rank::default(), rng, Bounds { waiting, bytes: 0 });
    let Poll::Ready(Ok(_held)) = look(&mut wait(0)) else { panic!("there was room") };
    let mut first = wait(1);
    assert_eq!(displaced(&mut [&mut wait(1), &mut first]), [true, false]);
    assert_eq!(variant.waiting(), 1);
}

#[test]
fn the_bytes_that_wait_are_bounded() {
    let variant = variant(1);
    let _held = choose(&variant, &ANY).unwrap();
    let of = |bytes| wait_as(&variant, &ANY, Rank { bytes, ..Rank::default() });
    let (mut small, mut large, mut next) = (of(600), of(500), of(400));
    assert_eq!(displaced(&mut [&mut small, &mut large, &mut next]), [false, true, false]);
    drop(small);
    assert_eq!(displaced(&mut [&mut next, &mut of(601)]), [false, true]);
}

fn displaced(waiting: &mut [&mut Waiting]) -> Vec<bool> {
    waiting.iter_mut().map(|one| matches!(look(one), Poll::Ready(Err(NotPlaced::Displaced)))).collect()
}

/// Gives room to one after the other, and tells in which order they get it.
fn order_of(variant: &Arc<Variant>, held: Placement, mut waiting: Vec<(&'static str, Waiting)>) -> Vec<&'static str> {
    let mut order = Vec::new();
    let mut held = Some(held);
    while !waiting.is_empty() {
        drop(held.take());
        let index = waiting.iter_mut().position(|(_, one)| match look(one) {
            Poll::Ready(Ok(placement)) => held.replace(placement).is_none(),
            _ => false,
        });
        order.push(waiting.remove(index.expect("somebody is placed")).0);
    }
    assert_eq!(variant.waiting(), 0);
    order
}

#[test]
fn a_lower_priority_goes_first() {
    let variant = variant(1);
    let held = choose(&variant, &ANY).unwrap();
    let of = |name, priority| (name, wait_as(&variant, &ANY, Rank { priority, ..Rank::default() }));
    let waiting = vec![of("late", 5), of("plain", 0), of("early", -1), of("plain too", 0)];
    assert_eq!(order_of(&variant, held, waiting), ["early", "plain", "plain too", "late"]);
}

#[test]
fn tenants_get_room_in_turn_however_much_each_waits_for() {
    let variant = variant(1);
    let held = choose(&variant, &ANY).unwrap();
    let of = |tenant| (tenant, wait_as(&variant, &ANY, Rank { tenant: Some(tenant), ..Rank::default() }));
    let waiting = vec![of("a"), of("a"), of("a"), of("a"), of("b"), of("b"), of("c")];
    assert_eq!(order_of(&variant, held, waiting), ["a", "b", "c", "a", "b", "a", "a"]);
}

#[test]
fn who_leaves_takes_no_turn_of_its_tenant() {
    let variant = variant(1);
    let held = choose(&variant, &ANY).unwrap();
    let of = |name, tenant| (name, wait_as(&variant, &ANY, Rank { tenant: Some(tenant), ..Rank::default() }));
    let leaving: Vec<_> = (0..3).map(|_| of("gone", "a")).collect();
    let waiting = vec![of("a1", "a"), of("a2", "a"), of("b1", "b"), of("b2", "b")];
    drop(leaving);
    assert_eq!(order_of(&variant, held, waiting), ["a1", "b1", "a2", "b2"]);
}

#[test]
fn a_tenant_that_fills_the_queue_makes_way_for_another_and_the_lower_priority_for_the_higher() {
    let variant = variant(1);
    let _held = choose(&variant, &ANY).unwrap();
    let of = |tenant, priority| wait_as(&variant, &ANY, Rank { tenant: Some(tenant), priority, bytes: 0 });
    let mut greedy: Vec<Waiting> = (0..10).map(|_| of("greedy", 0)).collect();
    let (mut modest, mut urgent, mut idle) = (of("modest", 0), of("greedy", -1), of("modest", 1));
    assert_eq!(displaced(&mut [&mut modest, &mut urgent, &mut idle]), [false, false, true]);
    let left: Vec<bool> = greedy.iter_mut().map(|one| look(one).is_pending()).collect();
    assert_eq!(left, [[true; 8].as_slice(), &[false; 2]].concat());
}

#[tokio::test(start_paused = true)]
async fn room_goes_to_whose_home_it_is_and_to_others_only_after_a_while() {
    let variant = variant(2);
    let of = |key: u128| RouteRequest { key: Some(isotherm_core::PrefixKey::from_u128(key)), ..ANY };
    let now = variant.clock().now();
    let home = |key| variant.order(isotherm_core::PrefixKey::from_u128(key), None, now)[0].now.instance.id().clone();
    let key_at = |id: &str| (0..).find(|&key| home(key).as_str() == id).unwrap();
    let (at_a, at_b) = (of(key_at("a")), of(key_at("b")));
    let (on_a, _on_b) = (choose(&variant, &at_a).unwrap(), choose(&variant, &at_b).unwrap());
    let (mut of_b, mut of_a) = (wait(&variant, &at_b), wait(&variant, &at_a));
    drop(on_a);
    assert!(look(&mut of_b).is_pending(), "its home is busy");
    let Poll::Ready(Ok(on_a)) = look(&mut of_a) else { panic!("its home is free") };
    drop(on_a);
    assert!(look(&mut of_b).is_pending(), "it waits for its home a moment longer");
    assert_eq!(choose(&variant, &at_b).unwrap_err(), Refusal::Full, "no newcomer goes before it");
    tokio::time::advance(LONGEST_FOR_HOME).await;
    of_b.look_elsewhere();
    let Poll::Ready(Ok(placement)) = look(&mut of_b) else { panic!("any room will do by now") };
    assert_eq!(placement.decision.chosen.as_str(), "a");
}

#[test]
fn a_waiter_whose_instances_are_busy_does_not_hold_up_those_of_others() {
    let variant = variant(2);
    let generations: Vec<_> = variant.instances(variant.clock().now()).iter().map(|one| one.generation).collect();
    variant.set_models(generations[0], Models::listed(["x"]));
    variant.set_models(generations[1], Models::listed(["y"]));
    let asking = |model: &str| RouteRequest { model: Some(ModelHash::of(model)), ..ANY };
    let _busy = choose(&variant, &asking("x")).unwrap();
    let held = choose(&variant, &asking("y")).unwrap();
    let (mut for_x, mut for_y) = (wait(&variant, &asking("x")), wait(&variant, &asking("y")));
    drop(held);
    assert!(look(&mut for_x).is_pending());
    assert!(look(&mut for_y).is_ready());
}

#[test]
fn a_pinned_waiter_waits_for_its_own_instance() {
    let variant = variant(2);
    let b = InstanceId::from("b");
    let pinned = RouteRequest { pinned: Some(&b), ..ANY };
    let (on_a, on_b) = (choose(&variant, &ANY).unwrap(), choose(&variant, &ANY).unwrap());
    let mut waiting = wait(&variant, &pinned);
    drop(on_a);
    assert!(look(&mut waiting).is_pending());
    drop(on_b);
    let Poll::Ready(Ok(placement)) = look(&mut waiting) else { panic!("its instance is free") };
    assert_eq!(placement.decision.chosen, b);
}

#[test]
fn who_is_pinned_waits_for_no_home() {
    let variant = variant(2);
    let now = variant.clock().now();
    let key = |key: u128| isotherm_core::PrefixKey::from_u128(key);
    let home = |number| variant.order(key(number), None, now)[0].now.instance.id().clone();
    let number = (0..).find(|&number| home(number).as_str() == "a").unwrap();
    let b = InstanceId::from("b");
    let request = RouteRequest { key: Some(key(number)), pinned: Some(&b), ..ANY };
    let (_on_a, on_b) =
        (choose(&variant, &RouteRequest { pinned: None, ..request }).unwrap(), choose(&variant, &ANY).unwrap());
    let mut waiting = wait(&variant, &request);
    drop(on_b);
    assert!(matches!(look(&mut waiting), Poll::Ready(Ok(_))));
}

#[test]
fn whatever_makes_room_places_who_waits() {
    type Change = fn(&Arc<Variant>);
    let add: Change = |variant| {
        let instance = Arc::clone(&variant.instances(variant.clock().now())[0].instance);
        variant.add(InstanceSpec::new("z"), instance);
    };
    let raise: Change = |variant| {
        variant.update(&InstanceSpec { max_in_flight: NonZeroU32::new(2), ..InstanceSpec::new("a") });
    };
    let undrain: Change = |variant| variant.set_draining(&"b".into(), false);
    let recover: Change = |variant| {
        let now = variant.clock().now();
        let generation = variant.instances(now)[1].generation;
        variant.observe(generation, Evidence::ProbeAnswered, now);
    };
    for (name, change) in [("add", add), ("raise", raise), ("undrain", undrain), ("recover", recover)] {
        let variant = variant(2);
        let now = variant.clock().now();
        match name {
            "recover" => drop(variant.observe(variant.instances(now)[1].generation, Evidence::ConnectRefused, now)),
            _ => variant.set_draining(&"b".into(), true),
        }
        let _held = choose(&variant, &ANY).unwrap();
        let bell = Arc::default();
        let mut waiting = wait(&variant, &ANY);
        assert!(poll(&mut waiting, &bell).is_pending());
        change(&variant);
        assert_eq!(bell.rings(), 1, "{name}");
        assert!(matches!(look(&mut waiting), Poll::Ready(Ok(_))), "{name}");
    }
}

#[test]
fn nobody_waits_for_what_cannot_come() {
    let variant = variant(1);
    let _held = choose(&variant, &ANY).unwrap();
    let now = variant.clock().now();
    let mut waiting = wait(&variant, &ANY);
    variant.observe(variant.instances(now)[0].generation, Evidence::ConnectRefused, now);
    assert!(matches!(look(&mut waiting), Poll::Ready(Err(NotPlaced::Refused(Refusal::Unavailable)))));
    let mut waiting = wait(&variant, &ANY);
    assert!(matches!(look(&mut waiting), Poll::Ready(Err(NotPlaced::Refused(Refusal::Unavailable)))));
    variant.remove(&"a".into(), "test");
    let mut waiting = wait(&variant, &ANY);
    assert!(matches!(look(&mut waiting), Poll::Ready(Err(NotPlaced::Refused(Refusal::NoInstance)))));
}

#[test]
fn first_choices_feed_the_budget_of_resends_and_retries_do_not() {
    let variant = variant(1);
    let now = variant.clock().now();
    while variant.withdraw_resend(now) {}
    let tried = [variant.instances(now)[0].generation];
    for _ in 0..5 {
        let _ = variant.choose(&RouteRequest { tried: &tried, ..ANY }, now, &mut Pcg64::seed_from_u64(0));
    }
    assert!(!variant.withdraw_resend(now));
    for _ in 0..5 {
        let _ = variant.choose(&ANY, now, &mut Pcg64::seed_from_u64(0));
    }
    assert!(variant.withdraw_resend(now));
}
