//! Shows how far a run is.

use std::cell::Cell;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Is told about every request that ended.
pub trait Progress {
    /// A strategy's run begins; it will send `requests`, with those of the warm-up.
    fn started(&self, strategy: &str, requests: u64);
    /// A run of so much engine time begins.
    fn started_for(&self, run: &str, duration: Duration);
    /// So much engine time has passed since it began.
    fn passed(&self, time: Duration);
    /// One more request ended.
    fn request_ended(&self, failed: bool);
    /// The strategy's run is over.
    fn finished(&self);
}

/// Shows nothing.
impl Progress for () {
    fn started(&self, _: &str, _: u64) {}
    fn started_for(&self, _: &str, _: Duration) {}
    fn passed(&self, _: Duration) {}
    fn request_ended(&self, _: bool) {}
    fn finished(&self) {}
}

/// A bar on standard error, when that is a terminal.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    errors: Cell<u64>,
    /// The bar counts milliseconds, not requests.
    timed: Cell<bool>,
}

impl Bar {
    pub fn new() -> Bar {
        let bar = ProgressBar::no_length();
        Bar { bar, errors: Cell::new(0), timed: Cell::new(false) }
    }
}

impl Bar {
    fn begin(&self, prefix: &str, length: u64, position: &str, timed: bool) {
        let template = format!("{{prefix:>26}} [{{bar:30}}] {position}, {{eta}} left{{msg}}");
        // A template that does not parse would only cost the bar its looks.
        if let Ok(style) = ProgressStyle::with_template(&template) {
            self.bar.set_style(style.progress_chars("=> "));
        }
        self.timed.set(timed);
        self.errors.set(0);
        self.bar.set_message("");
        self.bar.set_prefix(prefix.to_owned());
        self.bar.set_length(length);
        self.bar.reset();
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Default for Bar {
    fn default() -> Bar {
        Bar::new()
    }
}

impl Progress for Bar {
    fn started(&self, strategy: &str, requests: u64) {
        self.begin(strategy, requests, "{pos}/{len} requests", false);
    }

    fn started_for(&self, run: &str, duration: Duration) {
        self.begin(run, milliseconds(duration), "{percent} %", true);
    }

    fn passed(&self, time: Duration) {
        self.bar.set_position(milliseconds(time));
    }

    fn request_ended(&self, failed: bool) {
        if failed {
            self.errors.set(self.errors.get() + 1);
            self.bar.set_message(format!(", {} failed", self.errors.get()));
        }
        if !self.timed.get() {
            self.bar.inc(1);
        }
    }

    fn finished(&self) {
        self.bar.finish_and_clear();
    }
}
