//! Real engines for each strategy: the same ones, behind a router of its own, with documents that they have not seen.

use std::time::{Duration, Instant};

use isotherm_bench::{Arm, Fleet, Lag, ModelsError, Target, first_model};
use isotherm_config::{Config, Environment, InstanceSource, Overrides};
use tokio::runtime::Runtime;

use super::routed::Routed;
use crate::commands::up::with_decisions_shown;
use crate::exit::Failure;
use crate::router::{Router, Setup, control_runtime};

/// How long engines may take to say which models they serve.
const LISTED_WITHIN: Duration = Duration::from_secs(10);

pub(super) struct Real {
    instances: Vec<String>,
    routed: Routed,
    runtime: Runtime,
    router: Option<Router>,
    text_seed: u64,
}

impl Real {
    pub(super) fn new(instances: Vec<String>, routed: Routed, seed: u64) -> Result<Real, Failure> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| Failure::running("random numbers", error))?;
        // Engines keep their caches between runs too: the words differ each time, the plan does not.
        let text_seed = u64::from_le_bytes(random) ^ seed;
        Ok(Real { instances, routed, runtime: control_runtime()?, router: None, text_seed })
    }
}

impl Fleet for Real {
    type Error = Failure;

    fn start(&mut self, strategy: &str) -> Result<Arm, Failure> {
        let running = |error: &dyn std::fmt::Display| Failure::Running(error.to_string());
        let overrides =
            with_decisions_shown(Overrides { instances: self.instances.clone(), ..self.routed.overrides() });
        let mut config = Config::load(None, &Environment::of_process(), &overrides)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        self.routed.apply(strategy, &mut config)?;
        let instances = names(&config);
        let router = self.runtime.block_on(Router::start(Setup { config, file: None, started: Vec::new() }))?;
        let url = format!("http://{}", router.address());
        self.router = Some(router);
        self.text_seed = self.text_seed.wrapping_add(1);

        let unnamed = Target::new(&url, "").map_err(|error| running(&error))?;
        let model = first_listed_model(&unnamed).map_err(|error| running(&error))?;
        let target = Target::new(&url, model).map_err(|error| running(&error))?;
        Ok(Arm { target, instances, accelerators: None, text_seed: self.text_seed })
    }

    fn stop(&mut self) -> Result<Option<Lag>, Failure> {
        if let Some(router) = self.router.take() {
            self.runtime.block_on(router.drain(std::future::ready(())));
        }
        Ok(None)
    }
}

/// What the router calls its instances.
fn names(config: &Config) -> Vec<String> {
    let entries = config.endpoints[0].variants[0].instances.iter();
    let named = entries.filter_map(|entry| match &entry.source {
        InstanceSource::Url { id, .. } => Some(id.to_string()),
        InstanceSource::Dns { .. } => None,
    });
    named.collect()
}

/// The first model that the router lists. It lists what its instances have told it, and they have a moment to do so.
fn first_listed_model(target: &Target) -> Result<String, ModelsError> {
    let deadline = Instant::now() + LISTED_WITHIN;
    loop {
        match first_model(target) {
            Err(ModelsError::None { .. }) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(50)),
            found => return found,
        }
    }
}
