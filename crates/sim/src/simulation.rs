//! One run: a workload, a fleet and a routing rule in virtual time.
//!
//! A loop takes the earliest event from a queue, sets the clock to it and does what it says. Nothing depends on the
//! wall clock, on threads or on the order of a hash table, so a seed gives the same run everywhere.

mod fleet_changes;
mod serving;

use isotherm_core::{HashSeed, Slot};
use isotherm_engine_model::Event as EngineEvent;
use isotherm_report::{Bound, FleetPart, Observation, PARTS, Run};
use isotherm_workload::{InvalidWorkload, Piece, PlannedRequest};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::bound::Clairvoyant;
use crate::chains::Chains;
use crate::prompt::{Beginning, mix};
use crate::queue::{Attempt, Event, Queue};
use crate::router::Router;
use crate::scenario::{InvalidScenario, Scenario};
use crate::server::{Next, Server, Totals, nanoseconds};
use crate::strategy::Rule;
use crate::traffic::Traffic;

/// Runs a scenario under one rule with one seed.
///
/// # Errors
/// When the scenario's workload cannot be planned.
pub fn simulate(scenario: &Scenario, rule: &Rule, seed: u64, watch: &dyn Watch) -> Result<Outcome, InvalidScenario> {
    let traffic = Traffic::new(scenario, seed)?;
    let hash_seed = HashSeed(mix(seed ^ 0x70_72_65_66_69_78));
    let routers = (0..scenario.routers).map(|_| rule.router(scenario.prefix_aware, hash_seed)).collect();
    let mut simulation = Simulation::new(scenario, routers, traffic, seed);
    simulation.run(watch);
    match simulation.traffic.take_broken() {
        Some(error) => Err(InvalidWorkload::from(error).into()),
        None => Ok(simulation.outcome()),
    }
}

/// Is told how far a run has come.
pub trait Watch: Sync {
    /// So much virtual time has passed since the last call, in nanoseconds.
    fn passed(&self, nanoseconds: u64);
}

/// Nobody watches.
impl Watch for () {
    fn passed(&self, _nanoseconds: u64) {}
}

/// What a run gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Every request.
    pub run: Run,
    /// What the same requests would have had from a fleet that knows all; `None` if none was measured.
    pub bound: Option<Bound>,
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    /// All of one configuration; they tell each other nothing.
    routers: Vec<Box<dyn Router>>,
    rng: Pcg64,
    traffic: Traffic,
    chains: Chains,
    queue: Queue,
    now: u64,
    servers: Vec<Server>,
    /// Requests that are under way; freed slots are used again.
    slots: Vec<Option<InFlight>>,
    free_slots: Vec<u32>,
    attempts: u32,
    observations: Vec<Observation>,
    parts: Vec<FleetPart>,
    totals_before: Vec<Totals>,
    clairvoyant: Clairvoyant,
    beginnings: Vec<Beginning>,
    pieces: Vec<Piece>,
    engine_events: Vec<EngineEvent>,
}

/// A request under way.
struct InFlight {
    attempt: Attempt,
    sender: u32,
    planned: PlannedRequest,
    /// Its place in `observations`.
    observation: usize,
    /// Which router has it.
    router: usize,
    instance: u32,
    /// Its first token has reached the client.
    answered: bool,
    cached_tokens: u32,
    slot: Option<Slot>,
    /// Instances that failed it.
    tried: Vec<u32>,
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a Scenario, routers: Vec<Box<dyn Router>>, traffic: Traffic, seed: u64) -> Simulation<'a> {
        let mut simulation = Simulation {
            scenario,
            routers,
            rng: Pcg64::seed_from_u64(mix(seed ^ 0x72_6f_75_74_65)),
            traffic,
            chains: Chains::new(),
            queue: Queue::default(),
            now: 0,
            servers: Vec::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            attempts: 0,
            observations: Vec::new(),
            parts: Vec::new(),
            totals_before: Vec::new(),
            clairvoyant: Clairvoyant::new(scenario),
            beginnings: Vec::new(),
            pieces: Vec::new(),
            engine_events: Vec::new(),
        };
        for profile in scenario.fleet.profiles() {
            simulation.add_instance(profile, 0);
        }
        for (number, change) in scenario.changes.iter().enumerate() {
            simulation.queue.push(nanoseconds(change.at), Event::Change { number: number as u32 });
        }
        let window = simulation.window();
        simulation.queue.push(window.start, Event::PartEnd { part: 0 });
        for part in 0..PARTS {
            simulation.queue.push(Run::part_end(&window, part), Event::PartEnd { part: part as u32 + 1 });
        }
        for (sender, first) in simulation.traffic.first_users() {
            simulation.queue.push(first, Event::Send { sender });
        }
        if let Some(first) = simulation.traffic.next_arrival() {
            simulation.queue.push(first, Event::Arrive);
        }
        simulation
    }

    fn window(&self) -> std::ops::Range<u64> {
        nanoseconds(self.scenario.warm_up)..nanoseconds(self.scenario.duration)
    }

    /// Until every request that was sent before the end has its answer.
    fn run(&mut self, watch: &dyn Watch) {
        let end = self.window().end;
        let mut told = 0;
        while let Some((time, event)) = self.queue.pop() {
            self.now = time;
            if time >= told + end / 100 && time <= end {
                watch.passed(time - told);
                told = time;
            }
            match event {
                Event::Send { sender } if time < end => self.send_next(sender),
                Event::Arrive if time < end => self.arrive(),
                Event::Send { .. } | Event::Arrive => {}
                Event::Work { instance } => self.work(instance),
                Event::FirstToken { request } => self.deliver_first_token(request),
                Event::Finish { request } => self.deliver_end(request),
                Event::Change { number } => self.change(number as usize),
                Event::PartEnd { part } => self.end_part(part),
            }
        }
        watch.passed(end.saturating_sub(told));
    }

    /// Lets an instance work and passes on what came of it.
    fn work(&mut self, instance: u32) {
        let mut events = std::mem::take(&mut self.engine_events);
        let server = &mut self.servers[instance as usize];
        let after = nanoseconds(server.profile.overhead_after);
        if let Next::At(time) = server.work(self.now, &mut events) {
            self.queue.push(time, Event::Work { instance });
        }
        for event in events.drain(..) {
            self.take_in(event, self.now + after);
        }
        self.engine_events = events;
    }

    /// Notes what the fleet did in a part of the measured time.
    fn end_part(&mut self, part: u32) {
        let mut sums = FleetPart::default();
        for (number, server) in self.servers.iter().enumerate() {
            let totals = server.totals(self.now);
            let before = self.totals_before.get(number).copied().unwrap_or_default();
            let accelerators = u64::from(server.profile.accelerators);
            *sums.evicted_blocks.get_or_insert(0) += totals.evicted_blocks - before.evicted_blocks;
            sums.instance_time += totals.instance_time - before.instance_time;
            *sums.accelerator_time.get_or_insert(0) += (totals.instance_time - before.instance_time) * accelerators;
            *sums.busy_accelerator_time.get_or_insert(0) += (totals.busy_time - before.busy_time) * accelerators;
        }
        let now = self.now;
        self.totals_before.clear();
        self.totals_before.extend(self.servers.iter().map(|server| server.totals(now)));
        if part > 0 {
            self.parts.push(sums);
        }
    }

    fn outcome(self) -> Outcome {
        let window = self.window();
        let instances = self.servers.iter().map(|server| server.id.to_string()).collect();
        let run = Run { window, observations: self.observations, parts: self.parts, instances };
        Outcome { run, bound: self.clairvoyant.bound() }
    }
}
