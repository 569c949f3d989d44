//! Asks an instance again and again which models it serves.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::timeout;
use tracing::debug;

use super::get::{self, GetError};
use super::{Watch, jitter};
use crate::listing::{Listing, MalformedListing};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest answer, in bytes: 10,000 adapters and more.
const LARGEST: usize = 8 << 20;

/// Why there is no new listing.
#[derive(Debug, thiserror::Error)]
enum ModelsError {
    #[error(transparent)]
    Get(#[from] GetError),
    #[error("GET /v1/models was answered with {0}")]
    Status(http::StatusCode),
    #[error(transparent)]
    Malformed(#[from] MalformedListing),
}

impl ModelsError {
    /// Whether it tells of the moment rather than of the engine.
    fn may_pass(&self) -> bool {
        match self {
            ModelsError::Get(_) => true,
            ModelsError::Status(status) => status.is_server_error(),
            ModelsError::Malformed(_) => false,
        }
    }
}

impl Watch {
    /// Asks when the instance was added, when it recovers, and from time to time, until the watch ends. An answer that
    /// is none leaves the last listing in force.
    pub(super) async fn list_for_ever(&self) {
        loop {
            match self.ask().await {
                Ok(Some(listing)) => self.keep(listing),
                Ok(None) => {}
                Err(error) => {
                    debug!(instance = %self.instance.id(), "models unknown: {error}");
                    // One that is still loading will have something to say once it is well.
                    let owed = error.may_pass() && self.instance.listing().is_none();
                    self.owed_listing.store(owed, Ordering::Relaxed);
                }
            }
            let _ = timeout(self.list_every.mul_f64(jitter(0.8, 1.0)), self.ask_for_models.notified()).await;
        }
    }

    async fn ask(&self) -> Result<Option<Listing>, ModelsError> {
        let (status, body) = get::body(&self.instance, "/v1/models", TIMEOUT, LARGEST).await?;
        if !status.is_success() {
            return Err(ModelsError::Status(status));
        }
        Ok(Listing::parse(&body)?)
    }

    fn keep(&self, listing: Listing) {
        let names = listing.names();
        let known = self.instance.listing().is_some_and(|known| known.names() == names);
        self.instance.set_listing(Arc::new(listing));
        if !known {
            self.variant.set_models(self.generation, names);
            self.fleet.listings_changed();
            self.ask_who_it_is.notify_one();
        }
    }
}
