//! Emulated engines for each strategy: fresh ones, so that every strategy begins with cold caches.

use isotherm_bench::{Arm, Fleet, Lag, Target};
use isotherm_config::Overrides;
use tokio::runtime::Runtime;

use crate::exit::Failure;
use crate::fleet_of_engines::{EngineFlags, EngineFleet};
use crate::router::{Router, control_runtime};

pub(super) struct Emulated {
    engine: EngineFlags,
    count: u16,
    routing: Overrides,
    runtime: Runtime,
    running: Option<(EngineFleet, Router)>,
}

impl Emulated {
    pub(super) fn new(engine: EngineFlags, count: u16, routing: Overrides) -> Result<Emulated, Failure> {
        Ok(Emulated { engine, count, routing, runtime: control_runtime()?, running: None })
    }
}

impl Fleet for Emulated {
    type Error = Failure;

    fn start(&mut self, strategy: &str) -> Result<Arm, Failure> {
        let engines = EngineFleet::start(&self.engine, self.count)?;
        let overrides = Overrides { strategy: Some(strategy.to_owned()), ..self.routing.clone() };
        let router = self.runtime.block_on(Router::start(engines.setup(overrides)?))?;
        let url = format!("http://{}", router.address());
        let target = Target::new(&url, &self.engine.model).map_err(|error| Failure::Running(error.to_string()))?;
        self.running = Some((engines, router));
        Ok(Arm { target, instances: Some(self.count.into()), text_seed: 0 })
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
