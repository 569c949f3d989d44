//! What a deployment takes away while requests wait for it: they are served by what comes in its place.

use std::sync::Arc;

use isotherm_fleet::{ManagedInstance, ManagedVariant};
use tokio::sync::Notify;

use crate::client::{Client, post};
use crate::managed::{base, copy, endpoint, instance, variant};
use crate::origin::{Origin, Step, json};
use crate::router::Router;

/// An endpoint whose one old instance has room for one request, runs one, and has eight waiting.
struct Full {
    router: Router,
    running: Client,
    waiting: Vec<Client>,
    leave: Arc<Notify>,
    /// Serves as long as it is there.
    old: Origin,
}

impl Full {
    async fn new(file: &Origin) -> Full {
        let leave = Arc::new(Notify::new());
        let old = one_at_a_time("old", &leave).await;
        let router = Router::before(&[file], "");
        put(&router, vec![variant("blue", 1.0, vec![with_room_for_one("old-1", &old)])]);
        let running = ask(&router).await;
        old.asked(1).await;
        let mut waiting = Vec::new();
        for _ in 0..8 {
            waiting.push(ask(&router).await);
        }
        let full = Full { router, running, waiting, leave, old };
        until_waiting(&full.router, 8.0).await;
        full
    }

    /// Everybody is answered: those who waited by what is new, the one that ran by what ran it.
    async fn all_are_answered(mut self) {
        for client in &mut self.waiting {
            let answer = client.answer().await;
            assert_eq!((answer.status, answer.text()), (200, "new".to_owned()));
        }
        self.leave.notify_one();
        let answer = self.running.answer().await;
        assert_eq!((answer.status, answer.text()), (200, "old".to_owned()));
        self.router.counts("isotherm_waiting_requests", &[], 0.0).await;
    }
}

async fn until_waiting(router: &Router, count: f64) {
    router.counts("isotherm_waiting_requests", &[], count).await;
}

async fn one_at_a_time(says: &str, leave: &Arc<Notify>) -> Origin {
    let steps = vec![Step::Wait(Arc::clone(leave)), Step::Send(json(200, says).into_bytes())];
    Origin::start(move |_| steps.clone()).await
}

fn with_room_for_one(id: &str, origin: &Origin) -> ManagedInstance {
    ManagedInstance { max_in_flight: std::num::NonZeroU32::new(1), ..instance(id, origin) }
}

fn put(router: &Router, variants: Vec<ManagedVariant>) {
    router.fleet.put_endpoint(&endpoint("two", variants)).unwrap();
}

async fn ask(router: &Router) -> Client {
    let mut client = router.connect().await;
    client.send(post("/endpoints/two/invocations", "{}")).await;
    client
}

#[tokio::test]
async fn those_who_wait_move_to_the_variant_that_takes_the_place_of_theirs() {
    let new = Origin::answering(&json(200, "new")).await;
    let full = Full::new(&new).await;
    put(&full.router, vec![variant("green", 1.0, vec![instance("new-1", &new)])]);
    full.all_are_answered().await;
}

#[tokio::test]
async fn those_who_wait_move_to_the_next_revision_of_their_variant() {
    let new = Origin::answering(&json(200, "new")).await;
    let full = Full::new(&new).await;
    put(&full.router, vec![ManagedVariant { revision: 2, ..variant("blue", 1.0, vec![instance("new-1", &new)]) }]);
    full.all_are_answered().await;
}

#[tokio::test]
async fn those_who_wait_move_with_the_traffic() {
    let new = Origin::answering(&json(200, "new")).await;
    let full = Full::new(&new).await;
    let both = |old_weight, new_weight| {
        let green = ManagedVariant { revision: 2, ..variant("blue", new_weight, vec![instance("new-1", &new)]) };
        vec![variant("blue", old_weight, vec![with_room_for_one("old-1", &full.old)]), green]
    };
    put(&full.router, both(0.5, 0.5));
    assert_eq!(full.router.metric("isotherm_waiting_requests", &[]), 8.0);
    put(&full.router, both(0.0, 1.0));
    full.all_are_answered().await;
}

#[tokio::test]
async fn those_who_wait_for_a_variant_by_its_name_go_on_waiting_when_traffic_leaves_it() {
    let leave = Arc::new(Notify::new());
    let (old, new) = (one_at_a_time("old", &leave).await, Origin::answering(&json(200, "new")).await);
    let router = Router::before(&[&new], "");
    let both = |old_weight, new_weight| {
        let green = variant("green", new_weight, vec![instance("new-1", &new)]);
        vec![variant("blue", old_weight, vec![with_room_for_one("old-1", &old)]), green]
    };
    put(&router, both(1.0, 0.0));
    let line = "host: router\r\nx-amzn-sagemaker-target-variant: blue";
    let named = post("/endpoints/two/invocations", "{}").replacen("host: router", line, 1);
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = router.connect().await;
        client.send(&named).await;
        old.asked(1).await;
        clients.push(client);
    }
    until_waiting(&router, 1.0).await;
    put(&router, both(0.0, 1.0));
    for client in &mut clients {
        leave.notify_one();
        assert_eq!(client.answer().await.text(), "old");
    }
}

#[tokio::test]
async fn those_who_wait_stay_when_all_instances_of_their_variant_are_replaced() {
    let new = Origin::answering(&json(200, "new")).await;
    let full = Full::new(&new).await;
    put(&full.router, vec![variant("blue", 1.0, vec![instance("new-1", &new)])]);
    full.all_are_answered().await;
}

#[tokio::test]
async fn those_who_wait_go_on_waiting_where_what_is_new_is_full_too() {
    let file = Origin::answering(&json(200, "file")).await;
    let full = Full::new(&file).await;
    let leave = Arc::new(Notify::new());
    let new = one_at_a_time("new", &leave).await;
    put(&full.router, vec![variant("green", 1.0, vec![with_room_for_one("new-1", &new)])]);
    new.asked(1).await;
    until_waiting(&full.router, 7.0).await;
    let leaving = async {
        for answered in 1..=8 {
            new.asked(answered).await;
            leave.notify_one();
        }
    };
    tokio::join!(leaving, full.all_are_answered());
    assert_eq!(new.seen().len(), 8);
}

#[tokio::test]
async fn every_request_is_served_while_its_variant_is_replaced_again_and_again() {
    let origin = Origin::answering(&json(200, "here")).await;
    let router = Router::before(&[&origin], "");
    let one = instance("one", &origin);
    let revision = move |revision| ManagedVariant { revision, ..variant("blue", 1.0, vec![one.clone()]) };
    put(&router, vec![revision(1)]);
    // Gone with this function, however that ends.
    let (fleet, asking) = (router.fleet.clone(), Arc::new(()));
    let is_asked = Arc::downgrade(&asking);
    let replacing = tokio::task::spawn_blocking(move || {
        let numbers = (2..).take_while(|_| is_asked.strong_count() > 0);
        numbers.map(|number| fleet.put_endpoint(&endpoint("two", vec![revision(number)])).unwrap()).count()
    });
    let mut client = router.connect().await;
    for _ in 0..200 {
        client.send(post("/endpoints/two/invocations", "{}")).await;
        assert_eq!(client.answer().await.text(), "here");
    }
    drop(asking);
    assert!(replacing.await.unwrap() > 0);
}

#[tokio::test]
async fn those_who_wait_are_refused_when_their_endpoint_is_deleted() {
    let file = Origin::answering(&json(200, "file")).await;
    let mut full = Full::new(&file).await;
    full.router.fleet.remove_endpoint("two");
    for client in &mut full.waiting {
        let answer = client.answer().await;
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains("Endpoint two of account"), "{}", answer.text());
    }
    full.leave.notify_one();
    assert_eq!(full.running.answer().await.text(), "old");
}

#[tokio::test]
async fn a_component_has_no_capacity_as_soon_as_its_last_copies_are_told_to_go() {
    let origin = Origin::answering(&json(200, "1")).await;
    let router = Router::before(&[&origin], "");
    let put = |draining| {
        let mut ics = endpoint("ics", vec![variant("AllTraffic", 1.0, Vec::new())]);
        let llama = ManagedInstance { draining, ..copy("llama-1", "host-1", &origin) };
        ics.components = Some(vec![base("llama", vec![llama])]);
        router.fleet.put_endpoint(&ics).unwrap();
    };
    let ask = async || {
        let line = "host: router\r\nx-amzn-sagemaker-inference-component: llama";
        router.ask(post("/endpoints/ics/invocations", "{}").replacen("host: router", line, 1)).await
    };
    put(false);
    assert_eq!(ask().await.status, 200);
    put(true);
    let answer = ask().await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.text().contains("Inference Component has no capacity"), "{}", answer.text());
}
