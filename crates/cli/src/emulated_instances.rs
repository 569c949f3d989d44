//! The provider whose instances are emulated engines within this process.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use isotherm_config::{EmulatedProvider, InstanceUrl};
use isotherm_emulator::{Profile, RunningEmulator};
use isotherm_sagemaker::providers::{Doing, InstanceOrder, Provider, Reached, Standing};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::fleet_of_engines::{EngineFlags, GRACE};

/// The name under which a model is served that has none.
const MODEL: &str = "llama-3.1-70b-instruct";

/// How many seconds a session of a container of AWS's lasts, in its environment (`model-hosting-container-standards`).
const SESSIONS_EXPIRATION: &str = "SAGEMAKER_SESSIONS_EXPIRATION";

/// Starts an emulated engine for each instance.
#[derive(Debug)]
pub(crate) struct EmulatedInstances {
    settings: EmulatedProvider,
    running: Mutex<HashMap<String, Instance>>,
}

#[derive(Debug)]
struct Instance {
    /// `None` for one that could not start.
    engine: Option<RunningEmulator>,
    standing: watch::Receiver<Standing>,
}

impl EmulatedInstances {
    /// A provider of engines that pretend to be this.
    pub(crate) fn new(settings: &EmulatedProvider) -> EmulatedInstances {
        EmulatedInstances { settings: settings.clone(), running: Mutex::default() }
    }

    fn engine(&self, order: &InstanceOrder) -> Result<(RunningEmulator, InstanceUrl), String> {
        let EmulatedProvider { profile, speed, model: usual } = self.settings.clone();
        let model = order.model.clone().or(usual).unwrap_or_else(|| MODEL.to_owned());
        let profile = profile.map_or(Ok(Profile::default()), |name| Profile::named(&name));
        let profile = profile.map_err(|error| error.to_string())?;
        let mut config = EngineFlags { profile: None, speed, kv_cache_tokens: None, model }.config_of(profile);
        if let Some(seconds) = order.environment.get(SESSIONS_EXPIRATION) {
            let refused = |_| format!("{SESSIONS_EXPIRATION} of its container is a number of seconds, not {seconds:?}");
            config.session_lifetime = Duration::from_secs(seconds.parse::<u32>().map_err(refused)?.into());
        }
        let engine = isotherm_emulator::start(config).map_err(|error| error.to_string())?;
        let url = engine.base_url().parse().map_err(|error: isotherm_config::UrlError| error.to_string())?;
        Ok((engine, url))
    }
}

impl Provider for EmulatedInstances {
    fn start(&self, order: InstanceOrder) -> watch::Receiver<Standing> {
        let mut running = self.running.lock();
        if let Some(present) = running.get(&order.key) {
            return present.standing.clone();
        }
        let (engine, standing) = match self.engine(&order) {
            Ok((engine, url)) => {
                (Some(engine), Standing::Running(Reached { url, api_key: None, tls: None, health: None }))
            }
            Err(reason) => (None, Standing::Failed(format!("The emulated engine did not start: {reason}."))),
        };
        let standing = watch::channel(standing).1;
        running.insert(order.key, Instance { engine, standing: standing.clone() });
        standing
    }

    fn stop(&self, key: String) -> Doing<'_> {
        let stopped = self.running.lock().remove(&key);
        Box::pin(async {
            if let Some(engine) = stopped.and_then(|instance| instance.engine) {
                engine.shutdown(GRACE).await;
            }
        })
    }

    /// Nothing outlives the process.
    fn retain(&self, _: &HashSet<String>) -> Doing<'_> {
        Box::pin(async {})
    }

    fn shutdown(&self) -> Doing<'_> {
        let all: Vec<Instance> = self.running.lock().drain().map(|(_, instance)| instance).collect();
        Box::pin(async {
            for engine in all.into_iter().filter_map(|instance| instance.engine) {
                engine.shutdown(GRACE).await;
            }
        })
    }
}
