//! The fleet changes: instances come, leave, break down and come back.

use std::sync::Arc;

use isotherm_core::{InstanceId, Time};
use isotherm_engine_model::Profile;

use super::{Event, Simulation};
use crate::scenario::FleetChange;
use crate::server::{Server, nanoseconds};

impl Simulation<'_> {
    pub(super) fn change(&mut self, number: usize) {
        // Changes beyond those of the scenario are second halves: an instance that was started is ready.
        let planned = self.scenario.changes.len();
        if number >= planned {
            self.ready((number - planned) as u32);
            return;
        }
        let scenario = self.scenario;
        match &scenario.changes[number].change {
            FleetChange::Add { instances, cold_start } => {
                for _ in 0..*instances {
                    self.add_instance(scenario.fleet.first_profile(), nanoseconds(*cold_start));
                }
            }
            FleetChange::Remove { instances } => self.remove_last(*instances),
            FleetChange::Fail { instance, lasts } => self.break_down(*instance, nanoseconds(*lasts)),
        }
    }

    /// Begins to pay for an instance that is ready `cold_start` later.
    pub(super) fn add_instance(&mut self, profile: Arc<Profile>, cold_start: u64) {
        let instance = self.servers.len() as u32;
        let id = InstanceId::new(format!("instance-{instance}"));
        self.servers.push(Server::new(id, profile, self.now));
        self.ready_in(instance, cold_start);
    }

    fn ready_in(&mut self, instance: u32, wait: u64) {
        if wait == 0 {
            self.ready(instance);
        } else {
            let number = self.scenario.changes.len() as u32 + instance;
            self.queue.push(self.now + wait, Event::Change { number });
        }
    }

    fn ready(&mut self, instance: u32) {
        let server = &mut self.servers[instance as usize];
        if !server.leaving {
            server.start();
            let now = Time::from_nanoseconds(self.now);
            self.routers.iter_mut().for_each(|router| router.add(instance, &server.id, now));
        }
    }

    /// The youngest instances get nothing new and leave when they have answered what they have.
    fn remove_last(&mut self, count: u32) {
        let staying = (0..self.servers.len()).rev().filter(|&number| !self.servers[number].leaving);
        for number in staying.take(count as usize).collect::<Vec<_>>() {
            let server = &mut self.servers[number];
            server.leaving = true;
            let now = Time::from_nanoseconds(self.now);
            self.routers.iter_mut().for_each(|router| router.drain(number as u32, now));
            if server.in_flight == 0 {
                self.take_away(number as u32);
            }
        }
    }

    pub(super) fn take_away(&mut self, instance: u32) {
        self.servers[instance as usize].give_back(self.now);
        self.leave_routers(instance);
    }

    fn leave_routers(&mut self, instance: u32) {
        let now = Time::from_nanoseconds(self.now);
        self.routers.iter_mut().for_each(|router| router.remove(instance, now));
    }

    /// An instance dies with all that it has, and is back, cold, after a while. Broken connections tell the router at
    /// once.
    fn break_down(&mut self, instance: u32, lasts: u64) {
        let Some(server) = self.servers.get_mut(instance as usize).filter(|server| server.is_there()) else { return };
        server.stop();
        self.leave_routers(instance);
        for slot in 0..self.slots.len() {
            if let Some(request) = self.slots[slot].take_if(|request| request.instance == instance) {
                self.lose(request);
            }
        }
        self.ready_in(instance, lasts);
    }
}
