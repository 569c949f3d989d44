//! Asks an instance again and again whether it is well, and tells routing what came of it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::StatusCode;
use isotherm_config::Health;
use isotherm_core::{Evidence, Time};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use super::get::{self, GetError};
use super::{Watch, jitter};
use crate::problem::{Problem, ProblemKind};
use crate::{Instance, Location};

/// What engines call their health check.
const HEALTH: &str = "/health";
/// What every engine of this kind has.
const MODELS: &str = "/v1/models";

/// What was wrong with a probe.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error(transparent)]
    Get(#[from] GetError),
    #[error("GET {path} was answered with {status}")]
    Status { path: String, status: StatusCode },
}

impl Watch {
    /// Probes until the watch ends.
    pub(super) async fn probe_for_ever(&self) {
        let mut prober = Prober { without_health: false };
        loop {
            let started = Instant::now();
            let health = self.variant.plan().health.clone();
            let outcome = prober.probe(&self.instance, &health).await;
            self.take_in(outcome, self.variant.clock().now());
            // Never less often than configured: what returns is to be found within the interval.
            sleep_until(started + health.interval.mul_f64(jitter(0.8, 1.0))).await;
        }
    }

    fn take_in(&self, outcome: Result<(), ProbeError>, now: Time) {
        let evidence = match &outcome {
            Ok(()) => Evidence::ProbeAnswered,
            Err(error) => error.evidence(self.instance.last_byte()),
        };
        if evidence == Evidence::ConnectRefused {
            self.was_gone.store(true, Ordering::Relaxed);
        }
        let changed = self.variant.observe(self.generation, evidence, now);
        let Location { endpoint, variant, instance } = &**self.instance.location();
        match outcome {
            Ok(()) => {
                self.instance.note_answered_probe();
                self.instance.set_problem(None);
                if changed {
                    info!(%endpoint, %variant, %instance, "up");
                    self.ask_for_figures.notify_one();
                }
                if changed || self.take_owed_listing() {
                    self.ask_for_models.notify_one();
                }
            }
            Err(error) => {
                if changed {
                    warn!(%endpoint, %variant, %instance, "down: {error}");
                }
                self.instance.set_problem(Some(error.told()));
            }
        }
    }
}

/// Knows which path an instance understands.
struct Prober {
    /// It was asked for `/health` and does not know that.
    without_health: bool,
}

impl Prober {
    async fn probe(&mut self, instance: &Instance, health: &Health) -> Result<(), ProbeError> {
        let both = async {
            if let Some(path) = &health.path {
                return ask(instance, path.as_str(), health.timeout).await;
            }
            if !self.without_health {
                match ask(instance, HEALTH, health.timeout).await {
                    Err(error) if error.is_unknown_path() => self.without_health = true,
                    outcome => return outcome,
                }
            }
            let outcome = ask(instance, MODELS, health.timeout).await;
            // Perhaps another engine runs there now.
            self.without_health &= outcome.is_ok();
            outcome
        };
        let path = || health.path.as_ref().map_or(HEALTH, |path| path.as_str()).to_owned();
        let timed_out = |_| Err(GetError::TimedOut { path: path(), limit: health.timeout }.into());
        tokio::time::timeout(health.timeout, both).await.unwrap_or_else(timed_out)
    }
}

async fn ask(instance: &Instance, path: &str, limit: Duration) -> Result<(), ProbeError> {
    let status = get::status(instance, path, limit).await?;
    if status.is_success() { Ok(()) } else { Err(ProbeError::Status { path: path.to_owned(), status }) }
}

impl ProbeError {
    fn is_unknown_path(&self) -> bool {
        matches!(self, ProbeError::Status { status: StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED, .. })
    }

    fn told(&self) -> Problem {
        let kind = match self {
            ProbeError::Get(GetError::Refused) => ProblemKind::Refused,
            ProbeError::Get(GetError::ConnectTimedOut) => {
                ProblemKind::NoConnectionWithin { seconds: get::CONNECT_TIMEOUT.as_secs_f64() }
            }
            ProbeError::Get(GetError::Connect(cause)) => ProblemKind::NoConnection { cause: cause.to_string() },
            ProbeError::Get(GetError::TimedOut { path, limit }) => {
                ProblemKind::NoAnswer { path: path.clone(), seconds: limit.as_secs_f64() }
            }
            ProbeError::Get(GetError::Broken { path, cause }) => {
                ProblemKind::BrokenAnswer { path: path.clone(), cause: cause.to_string() }
            }
            ProbeError::Status { path, status } => {
                ProblemKind::Status { path: path.clone(), status: status.to_string() }
            }
        };
        Problem::new(self, kind)
    }

    /// What it says about the instance, from which the last response byte came at `last_byte`.
    fn evidence(&self, last_byte: Option<Time>) -> Evidence {
        match self {
            ProbeError::Get(GetError::Refused) => Evidence::ConnectRefused,
            // An engine whose accept queue is full during a long prefill is as alive as one that answers late.
            ProbeError::Get(GetError::ConnectTimedOut | GetError::TimedOut { .. }) => {
                Evidence::ProbeTimedOut { last_byte }
            }
            ProbeError::Get(GetError::Connect(_) | GetError::Broken { .. }) | ProbeError::Status { .. } => {
                Evidence::ProbeFailed
            }
        }
    }
}
