//! Programs that are started for each instance: probed, started again when they end, and ended with all their children.

mod command;
mod left_behind;
mod process_id;
mod served;
mod supervise;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use self::left_behind::LeftBehind;
use self::supervise::Supervisor;
use super::{Doing, InstanceOrder, Provider, Standing};

/// The first pause before a program that ended is started again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Starts a program for each instance.
///
/// Its output goes to `logs/KEY.log` in the data directory. Who runs there stands in `processes/KEY.json`, so that a
/// router that was killed finds its engines again, with their caches warm, when it is started the next time.
#[derive(Debug)]
pub struct ProcessProvider {
    shared: Arc<Shared>,
    running: Mutex<HashMap<String, Running>>,
}

#[derive(Debug)]
struct Shared {
    settings: isotherm_config::ProcessProvider,
    logs: PathBuf,
    processes: PathBuf,
    first_pause: Duration,
}

#[derive(Debug)]
struct Running {
    standing: watch::Receiver<Standing>,
    stop: watch::Sender<bool>,
    supervisor: JoinHandle<()>,
}

impl ProcessProvider {
    /// A provider that keeps logs and process ids below `data_dir`.
    pub fn new(settings: isotherm_config::ProcessProvider, data_dir: &Path) -> ProcessProvider {
        ProcessProvider::pausing(settings, data_dir, FIRST_PAUSE)
    }

    fn pausing(settings: isotherm_config::ProcessProvider, data_dir: &Path, first_pause: Duration) -> ProcessProvider {
        let (logs, processes) = (data_dir.join("logs"), data_dir.join("processes"));
        let shared = Shared { settings, logs, processes, first_pause };
        ProcessProvider { shared: Arc::new(shared), running: Mutex::default() }
    }

    /// Tells a program to end; what is returned resolves when it has.
    fn take(&self, key: &str) -> Option<JoinHandle<()>> {
        let running = self.running.lock().remove(key)?;
        running.stop.send_replace(true);
        Some(running.supervisor)
    }
}

impl Provider for ProcessProvider {
    fn start(&self, order: InstanceOrder) -> watch::Receiver<Standing> {
        let mut running = self.running.lock();
        if let Some(present) = running.get(&order.key) {
            return present.standing.clone();
        }
        let (sender, standing) = watch::channel(Standing::Starting);
        let (stop, stopping) = watch::channel(false);
        let key = order.key.clone();
        let supervisor = Supervisor::new(Arc::clone(&self.shared), order, sender, stopping);
        let supervisor = tokio::spawn(supervisor.run());
        running.insert(key, Running { standing: standing.clone(), stop, supervisor });
        standing
    }

    fn stop(&self, key: String) -> Doing<'_> {
        Box::pin(async move {
            match self.take(&key) {
                Some(supervisor) => drop(supervisor.await),
                None => {
                    if let Some(process) = LeftBehind::read(&self.shared.processes, &key) {
                        process.end(self.shared.settings.stop_timeout).await;
                    }
                }
            }
        })
    }

    fn retain(&self, wanted: &HashSet<String>) -> Doing<'_> {
        let all = LeftBehind::all(&self.shared.processes);
        let running: HashSet<_> = self.running.lock().keys().cloned().collect();
        let unwanted: Vec<_> =
            all.into_iter().filter(|one| !wanted.contains(one.key()) && !running.contains(one.key())).collect();
        let patience = self.shared.settings.stop_timeout;
        Box::pin(async move {
            let mut ending: JoinSet<()> = unwanted.into_iter().map(|one| one.end(patience)).collect();
            while ending.join_next().await.is_some() {}
        })
    }

    fn shutdown(&self) -> Doing<'_> {
        let keys: Vec<_> = self.running.lock().keys().cloned().collect();
        let supervisors: Vec<_> = keys.iter().filter_map(|key| self.take(key)).collect();
        Box::pin(async move {
            for supervisor in supervisors {
                let _ = supervisor.await;
            }
        })
    }
}
