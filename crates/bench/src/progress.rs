//! Shows how far a run is.

use indicatif::{ProgressBar, ProgressStyle};

/// Is told about every request that ended.
pub trait Progress {
    /// A strategy's run begins; it will send `requests`, with those of the warm-up.
    fn started(&self, strategy: &str, requests: u64);
    /// One more request ended.
    fn request_ended(&self, failed: bool);
    /// The strategy's run is over.
    fn finished(&self);
}

/// Shows nothing.
impl Progress for () {
    fn started(&self, _: &str, _: u64) {}
    fn request_ended(&self, _: bool) {}
    fn finished(&self) {}
}

/// A bar on standard error, when that is a terminal.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    errors: std::cell::Cell<u64>,
}

impl Bar {
    pub fn new() -> Bar {
        let bar = ProgressBar::no_length();
        // A template that does not parse would only cost the bar its looks.
        if let Ok(style) = ProgressStyle::with_template("{prefix:>26} [{bar:30}] {pos}/{len} requests, {eta} left{msg}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        Bar { bar, errors: std::cell::Cell::new(0) }
    }
}

impl Default for Bar {
    fn default() -> Bar {
        Bar::new()
    }
}

impl Progress for Bar {
    fn started(&self, strategy: &str, requests: u64) {
        self.errors.set(0);
        self.bar.set_message("");
        self.bar.set_prefix(strategy.to_owned());
        self.bar.set_length(requests);
        self.bar.reset();
    }

    fn request_ended(&self, failed: bool) {
        if failed {
            self.errors.set(self.errors.get() + 1);
            self.bar.set_message(format!(", {} failed", self.errors.get()));
        }
        self.bar.inc(1);
    }

    fn finished(&self) {
        self.bar.finish_and_clear();
    }
}
