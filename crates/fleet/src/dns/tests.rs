//! Names whose answers the test gives, in time that the test controls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use isotherm_core::{Availability, Evidence, RouteRequest};
use parking_lot::Mutex;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::*;
use crate::testing::{fleet, one_variant, variant};
use crate::{IfLast, InstanceName};

/// Answers as it is told, the last answer again and again, and notes when it was asked.
#[derive(Default)]
struct Told {
    answers: Mutex<VecDeque<Result<Answer, ResolveError>>>,
    asked: Mutex<Vec<Instant>>,
}

impl Resolve for Told {
    fn resolve<'a>(&'a self, _: &'a DnsName) -> Resolving<'a> {
        self.asked.lock().push(Instant::now());
        let mut answers = self.answers.lock();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }
}

impl Told {
    fn next(&self, answer: Result<Answer, ResolveError>) {
        *self.answers.lock() = [answer].into();
    }

    /// How long it was between the questions, in seconds, rounded up.
    fn pauses(&self) -> Vec<u64> {
        self.asked.lock().windows(2).map(|two| (two[1] - two[0]).as_secs_f64().ceil() as u64).collect()
    }
}

fn answer(addresses: &[&str], seconds: u64) -> Result<Answer, ResolveError> {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    Ok(Answer { addresses, time_to_live: Duration::from_secs(seconds) })
}

const NAME: &str = "{dns: 'http://vllm.internal:8000', resolve_interval: 10s, weight: 2}";

/// A fleet of one variant whose name is followed. Nothing is probed, so time may be paused.
fn following(instances: &[&str], resolver: &Arc<Told>) -> (Fleet, Arc<Variant>, JoinHandle<()>) {
    let fleet = fleet(&one_variant("", instances));
    let variant = variant(&fleet);
    let name = "http://vllm.internal:8000".parse().unwrap();
    let resolver: Arc<dyn Resolve> = Arc::<Told>::clone(resolver);
    let follower = NameFollower { fleet: fleet.clone(), variant: Arc::clone(&variant), name, resolver };
    (fleet, variant, tokio::spawn(follower.run()))
}

fn ids(fleet: &Fleet) -> Vec<String> {
    fleet.list().iter().map(|status| format!("{} {}", status.id.trim_start_matches("http://"), status.origin)).collect()
}

#[tokio::test(start_paused = true)]
async fn every_address_is_an_instance_and_what_stays_in_the_answer_keeps_its_life() {
    let resolver = Arc::<Told>::default();
    resolver.next(answer(&["10.0.0.2:8000", "10.0.0.1:8000", "10.0.0.2:8000"], 3_600));
    let (fleet, variant, _task) = following(&[NAME], &resolver);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(ids(&fleet), ["10.0.0.1:8000 dns", "10.0.0.2:8000 dns"]);
    assert_eq!(fleet.list()[0].dns.as_deref(), Some("http://vllm.internal:8000"));
    assert_eq!(fleet.list()[0].weight, 2.0);

    let now = variant.clock().now();
    let held: Vec<_> = (0..2)
        .map(|seed| variant.choose(&RouteRequest::default(), now, &mut Pcg64::seed_from_u64(seed)).unwrap())
        .collect();
    let before = variant.instances(now);
    variant.observe(before[1].generation, Evidence::ConnectRefused, now);
    resolver.next(answer(&["10.0.0.3:8000", "10.0.0.2:8000"], 3_600));
    sleep(Duration::from_secs(10)).await;
    let after = variant.instances(now);
    assert_eq!(ids(&fleet), ["10.0.0.2:8000 dns", "10.0.0.3:8000 dns"]);
    assert_eq!(after[0].generation, before[1].generation);
    assert_eq!((after[0].in_flight, after[0].availability), (1, Availability::Down));
    drop(held);
    assert!(variant.instances(now).iter().all(|one| one.in_flight == 0));
}

#[tokio::test(start_paused = true)]
async fn a_resolver_that_fails_and_an_empty_answer_leave_the_last_one_in_force() {
    let resolver = Arc::<Told>::default();
    resolver.next(answer(&["10.0.0.1:8000"], 5));
    let (fleet, _variant, _task) = following(&[NAME], &resolver);
    sleep(Duration::from_secs(6)).await;
    for bad in [Err(ResolveError("SERVFAIL".into())), answer(&[], 5)] {
        resolver.next(bad);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(ids(&fleet), ["10.0.0.1:8000 dns"]);
    }
    // Nor does one that never answers.
    resolver.answers.lock().clear();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(ids(&fleet), ["10.0.0.1:8000 dns"]);
    resolver.next(answer(&["10.0.0.9:8000"], 5));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(ids(&fleet), ["10.0.0.9:8000 dns"]);
}

#[tokio::test(start_paused = true)]
async fn it_asks_again_when_the_records_expire_but_neither_too_often_nor_too_seldom() {
    for (time_to_live, expected) in [(0, 1), (4, 4), (3_600, 10)] {
        let resolver = Arc::<Told>::default();
        resolver.next(answer(&["10.0.0.1:8000"], time_to_live));
        let (_fleet, _variant, task) = following(&[NAME], &resolver);
        sleep(Duration::from_secs(60)).await;
        task.abort();
        let pauses = resolver.pauses();
        assert!(pauses.len() >= 4 && pauses.iter().all(|&pause| pause == expected), "{time_to_live}: {pauses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_resolver_is_asked_soon_and_then_less_and_less_often() {
    let resolver = Arc::<Told>::default();
    resolver.next(Err(ResolveError("no server".into())));
    let (_fleet, _variant, _task) = following(&[NAME], &resolver);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(resolver.pauses()[..5], [2, 4, 8, 10, 10]);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_leaves_the_configuration_takes_its_instances_with_it() {
    let resolver = Arc::<Told>::default();
    resolver.next(answer(&["10.0.0.1:8000", "10.0.0.2:8000"], 60));
    let (fleet, variant, task) = following(&[NAME, "{url: 'http://a:1'}"], &resolver);
    sleep(Duration::from_millis(1)).await;
    let name = InstanceName { id: "http://10.0.0.2:8000", endpoint: None, variant: None };
    fleet.remove_instance(name, IfLast::Keep).unwrap();
    sleep(Duration::from_secs(20)).await;
    assert_eq!(ids(&fleet), ["a:1 file", "10.0.0.1:8000 dns"], "removed by the admin API, it stays away");

    fleet.apply(&one_variant("", &["{url: 'http://a:1'}"]));
    assert_eq!(ids(&fleet), ["a:1 file"]);
    sleep(Duration::from_secs(20)).await;
    assert!(task.is_finished());
    fleet.follow_answer(&variant, &"http://vllm.internal:8000".parse().unwrap(), &["10.0.0.7:8000".parse().unwrap()]);
    assert_eq!(ids(&fleet), ["a:1 file"], "an answer that comes too late changes nothing");
}

#[tokio::test(start_paused = true)]
async fn an_id_that_the_file_lists_too_outlives_the_answer_that_held_it() {
    let resolver = Arc::<Told>::default();
    resolver.next(answer(&["10.0.0.1:8000"], 60));
    let (fleet, _variant, _task) = following(&[NAME], &resolver);
    sleep(Duration::from_millis(1)).await;
    fleet.apply(&one_variant("", &[NAME, "{url: 'http://10.0.0.1:8000'}"]));
    assert_eq!(ids(&fleet), ["10.0.0.1:8000 dns"]);
    resolver.next(answer(&["10.0.0.2:8000"], 60));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(ids(&fleet), ["10.0.0.2:8000 dns", "10.0.0.1:8000 file"]);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_a_reload_lists_by_its_url_outlives_the_name_that_held_it() {
    let resolver = Arc::<Told>::default();
    resolver.next(answer(&["10.0.0.1:8000", "10.0.0.2:8000"], 60));
    let (fleet, _variant, _task) = following(&[NAME], &resolver);
    sleep(Duration::from_millis(1)).await;
    fleet.set_draining(InstanceName { id: "http://10.0.0.1:8000", endpoint: None, variant: None }, true).unwrap();
    fleet.apply(&one_variant("", &["{url: 'http://10.0.0.1:8000'}"]));
    assert_eq!(ids(&fleet), ["10.0.0.1:8000 file"]);
    assert_eq!((fleet.list()[0].availability, fleet.list()[0].weight), ("draining", 1.0));
}

#[tokio::test]
async fn the_tasks_of_a_fleet_follow_names_that_a_reload_brings() {
    let resolver = Arc::<Told>::default();
    resolver.next(answer(&["127.0.0.1:1"], 60));
    let fleet = fleet(&one_variant("", &[]));
    let tasks = fleet.spawn_with(Arc::<Told>::clone(&resolver));
    crate::testing::eventually("the tasks run", || !fleet.is_ready()).await;
    assert_eq!(resolver.asked.lock().len(), 0);
    fleet.apply(&one_variant("", &[NAME]));
    crate::testing::eventually("resolved", || ids(&fleet) == ["127.0.0.1:1 dns"]).await;
    crate::testing::eventually("probed", || fleet.list()[0].availability == "down").await;
    drop(tasks);
}
