//! The engines and the router that suffer.

use std::path::PathBuf;
use std::time::Duration;

use isotherm_tests::{Client, Engines, Metrics, Running, eventually};
use serde_json::Value;

use crate::faults::{Disturbance, Random};
use crate::ledger::Ledger;

const ENGINES: usize = 5;
/// At least so many stay alive, so that most requests can be served.
const LEAST_ALIVE: usize = 2;

pub(crate) struct Fleet {
    engines: Engines,
    alive: [bool; ENGINES],
    router: Running,
    file: PathBuf,
    /// How many of the engines the router's file lists.
    listed: usize,
    folder: PathBuf,
}

impl Fleet {
    pub(crate) fn start() -> Fleet {
        let engines = Engines::start(ENGINES, &["--profile", "llama3.1-8b-tp1-bf16", "--speed", "20"]);
        let folder = std::env::temp_dir().join(format!("isotherm-chaos-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the router's file");
        let file = folder.join("isotherm.yaml");
        write(&file, &engines, ENGINES, 1_024);
        let router = Running::start(&["serve", "--config", &file.display().to_string()]);
        Fleet { engines, alive: [true; ENGINES], router, file, listed: ENGINES, folder }
    }

    pub(crate) fn router(&self) -> &Running {
        &self.router
    }

    /// Does something to it, and tells what.
    pub(crate) async fn disturb(&mut self, random: &mut Random, ledger: &Ledger) -> &'static str {
        let engine = random.between(0, ENGINES as u64) as usize;
        match Disturbance::pick(random) {
            Disturbance::Kill => {
                if self.alive.iter().filter(|alive| **alive).count() <= LEAST_ALIVE || !self.alive[engine] {
                    return "nothing";
                }
                // What it has done is not known any more once it is gone.
                self.collect(ledger).await;
                self.engines.kill(engine);
                self.alive[engine] = false;
                "kill"
            }
            Disturbance::Restart => {
                let Some(dead) = self.alive.iter().position(|alive| !alive) else { return "nothing" };
                self.engines.restart(dead);
                self.alive[dead] = true;
                "restart"
            }
            Disturbance::Engine(name, fault) => {
                if !self.alive[engine] {
                    return "nothing";
                }
                let fault: Value = serde_json::from_str(fault).expect("JSON");
                let url = &self.engines.urls()[engine];
                let _ = Client::new(url).try_post("/emulator/faults", &fault).await;
                name
            }
            Disturbance::Reload => {
                write(&self.file, &self.engines, self.listed, random.between(256, 4_096));
                self.router.hang_up();
                "reload"
            }
            Disturbance::Scale => {
                self.listed = random.between(LEAST_ALIVE as u64 + 1, ENGINES as u64 + 1) as usize;
                write(&self.file, &self.engines, self.listed, 1_024);
                self.router.hang_up();
                "scale"
            }
        }
    }

    /// Writes into the ledger what the engines did since they were asked last.
    pub(crate) async fn collect(&mut self, ledger: &Ledger) {
        for (index, url) in self.engines.urls().iter().enumerate().filter(|(index, _)| self.alive[*index]) {
            let Ok(answer) = Client::new(url).try_get("/emulator/requests").await else { continue };
            for request in answer.json()["requests"].as_array().into_iter().flatten() {
                ledger.generated(index, request);
            }
        }
    }

    /// Ends all faults and brings everything back.
    pub(crate) async fn calm(&mut self) {
        for engine in 0..ENGINES {
            if !self.alive[engine] {
                self.engines.restart(engine);
                self.alive[engine] = true;
            }
            let url = &self.engines.urls()[engine];
            let _ = Client::new(url).try_post("/emulator/faults", &serde_json::json!({})).await;
        }
        self.listed = ENGINES;
        write(&self.file, &self.engines, ENGINES, 1_024);
        self.router.hang_up();
    }

    /// Requests that the router still counts, once nobody asks any more; the engines have let go of theirs.
    pub(crate) async fn left_over(&self) -> f64 {
        for url in self.engines.urls() {
            eventually("the engine is idle", Duration::from_secs(30), async || {
                let report = Client::new(&url).try_get("/emulator/requests").await.ok()?.json();
                let running = report["requests"].as_array()?.iter();
                let running = running.filter(|one| one["method"] == "POST" && one["in_flight"] == true);
                (running.count() == 0).then_some(())
            })
            .await;
        }
        let mut left = f64::NAN;
        for _ in 0..100 {
            let metrics = Metrics::read(self.router.admin()).await;
            left = metrics.in_flight() + metrics.sum("isotherm_waiting_requests", &[]);
            if left == 0.0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        left
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn write(file: &PathBuf, engines: &Engines, listed: usize, prefix_length: u64) {
    let mut text = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nexpose_decisions: true\n\
         limits: {{ queue: {{ max_waiting: 8, timeout: 2s }} }}\n\
         timeouts: {{ first_byte: 3s, idle: 2s, total: 20s }}\n\
         endpoints:\n  - name: chat\n    variants:\n      - name: AllTraffic\n        \
         routing: {{ strategy: PREFIX_AWARE, prefix_length: {prefix_length} }}\n        instances:\n"
    );
    for (index, url) in engines.urls().iter().enumerate().take(listed) {
        text += &format!("          - {{ id: {}, url: \"{url}\", max_in_flight: 6 }}\n", Engines::id(index));
    }
    std::fs::write(file, text).expect("the router's file is written");
}
