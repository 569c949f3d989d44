//! Emulated engines for each strategy: fresh ones, so that every strategy begins with cold caches.

use isotherm_bench::{Arm, Fleet, Lag, Target, Work};
use isotherm_engine_model::Profile;
use tokio::runtime::Runtime;

use super::routed::Routed;
use crate::exit::Failure;
use crate::fleet_of_engines::{EngineFlags, EngineFleet};
use crate::router::{Router, control_runtime};

pub(super) struct Emulated {
    engine: EngineFlags,
    /// What each of them is.
    profiles: Vec<Profile>,
    routed: Routed,
    runtime: Runtime,
    running: Option<(EngineFleet, Router)>,
}

impl Emulated {
    pub(super) fn new(engine: EngineFlags, profiles: Vec<Profile>, routed: Routed) -> Result<Emulated, Failure> {
        Ok(Emulated { engine, profiles, routed, runtime: control_runtime()?, running: None })
    }
}

impl Fleet for Emulated {
    type Error = Failure;

    fn start(&mut self, strategy: &str) -> Result<Arm, Failure> {
        let configs = self.profiles.iter().map(|profile| self.engine.config_of(profile.clone()));
        let engines = EngineFleet::of(configs.collect())?;
        let mut setup = engines.setup(self.routed.overrides())?;
        self.routed.apply(strategy, &mut setup.config)?;
        let router = self.runtime.block_on(Router::start(setup))?;
        let url = format!("http://{}", router.address());
        let target = Target::new(&url, &self.engine.model).map_err(|error| Failure::Running(error.to_string()))?;
        let instances = engines.instances().map(|(id, _)| id).collect();
        let accelerators = Some(engines.accelerators());
        self.running = Some((engines, router));
        Ok(Arm { target, instances, accelerators, text_seed: 0 })
    }

    fn work(&self) -> Option<Work> {
        self.running.as_ref().map(|(engines, _)| engines.work())
    }

    fn stop(&mut self) -> Result<Option<Lag>, Failure> {
        let Some((engines, router)) = self.running.take() else { return Ok(None) };
        // The worst engine's: one that is late makes the figures of all.
        let lag = engines.lag().into_iter().map(|report| Lag { p99: report.p99, max: report.max });
        let lag = lag.reduce(|a, b| Lag { p99: a.p99.max(b.p99), max: a.max.max(b.max) });
        self.runtime.block_on(async {
            router.drain(std::future::ready(())).await;
            engines.stop().await;
        });
        Ok(lag)
    }
}
