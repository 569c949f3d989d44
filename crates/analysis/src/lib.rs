//! What request logs tell of shared beginnings, and what to configure for them.
//!
//! [`analyse`] reads logs in one pass and in bounded memory: hashes and counts are kept, and no text unless asked.

mod analyst;
mod breaks;
mod calibration;
mod chain;
mod clients;
mod entry;
mod findings;
mod format;
mod kept;
mod known;
mod lengths;
mod logs;
mod note;
mod prefixes;
mod present;
mod prompt;
mod read;
mod recommend;
mod records;
mod reuse;
mod source;
#[cfg(test)]
mod tests;
mod timestamp;
mod tools;
mod volatile;

pub use breaks::Cause;
pub use calibration::{Calibration, CalibrationPart};
pub use clients::{ClientFindings, SystemForm};
pub use findings::{Break, Findings, KeyFindings, Sharing, TokenSource};
pub use format::{Format, UnknownFormat};
pub use lengths::Distribution;
pub use logs::{LogCounts, LogError};
pub use note::Note;
pub use prefixes::{HotPrefix, PrefixCount};
pub use present::{CacheSize, Told, page, text};
pub use recommend::{Compared, Figures, Reasons, Recommendation, Replay, Size, TOLERANCE, Tried, Wanted};
pub use reuse::{CurvePoint, Estimate, ReuseSeconds};
pub use source::Input;

use analyst::Analyst;
use kept::Kept;
use logs::Logs;

/// How to read logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What all logs are; `None` finds out for each.
    pub format: Option<Format>,
    /// Keep and show an example of what stands where prompts part. It may be anything that users wrote.
    pub keep_text: bool,
    /// How many requests are kept for the simulator, from the first on.
    pub most_simulated: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { format: None, keep_text: false, most_simulated: 20_000 }
    }
}

/// Is told how far an analysis has come.
pub trait Watch: Sync {
    /// So many more bytes were read, compressed as they are.
    fn read(&self, bytes: u64);
}

/// Nobody watches.
impl Watch for () {
    fn read(&self, _bytes: u64) {}
}

/// What was found in logs, and what of them can be replayed.
#[derive(Debug)]
pub struct Analysis {
    /// What was found.
    pub findings: Findings,
    kept: Kept,
    /// The same requests with what breaks sharing repaired; `None` where there is no text.
    repaired: Option<Kept>,
    /// By what estimated lengths are multiplied.
    token_factor: f64,
}

/// Reads logs and sums up what they have in common.
///
/// # Errors
/// When a log cannot be read, or has no request that can be.
pub fn analyse(inputs: &[Input], options: &Options, watch: &dyn Watch) -> Result<Analysis, LogError> {
    let mut logs = Logs::open(inputs, options.format, watch)?;
    let mut analyst = Analyst::new(options.most_simulated, options.keep_text);
    while let Some(entry) = logs.next()? {
        analyst.take(entry);
    }
    let out_of_order = logs.out_of_order();
    Ok(analyst.finish(logs.counts()?, out_of_order))
}
