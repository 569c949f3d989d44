//! Watches one instance for as long as it lives: whether it is well, and what it serves.

mod figures;
mod get;
mod identity;
mod models;
mod probe;
#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isotherm_core::Generation;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::{Fleet, Instance, Variant};

/// How often an instance is asked for its models that is well all the time.
const LIST_EVERY: Duration = Duration::from_secs(30);

/// Whatever is asked of one instance beside its requests.
pub(crate) struct Watch {
    fleet: Fleet,
    variant: Arc<Variant>,
    instance: Arc<Instance>,
    generation: Generation,
    /// [`LIST_EVERY`].
    list_every: Duration,
    /// Told when the instance may have a new listing.
    ask_for_models: Notify,
    /// It could not be asked for its models yet.
    owed_listing: AtomicBool,
    /// Told when the instance's process may be another one.
    ask_for_figures: Notify,
    /// Told when it may be another engine.
    ask_who_it_is: Notify,
    /// A probe found that nothing listened there, and routing was told.
    was_gone: AtomicBool,
}

impl Watch {
    pub(crate) fn new(fleet: Fleet, variant: Arc<Variant>, instance: Arc<Instance>, generation: Generation) -> Watch {
        Watch {
            fleet,
            variant,
            instance,
            generation,
            list_every: LIST_EVERY,
            ask_for_models: Notify::new(),
            owed_listing: AtomicBool::new(false),
            ask_for_figures: Notify::new(),
            ask_who_it_is: Notify::new(),
            was_gone: AtomicBool::new(false),
        }
    }

    /// Begins within `spread`, so that a thousand instances are not asked in the same millisecond, and never ends.
    pub(crate) async fn run(self, spread: Duration) {
        sleep(spread.mul_f64(jitter(0.0, 1.0))).await;
        tokio::join!(
            self.probe_for_ever(),
            self.list_for_ever(),
            self.scrape_for_ever(),
            self.ask_who_it_is_for_ever()
        );
    }

    fn take_owed_listing(&self) -> bool {
        self.owed_listing.swap(false, Ordering::Relaxed)
    }
}

/// A number between the two, another one each time: what is done again and again is not to fall into step.
pub(crate) fn jitter(least: f64, most: f64) -> f64 {
    // The standard library's keys of hash maps are random and at hand.
    let random = RandomState::new().build_hasher().finish();
    least + (most - least) * ((random >> 11) as f64 / (1u64 << 53) as f64)
}
