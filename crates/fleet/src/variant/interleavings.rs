//! Every order in which threads may choose, wait, leave, give back, remove and add again; shuttle picks the orders.
//!
//! Run with `cargo test -p isotherm-fleet --features shuttle`.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::{Arc, Mutex as RealMutex};
use std::task::{Context, Poll, Waker};

use isotherm_core::{
    ConcurrencyThreshold, Evidence, InstanceId, InstanceSpec, PrefixAware, PrefixKey, Reason, Refusal, Rollout,
    RouteRequest, Routing, SpillRule, Strategy, Weight,
};
use isotherm_telemetry::Metrics;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Runner, thread};

use super::{Bounds, NotPlaced, Placement, Rank, Variant};
use crate::{Clock, Instance, Origin};

const BOUND: u32 = 2;
const THRESHOLD: u32 = 1;
const IDS: [&str; 2] = ["http://a", "http://b"];

/// Who holds slots on which life of an instance, counted outside of the variant.
#[derive(Debug, Default)]
struct Holders(RealMutex<HashMap<u64, u32>>);

impl Holders {
    fn take(&self, placement: &Placement) {
        let decision = &placement.decision;
        let mut held = self.0.lock().unwrap();
        let holders = held.entry(placement.instance.serial()).or_default();
        *holders += 1;
        assert!(*holders <= BOUND, "{holders} slots of {} are out", decision.chosen);
        assert!(decision.in_flight <= BOUND);
        if matches!(decision.reason, Reason::Home | Reason::Spill) {
            assert!(decision.in_flight <= THRESHOLD, "{:?} lifted a counter above the threshold", decision.reason);
        }
    }

    fn give_back(&self, placement: Placement) {
        *self.0.lock().unwrap().get_mut(&placement.instance.serial()).unwrap() -= 1;
        drop(placement);
    }
}

fn variant() -> Arc<Variant> {
    let concurrency_threshold = ConcurrencyThreshold::new(THRESHOLD.into()).unwrap();
    let rules = PrefixAware { concurrency_threshold, spill: SpillRule::Next, ..PrefixAware::default() };
    let plan = isotherm_config::Variant {
        name: "v".parse().unwrap(),
        weight: isotherm_config::TrafficWeight::default(),
        routing: Routing { strategy: Strategy::PrefixAware(rules), rollout: Rollout::FULL },
        health: isotherm_config::Health::default(),
        engine_metrics: isotherm_config::EngineMetrics::default(),
        instances: Vec::new(),
    };
    let variant = Arc::new(Variant::new("e".into(), "v".into(), 0, plan, Arc::new(Metrics::new("0")), Clock::start()));
    IDS.iter().for_each(|id| add(&variant, id));
    variant
}

fn add(variant: &Arc<Variant>, id: &str) {
    let spec = InstanceSpec { id: id.into(), weight: Weight::ONE, max_in_flight: NonZeroU32::new(BOUND), host: None };
    let (location, metrics) = (variant.location_of(&spec.id), variant.instance_metrics(&spec.id));
    let instance = Instance::new(location, &id.parse().unwrap(), None, None, Origin::Api, metrics);
    variant.add(spec, Arc::new(instance));
}

fn in_flight(variant: &Variant) -> Vec<u32> {
    variant.instances(variant.clock().now()).iter().map(|one| one.in_flight).collect()
}

/// A client: chooses, waits when all is full, sometimes leaves the queue, and gives back.
fn client(variant: &Arc<Variant>, holders: &Holders, number: u64) {
    let mut rng = Pcg64::seed_from_u64(number);
    for round in 0..2u64 {
        let key = Some(PrefixKey::from_u128(u128::from(number + round)));
        let request = RouteRequest { key, ..RouteRequest::default() };
        let placed = match variant.choose(&request, variant.clock().now(), &mut rng) {
            Err(Refusal::Full) => {
                let waiting = variant.wait(&request, Rank::default(), &mut rng, Bounds { waiting: 4, bytes: 0 });
                if (number + round).is_multiple_of(3) {
                    // Looks once, and leaves; the slot may have been handed over in between.
                    let polled = pin!(waiting).as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    thread::yield_now();
                    match polled {
                        Poll::Ready(outcome) => outcome,
                        Poll::Pending => continue,
                    }
                } else {
                    shuttle::future::block_on(waiting)
                }
            }
            outcome => outcome.map_err(NotPlaced::Refused),
        };
        match placed {
            Ok(placement) => {
                holders.take(&placement);
                thread::yield_now();
                holders.give_back(placement);
            }
            Err(NotPlaced::Displaced | NotPlaced::Moved) => {}
            Err(NotPlaced::Refused(refusal)) => {
                assert_ne!(refusal, Refusal::Full, "nobody waits in order to be told to wait");
            }
        }
    }
}

/// Takes instances out and puts them back, while they are in use.
fn churn(variant: &Arc<Variant>) {
    let now = variant.clock().now();
    variant.remove(&InstanceId::from(IDS[0]), "test");
    for one in variant.instances(now) {
        variant.observe(one.generation, Evidence::ConnectRefused, now);
        variant.observe(one.generation, Evidence::ProbeAnswered, now);
    }
    add(variant, IDS[0]);
    variant.set_draining(&InstanceId::from(IDS[1]), true);
    thread::yield_now();
    variant.set_draining(&InstanceId::from(IDS[1]), false);
}

fn check(clients: u64, with_churn: bool) {
    let (variant, holders) = (variant(), Arc::new(Holders::default()));
    let mut threads: Vec<_> = (0..clients)
        .map(|number| {
            let (variant, holders) = (Arc::clone(&variant), Arc::clone(&holders));
            thread::spawn(move || client(&variant, &holders, number))
        })
        .collect();
    if with_churn {
        let variant = Arc::clone(&variant);
        threads.push(thread::spawn(move || churn(&variant)));
    }
    // A waiter whose wake-up was lost never ends; shuttle reports that as a deadlock.
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(in_flight(&variant), [0, 0], "every slot was given back, once");
    assert_eq!(variant.waiting(), 0);
    assert_eq!(variant.metrics().waiting().get(), 0);
    let counted = variant
        .instances(variant.clock().now())
        .iter()
        .map(|one| one.instance.metrics().in_flight().get())
        .sum::<i64>();
    assert_eq!(counted, 0);
}

fn run(scheduler: impl Scheduler + 'static, clients: u64, with_churn: bool) {
    Runner::new(scheduler, shuttle::Config::new()).run(move || check(clients, with_churn));
}

#[test]
fn counters_are_exact_and_nobody_waits_for_ever() {
    run(RandomScheduler::new_from_seed(1, 1_000), 7, false);
    run(PctScheduler::new_from_seed(2, 3, 1_000), 7, false);
}

#[test]
fn so_it_is_while_instances_go_and_come_back() {
    run(RandomScheduler::new_from_seed(3, 1_000), 6, true);
    run(PctScheduler::new_from_seed(4, 4, 1_000), 6, true);
}
