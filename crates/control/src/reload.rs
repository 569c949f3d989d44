//! Reading the configuration again while the router serves: on request, and when the file changes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use isotherm_config::{Config, Environment, Overrides};
use isotherm_telemetry::Metrics;
use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;
use xxhash_rust::xxh3::xxh3_128;

/// How often the files are compared with what was read last.
///
/// Their contents are, not their times: that sees every way of writing a file, Kubernetes' swapped symbolic links too.
const EVERY: Duration = Duration::from_secs(1);

/// What became of reading the configuration again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    /// It is in force.
    Applied,
    /// It says what is in force already.
    Unchanged,
    /// It is wrong in these places; the old one stays in force.
    Refused(String),
}

/// Reads a configuration file again and puts it into force.
#[derive(Clone)]
pub struct Reloader {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    overrides: Overrides,
    metrics: Arc<Metrics>,
    apply: Box<dyn Fn(&Config) + Send + Sync>,
    last: Mutex<Last>,
}

/// What was read last: whoever holds it reads, so that one reload follows the other.
struct Last {
    config: Config,
    contents: Contents,
}

/// What the configuration file and the files of keys and certificates that it names hold, each as a hash; `None` where
/// one can't be read.
type Contents = Vec<Option<u128>>;

impl Reloader {
    /// A reloader of the file that `config` was read from with these overrides; `apply` puts a new one into force.
    pub fn new(
        path: PathBuf,
        overrides: Overrides,
        config: Config,
        metrics: Arc<Metrics>,
        apply: impl Fn(&Config) + Send + Sync + 'static,
    ) -> Reloader {
        let contents = contents(&path, &config);
        let last = Mutex::new(Last { config, contents });
        Reloader { shared: Arc::new(Shared { path, overrides, metrics, apply: Box::new(apply), last }) }
    }

    /// Reads the file now.
    pub fn reload(&self) -> Reload {
        let mut last = self.shared.last.lock();
        let shared = &*self.shared;
        // Remembered even when it is refused, so that one bad file is told of once.
        last.contents = contents(&shared.path, &last.config);
        match Config::load(Some(&shared.path), &Environment::of_process(), &shared.overrides) {
            Ok(config) if config == last.config => {
                shared.metrics.config_loaded(SystemTime::now());
                Reload::Unchanged
            }
            Ok(config) => {
                warn_of_what_needs_a_restart(&last.config, &config);
                for warning in config.warnings(SystemTime::now()) {
                    tracing::warn!("{warning}");
                }
                (shared.apply)(&config);
                last.contents = contents(&shared.path, &config);
                last.config = config;
                shared.metrics.config_loaded(SystemTime::now());
                tracing::info!(file = %shared.path.display(), "configuration reloaded");
                Reload::Applied
            }
            Err(error) => {
                shared.metrics.config_refused();
                tracing::error!("configuration refused, the old one stays in force:\n{error}");
                Reload::Refused(error.to_string())
            }
        }
    }

    /// Reloads when a file has changed, for as long as it is polled.
    pub async fn watch(self) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.reload_when_changed();
        }
    }

    fn reload_when_changed(&self) {
        let changed = {
            let last = self.shared.last.lock();
            contents(&self.shared.path, &last.config) != last.contents
        };
        if changed {
            self.reload();
        }
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

fn contents(path: &Path, config: &Config) -> Contents {
    let hash = |file: &Path| Some(xxh3_128(&std::fs::read(file).ok()?));
    std::iter::once(hash(path)).chain(config.files().iter().map(|file| hash(file))).collect()
}

/// Listeners, their number of threads and the seed of the keys are fixed at start: moving them would drop connections
/// or every prefix's home.
fn warn_of_what_needs_a_restart(old: &Config, new: &Config) {
    let changed = [
        ("listen", old.listen != new.listen),
        (
            "admin",
            (old.admin.listen, &old.admin.token_file, &old.admin.hosts)
                != (new.admin.listen, &new.admin.token_file, &new.admin.hosts),
        ),
        ("tls of the admin plane", old.admin.tls.is_some() != new.admin.tls.is_some()),
        ("hash_seed", old.hash_seed != new.hash_seed),
        ("access_log", old.access_log != new.access_log),
        ("aws", old.aws != new.aws),
    ];
    for (element, _) in changed.into_iter().filter(|(_, changed)| *changed) {
        tracing::warn!("`{element}` has changed; it takes effect after a restart");
    }
}
