//! Emulated engines as the commands start them: one alone, or a fleet within the process.

use std::time::Duration;

use clap::Args;
use isotherm_bench::Work;
use isotherm_config::{Config, Environment, InstanceSource, Overrides};
use isotherm_emulator::{EmulatorConfig, LagReport, RunningEmulator};
use isotherm_engine_model::Profile;
use isotherm_fleet::{NewInstance, Origin};

use crate::commands::up::with_decisions_shown;
use crate::exit::Failure;
use crate::router::Setup;

/// How long requests under way may take to end when the engines stop: the router has drained before.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// What an emulated engine pretends to be.
#[derive(Debug, Clone, Args)]
pub(crate) struct EngineFlags {
    /// Model and accelerators whose timing and cache are modelled [default: llama3.1-70b-tp8-bf16]
    #[arg(long, value_name = "NAME", help_heading = "Engines")]
    pub(crate) profile: Option<String>,

    /// How many times faster than the real engine [default: 1]
    #[arg(long, value_name = "X", help_heading = "Engines")]
    pub(crate) speed: Option<f64>,

    /// Tokens that an engine's KV cache holds [default: the profile's]
    #[arg(long, value_name = "N", help_heading = "Engines", value_parser = clap::value_parser!(u64).range(1024..))]
    pub(crate) kv_cache_tokens: Option<u64>,

    /// Name under which the model is served
    #[arg(long, value_name = "NAME", default_value = "llama-3.1-70b-instruct", help_heading = "Engines")]
    pub(crate) model: String,
}

impl EngineFlags {
    /// The settings of one engine.
    pub(crate) fn config(&self) -> Result<EmulatorConfig, Failure> {
        let profile = match &self.profile {
            Some(name) => Profile::named(name).map_err(|error| Failure::Usage(format!("--profile: {error}")))?,
            None => Profile::default(),
        };
        Ok(self.config_of(match self.kv_cache_tokens {
            Some(tokens) => profile.with_kv_capacity_tokens(tokens),
            None => profile,
        }))
    }

    /// The settings of one engine with another profile. Its context is at most what its cache holds.
    pub(crate) fn config_of(&self, profile: Profile) -> EmulatorConfig {
        let default = EmulatorConfig::default();
        let capacity = u32::try_from(profile.kv_capacity_tokens).unwrap_or(u32::MAX);
        EmulatorConfig {
            max_model_len: default.max_model_len.min(capacity),
            profile,
            speed: self.speed.unwrap_or(1.0),
            model: self.model.clone(),
            ..default
        }
    }
}

/// A fleet of emulated engines within this process.
pub(crate) struct EngineFleet {
    engines: Vec<RunningEmulator>,
    /// How many accelerators each of them pretends to have.
    accelerators: Vec<u32>,
    summary: String,
}

impl EngineFleet {
    /// Starts `count` equal engines on free ports.
    pub(crate) fn start(flags: &EngineFlags, count: u16) -> Result<EngineFleet, Failure> {
        EngineFleet::of(vec![flags.config()?; count.into()])
    }

    /// Starts engines of several kinds on free ports; at least one.
    pub(crate) fn of(configs: Vec<EmulatorConfig>) -> Result<EngineFleet, Failure> {
        let summary = configs.first().map(EmulatorConfig::summary).unwrap_or_default();
        let accelerators = configs.iter().map(|config| config.profile.accelerators).collect();
        let engines = configs.into_iter().map(isotherm_emulator::start).collect::<Result<_, _>>();
        let engines = engines.map_err(|error| Failure::running("emulated engines", error))?;
        Ok(EngineFleet { engines, accelerators, summary })
    }

    /// Model, profile, cache and speed in one line.
    pub(crate) fn summary(&self) -> &str {
        &self.summary
    }

    /// Each engine's instance id and URL. Ids count up whatever the ports are, so that keys come home after a restart.
    pub(crate) fn instances(&self) -> impl Iterator<Item = (String, String)> {
        self.engines.iter().enumerate().map(|(i, engine)| (format!("AllTraffic-{i}"), engine.base_url()))
    }

    /// A router in front of them.
    pub(crate) fn setup(&self, overrides: Overrides) -> Result<Setup, Failure> {
        let instances = self.instances().map(|(id, url)| format!("{id}={url}")).collect();
        let overrides = with_decisions_shown(Overrides { instances, ..overrides });
        let mut config = Config::load(None, &Environment::of_process(), &overrides)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let entries = std::mem::take(&mut config.endpoints[0].variants[0].instances);
        let started = entries.into_iter().filter_map(|entry| match entry.source {
            InstanceSource::Url { id, url } => Some(NewInstance {
                endpoint: None,
                variant: None,
                id: Some(id),
                url,
                weight: entry.weight,
                max_in_flight: entry.max_in_flight,
                api_key: None,
                origin: Origin::Started,
            }),
            InstanceSource::Dns { .. } => None,
        });
        Ok(Setup { started: started.collect(), config, file: None })
    }

    /// How many accelerators they pretend to have in all.
    pub(crate) fn accelerators(&self) -> u32 {
        self.accelerators.iter().sum()
    }

    /// What they have done since their start.
    pub(crate) fn work(&self) -> Work {
        let engines = self.engines.iter().zip(&self.accelerators);
        engines.fold(Work::default(), |sum, (engine, &accelerators)| {
            let statistics = engine.statistics();
            Work {
                evicted_blocks: sum.evicted_blocks + statistics.evicted_blocks,
                busy_accelerator_time: sum.busy_accelerator_time + statistics.busy * accelerators,
            }
        })
    }

    /// How late the engines' steps were.
    pub(crate) fn lag(&self) -> Vec<LagReport> {
        self.engines.iter().map(RunningEmulator::lag).collect()
    }

    /// Ends them all.
    pub(crate) async fn stop(self) {
        for engine in self.engines {
            engine.shutdown(GRACE).await;
        }
    }
}
