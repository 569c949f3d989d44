//! Reads an instance's metrics page again and again, and tells routing when its process is another one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use http::{HeaderValue, StatusCode};
use isotherm_telemetry::EngineReading;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::get::{self, GetError};
use super::{Watch, jitter};
use crate::{EngineFigures, Location};

/// Where engines have their metrics: TensorRT-LLM's stand at the second path.
const PATHS: [&str; 2] = ["/metrics", "/prometheus/metrics"];

/// The largest page, in bytes: vLLM's is 50 KiB.
const LARGEST: usize = 4 << 20;

/// How long an engine is left alone that has no metrics.
const WITHOUT_METRICS: Duration = Duration::from_secs(60);

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
enum ScrapeError {
    #[error(transparent)]
    Get(#[from] GetError),
    #[error("GET {path} was answered with {status}")]
    Status { path: String, status: StatusCode },
    #[error("what GET {path} answers are no metrics of vLLM, SGLang, TensorRT-LLM or llama.cpp")]
    Unknown { path: String },
}

impl ScrapeError {
    /// Whether it tells of the engine rather than of the moment.
    fn is_lasting(&self) -> bool {
        match self {
            ScrapeError::Get(_) => false,
            ScrapeError::Status { status, .. } => status.is_client_error(),
            ScrapeError::Unknown { .. } => true,
        }
    }
}

/// A page that was understood.
struct Scraped {
    figures: EngineFigures,
    clock_ahead: Option<f64>,
}

impl Watch {
    /// Reads the figures until the watch ends. An engine that has none is asked less often; nothing depends on them.
    pub(super) async fn scrape_for_ever(&self) {
        loop {
            let plan = self.variant.plan().engine_metrics.clone();
            let mut pause = plan.interval;
            if plan.enabled {
                match self.scrape(plan.path.as_ref().map(|path| path.as_str()), plan.timeout).await {
                    Ok(scraped) => self.take_in_figures(scraped),
                    Err(error) => {
                        if error.is_lasting() {
                            pause = pause.max(WITHOUT_METRICS);
                        }
                        self.without_figures(&error);
                    }
                }
            } else if self.instance.engine().figures.is_some() {
                self.instance.change_engine(|report| report.figures = None);
                self.instance.metrics().forget_engine();
            }
            let _ = timeout(pause.mul_f64(jitter(0.8, 1.0)), self.ask_for_figures.notified()).await;
        }
    }

    async fn scrape(&self, path: Option<&str>, limit: Duration) -> Result<Scraped, ScrapeError> {
        let Some(path) = path else {
            let first = self.read(PATHS[0], limit).await;
            return match first {
                Err(error) if error.is_lasting() => self.read(PATHS[1], limit).await.map_err(|_| error),
                first => first,
            };
        };
        self.read(path, limit).await
    }

    async fn read(&self, path: &str, limit: Duration) -> Result<Scraped, ScrapeError> {
        let (status, date, body) = get::page(&self.instance, path, limit, LARGEST).await?;
        if !status.is_success() {
            return Err(ScrapeError::Status { path: path.to_owned(), status });
        }
        let figures = std::str::from_utf8(&body).ok().and_then(EngineFigures::read);
        let figures = figures.ok_or_else(|| ScrapeError::Unknown { path: path.to_owned() })?;
        Ok(Scraped { figures, clock_ahead: date.as_ref().and_then(|date| ahead(date, SystemTime::now())) })
    }

    fn take_in_figures(&self, Scraped { figures, clock_ahead }: Scraped) {
        let before = self.instance.engine().figures.map(|(figures, _)| figures);
        let is_first = before.is_none();
        let restarted = before.as_ref().is_some_and(|before| figures.is_another_process(before));
        // Whoever was refused a connection has told routing already; what it has learned since is of this process.
        let is_told = self.was_gone.swap(false, Ordering::Relaxed);
        // Counted from 0 where the process is another one.
        let base = before.filter(|_| !restarted);
        let gained = |now: Option<u64>, field: fn(&EngineFigures) -> Option<u64>| {
            now.map(|now| now.saturating_sub(base.as_deref().and_then(field).unwrap_or_default()))
        };
        self.instance.metrics().set_engine(Some(&EngineReading {
            running: figures.running,
            waiting: figures.waiting,
            kv_cache_usage: figures.kv_cache_usage,
            gpu_memory_bytes: figures.gpu_memory_bytes,
            start_time: figures.started,
            new_prefix_cache_queries: gained(figures.prefix_cache_queries, |before| before.prefix_cache_queries),
            new_prefix_cache_hits: gained(figures.prefix_cache_hits, |before| before.prefix_cache_hits),
        }));
        self.instance.change_engine(|report| {
            report.figures = Some((Arc::new(figures), SystemTime::now()));
            report.problem = None;
            report.clock_ahead = clock_ahead;
        });
        if restarted {
            self.take_in_restart(is_told);
        }
        if restarted || is_first {
            self.ask_who_it_is.notify_one();
        }
    }

    fn take_in_restart(&self, is_told: bool) {
        let Location { endpoint, variant, instance } = &**self.instance.location();
        warn!(%endpoint, %variant, %instance, "its process is another one than before: its cache is empty");
        if !is_told {
            self.variant.restarted(self.generation);
        }
        self.instance.metrics().engine_restarted();
        self.instance.change_engine(|report| {
            report.restarts += 1;
            report.restarted = Some(SystemTime::now());
        });
    }

    fn without_figures(&self, error: &ScrapeError) {
        debug!(instance = %self.instance.id(), "no figures: {error}");
        self.instance.metrics().set_engine(None);
        self.instance.change_engine(|report| report.problem = Some(error.to_string().into()));
    }
}

/// How far a `date` header is ahead of `now`, in seconds; a second at least is its own granularity.
fn ahead(date: &HeaderValue, now: SystemTime) -> Option<f64> {
    let date = jiff::fmt::rfc2822::parse(date.to_str().ok()?).ok()?.timestamp();
    let now = jiff::Timestamp::try_from(now).ok()?;
    Some(date.as_second() as f64 + 0.5 - now.as_millisecond() as f64 / 1_000.0)
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn a_date_header_tells_how_far_a_clock_is_ahead() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let of = |text| ahead(&HeaderValue::from_static(text), now);
        assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0.5));
        assert_eq!(of("Sun, 06 Nov 1994 08:51:37 GMT"), Some(120.5));
        assert_eq!(of("yesterday"), None);
    }
}
