//! The machine, step by step, in a world that the test decides; kept and read back between all steps.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::*;
use crate::shapes::DeploymentConfig;

const PATIENCE: Patience = Patience { settle: 1_000, drain: 60_000 };

/// A world of units that come, answer, work and go as the test says.
#[derive(Default)]
struct World {
    now: Cell<u64>,
    running: RefCell<HashSet<String>>,
    failed: RefCell<HashSet<String>>,
    gone: RefCell<HashSet<String>>,
    busy: RefCell<HashSet<String>>,
    alarm: RefCell<Option<String>>,
}

fn key(unit: &Unit) -> String {
    format!("{}.r{}", unit.id(), unit.revision)
}

impl Facts for World {
    fn now(&self) -> Timestamp {
        Timestamp::from_milliseconds(self.now.get())
    }

    fn standing(&self, unit: &Unit) -> UnitStanding {
        let key = key(unit);
        if self.failed.borrow().contains(&key) {
            UnitStanding::Failed("no GPU".to_owned())
        } else if self.gone.borrow().contains(&key) {
            UnitStanding::Gone
        } else if self.running.borrow().contains(&key) {
            UnitStanding::Running
        } else {
            UnitStanding::Moving
        }
    }

    fn is_idle(&self, unit: &Unit) -> bool {
        !self.busy.borrow().contains(&key(unit))
    }

    fn alarm(&self, names: &[String]) -> Option<String> {
        self.alarm.borrow().clone().filter(|alarm| names.contains(alarm))
    }
}

/// A test's endpoint of the variant `v`.
struct Story {
    progress: Progress,
    world: World,
}

impl Story {
    /// In service with so many instances.
    fn with(count: u32) -> Story {
        let mut story = Story { progress: Progress::default(), world: World::default() };
        story.begin(Kind::Create, count, false, "{}");
        assert_eq!(story.until_end(), End::Done);
        story
    }

    fn begin(&mut self, kind: Kind, count: u32, in_place: bool, config: &str) {
        let config: DeploymentConfig = serde_json::from_str(config).unwrap();
        let goals = [GroupGoal { name: "v".to_owned(), count, in_place }];
        let goals: &[GroupGoal] = if kind == Kind::Delete { &[] } else { &goals };
        begin(&mut self.progress, kind, self.world.now(), goals, |sizes| Plan::of_endpoint(Some(&config), sizes));
    }

    fn advance(&mut self) -> Option<End> {
        // As if the process had been killed and started again in between.
        let kept = serde_json::to_string(&self.progress).unwrap();
        self.progress = serde_json::from_str(&kept).unwrap();
        advance(&mut self.progress, PATIENCE, &self.world)
    }

    /// What is ordered comes, and what is ended goes.
    fn obey(&self) {
        for unit in &self.progress.units {
            match unit.phase {
                Phase::Starting if !self.world.failed.borrow().contains(&key(unit)) => {
                    self.world.running.borrow_mut().insert(key(unit));
                }
                Phase::Stopping => {
                    self.world.failed.borrow_mut().remove(&key(unit));
                    self.world.gone.borrow_mut().insert(key(unit));
                }
                _ => {}
            }
        }
    }

    fn pass(&self, milliseconds: u64) {
        self.world.now.set(self.world.now.get() + milliseconds);
    }

    fn until_end(&mut self) -> End {
        for _ in 0..1_000 {
            if let Some(end) = self.advance() {
                return end;
            }
            self.obey();
            self.pass(500);
        }
        panic!("it does not end: {:?}", self.progress);
    }

    /// The ids of the units that serve, with their revisions.
    fn serving(&self) -> Vec<String> {
        self.progress.units.iter().filter(|unit| unit.serves()).map(key).collect()
    }

    /// How many units of a revision serve.
    fn count(&self, revision: u64) -> u32 {
        let serving = self.progress.units.iter().filter(|unit| unit.revision == revision && unit.serves());
        u32::try_from(serving.count()).unwrap()
    }

    fn rollout(&self) -> &Rollout {
        self.progress.rollout.as_ref().unwrap()
    }
}

#[test]
fn an_endpoint_comes_and_goes() {
    let mut story = Story::with(2);
    assert_eq!(story.serving(), ["v-0.r1", "v-1.r1"]);
    story.begin(Kind::Delete, 0, false, "{}");
    story.world.busy.borrow_mut().insert("v-0.r1".to_owned());
    for _ in 0..10 {
        assert_eq!(story.advance(), None, "something is in flight");
        story.obey();
        story.pass(500);
    }
    assert_eq!(story.progress.units.len(), 1, "the idle one went");
    story.world.busy.borrow_mut().clear();
    assert_eq!(story.until_end(), End::Done);
    assert!(story.progress.units.is_empty() && story.progress.serving.is_empty());
}

#[test]
fn requests_that_never_end_hold_an_instance_for_so_long_and_no_longer() {
    let mut story = Story::with(1);
    story.world.busy.borrow_mut().insert("v-0.r1".to_owned());
    story.begin(Kind::Delete, 0, false, "{}");
    let began = story.world.now.get();
    assert_eq!(story.until_end(), End::Done);
    assert!((60_000..62_000).contains(&(story.world.now.get() - began)));
}

#[test]
fn an_endpoint_that_can_not_come_leaves_nothing_behind() {
    let mut story = Story { progress: Progress::default(), world: World::default() };
    story.world.failed.borrow_mut().insert("v-1.r1".to_owned());
    story.begin(Kind::Create, 3, false, "{}");
    assert_eq!(story.until_end(), End::RolledBack("no GPU".to_owned()));
    assert!(story.progress.units.is_empty() && story.progress.serving.is_empty());
}

#[test]
fn scaling_takes_the_lowest_free_ordinals_and_the_youngest_leave_first() {
    let mut story = Story::with(2);
    story.begin(Kind::Adjust, 4, true, "{}");
    assert_eq!(story.until_end(), End::Done);
    assert_eq!(story.serving(), ["v-0.r1", "v-1.r1", "v-2.r1", "v-3.r1"]);
    story.begin(Kind::Adjust, 1, true, "{}");
    assert_eq!(story.until_end(), End::Done);
    assert_eq!(story.serving(), ["v-0.r1"]);
    // Comes again under the number that became free.
    story.world.gone.borrow_mut().clear();
    story.begin(Kind::Adjust, 2, true, "{}");
    assert_eq!(story.until_end(), End::Done);
    assert_eq!(story.serving(), ["v-0.r1", "v-1.r1"]);
}

#[test]
fn scaling_out_that_fails_leaves_what_was() {
    let mut story = Story::with(2);
    story.world.failed.borrow_mut().insert("v-3.r1".to_owned());
    story.begin(Kind::Adjust, 4, true, "{}");
    assert_eq!(story.until_end(), End::RolledBack("no GPU".to_owned()));
    assert_eq!(story.serving(), ["v-0.r1", "v-1.r1"]);
    assert_eq!(story.progress.serving["v"].count, 2);
}

#[test]
fn what_only_changes_in_place_is_done_at_once() {
    let mut story = Story::with(2);
    story.begin(Kind::Update, 2, true, "{}");
    for end in [None, None, Some(End::Done)] {
        if story.advance() == Some(End::Done) {
            assert_eq!(story.serving(), ["v-0.r1", "v-1.r1"]);
            return;
        }
        assert_ne!(end, Some(End::Done), "three passes are enough");
    }
}

const CANARY: &str = r#"{"BlueGreenUpdatePolicy":{"TrafficRoutingConfiguration":{"Type":"CANARY",
    "WaitIntervalInSeconds":300,"CanarySize":{"Type":"CAPACITY_PERCENT","Value":25}},"TerminationWaitInSeconds":60,
    "MaximumExecutionTimeoutInSeconds":3600},"AutoRollbackConfiguration":{"Alarms":[{"AlarmName":"slow"}]}}"#;

#[test]
fn a_canary_is_watched_before_the_rest_follows_and_the_old_ones_stay_for_a_while() {
    let mut story = Story::with(4);
    story.begin(Kind::Update, 4, false, CANARY);
    assert_eq!(story.advance(), None);
    assert_eq!((story.progress.units.len(), story.rollout().share), (8, 0.0), "all new ones come first");
    story.obey();
    story.advance();
    assert_eq!(story.rollout().share, 0.25);
    story.pass(299_999);
    story.advance();
    assert_eq!(story.rollout().share, 0.25);
    story.pass(1);
    story.advance();
    assert_eq!(story.rollout().share, 1.0);
    story.pass(300_000);
    story.advance();
    assert!(matches!(story.rollout().stage, Stage::Waiting { .. }));
    assert_eq!(story.serving().len(), 8, "all could go back at once");
    story.pass(60_000);
    assert_eq!(story.until_end(), End::Done);
    assert_eq!(story.serving(), ["v-4.r2", "v-5.r2", "v-6.r2", "v-7.r2"]);
}

#[test]
fn an_alarm_takes_traffic_back_at_once_and_the_new_ones_away() {
    let mut story = Story::with(2);
    story.begin(Kind::Update, 3, false, CANARY);
    story.advance();
    story.obey();
    story.advance();
    assert!(story.rollout().share > 0.0);
    *story.world.alarm.borrow_mut() = Some("another".to_owned());
    story.advance();
    assert!(story.rollout().back.is_none(), "not one of this deployment's");
    *story.world.alarm.borrow_mut() = Some("slow".to_owned());
    story.advance();
    assert_eq!(story.rollout().share, 0.0);
    assert_eq!(story.until_end(), End::RolledBack("Alarm slow is in state ALARM.".to_owned()));
    assert_eq!(story.serving(), ["v-0.r1", "v-1.r1"]);
    // And the next update is told apart from the one that failed.
    *story.world.alarm.borrow_mut() = None;
    story.begin(Kind::Update, 1, false, "{}");
    assert_eq!(story.until_end(), End::Done);
    assert_eq!(story.serving(), ["v-2.r3"]);
}

#[test]
fn an_update_that_takes_too_long_is_taken_back() {
    let mut story = Story::with(1);
    story.begin(Kind::Update, 1, false, CANARY);
    story.advance();
    story.pass(3_600_000);
    let end = story.until_end();
    assert_eq!(end, End::RolledBack("The update took longer than its maximum of 3600 seconds.".to_owned()));
}

const ROLLING: &str = r#"{"RollingUpdatePolicy":{"MaximumBatchSize":{"Type":"CAPACITY_PERCENT","Value":50},
    "WaitIntervalInSeconds":10,"RollbackMaximumBatchSize":{"Type":"INSTANCE_COUNT","Value":1}}}"#;

#[test]
fn a_rolling_update_has_never_more_than_a_batch_too_many() {
    let mut story = Story::with(4);
    story.begin(Kind::Update, 4, false, ROLLING);
    story.advance();
    assert_eq!(story.progress.units.len(), 6, "one batch of two comes");
    story.obey();
    story.advance();
    assert_eq!(story.rollout().share, 0.5);
    story.pass(10_000);
    story.advance();
    assert_eq!(story.serving(), ["v-0.r1", "v-1.r1", "v-4.r2", "v-5.r2"]);
    assert_eq!(story.until_end(), End::Done);
    assert!(story.serving().iter().all(|unit| unit.ends_with(".r2")));
    assert_eq!(story.serving().len(), 4);
}

#[test]
fn a_rolling_update_goes_back_by_its_own_batches_and_old_ones_come_again() {
    let mut story = Story::with(4);
    story.begin(Kind::Update, 4, false, ROLLING);
    story.advance();
    story.obey();
    story.advance();
    story.pass(10_000);
    story.advance();
    // The second batch fails.
    let coming = story.progress.units.iter().find(|unit| unit.phase == Phase::Starting).map(key).unwrap();
    story.world.failed.borrow_mut().insert(coming);
    story.advance();
    assert_eq!(story.rollout().back.as_deref(), Some("no GPU"));
    assert_eq!(story.rollout().share, 0.5, "until an old one is back");
    assert_eq!(story.until_end(), End::RolledBack("no GPU".to_owned()));
    assert_eq!(story.serving().len(), 4);
    assert!(story.serving().iter().all(|unit| unit.ends_with(".r1")));
}

#[test]
fn what_can_not_be_taken_back_stays_as_it_is_until_the_next_update() {
    let mut story = Story::with(2);
    story.begin(Kind::Update, 2, false, ROLLING);
    story.advance();
    story.obey();
    story.advance();
    story.pass(10_000);
    story.advance();
    // Nothing can be started any more, neither new nor old.
    let all: Vec<_> = (0..9).flat_map(|n| [format!("v-{n}.r1"), format!("v-{n}.r2")]).collect();
    story.world.failed.borrow_mut().extend(all.into_iter().filter(|key| !story.world.running.borrow().contains(key)));
    let End::Stuck(reason) = story.until_end() else { panic!() };
    assert_eq!(reason, "no GPU And it could not be taken back: no GPU");
    assert_eq!(story.rollout().share, 0.5);
    assert_eq!(story.serving().len(), 2, "one old, one new, both serving");

    story.world.failed.borrow_mut().clear();
    story.begin(Kind::Update, 2, false, "{}");
    assert_eq!(story.until_end(), End::Done);
    assert!(story.serving().iter().all(|unit| unit.ends_with(".r3")), "{:?}", story.serving());
    assert_eq!(story.progress.units.len(), 2);
}

/// Many endpoints with random changes in a random world: whatever happens, traffic goes only where something serves,
/// and in the end there is what should be.
#[test]
fn traffic_goes_only_where_something_serves_whatever_happens() {
    for seed in 0..300 {
        let mut rng = Pcg64::seed_from_u64(seed);
        let mut story = Story::with(rng.random_range(1..6));
        for _ in 0..4 {
            let before = story.progress.serving["v"];
            let count = rng.random_range(1..6);
            let in_place = rng.random_bool(0.3);
            let config = ["{}", CANARY, ROLLING][rng.random_range(0..3)];
            story.begin(if in_place { Kind::Adjust } else { Kind::Update }, count, in_place, config);
            let end = random_way(&mut story, &mut rng);
            let now = story.progress.serving["v"];
            match end {
                End::Done => assert_eq!(now.count, count),
                End::RolledBack(_) => assert_eq!(now, before),
                End::Stuck(_) => break,
            }
            let serving = story.count(now.revision);
            assert_eq!((serving, story.progress.units.len()), (now.count, now.count as usize), "seed {seed}");
        }
    }
}

fn random_way(story: &mut Story, rng: &mut Pcg64) -> End {
    for _ in 0..10_000 {
        if let Some(end) = story.advance() {
            return end;
        }
        for group in &story.rollout().groups {
            let served = |side: Option<Side>| side.map_or(0, |side| story.count(side.revision));
            let share = story.rollout().share;
            if !group.is_in_place() {
                assert!(share == 0.0 || served(group.new) > 0, "{:?}", story.progress);
                assert!(share == 1.0 || served(group.old) > 0, "{:?}", story.progress);
            }
        }
        for unit in &story.progress.units {
            if unit.phase == Phase::Starting && rng.random_bool(0.02) {
                story.world.failed.borrow_mut().insert(key(unit));
            }
        }
        if rng.random_bool(0.5) {
            story.obey();
        }
        let seconds = if rng.random_bool(0.1) { 400 } else { 1 };
        story.pass(seconds * 1_000);
    }
    panic!("it does not end");
}
