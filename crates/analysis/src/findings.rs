//! What an analysis found, in the form that tables, pages and programs read.

use serde::{Serialize, Serializer};

use crate::breaks::Cause;
use crate::calibration::Calibration;
use crate::clients::ClientFindings;
use crate::lengths::Distribution;
use crate::logs::LogCounts;
use crate::note::Note;
use crate::prefixes::{HotPrefix, PrefixCount};
use crate::reuse::{CurvePoint, Estimate, ReuseSeconds};

/// What was found in logs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Findings {
    /// By file.
    pub logs: Vec<LogCounts>,
    /// Requests with a prompt.
    pub requests: u64,
    /// From the first to the last of them, in seconds; `None` where the log does not say for each.
    pub span_seconds: Option<f64>,
    /// Tokens of all prompts.
    pub prompt_tokens: f64,
    /// Whether an engine counted them, or how they were estimated.
    pub tokens_are: TokenSource,
    /// How long prompts are.
    pub prompt_lengths: Distribution,
    /// What prompts share; `None` where only the keys of prefixes are known.
    pub sharing: Option<Sharing>,
    /// Prefixes by their length; empty where only keys are known.
    pub prefixes: Vec<PrefixCount>,
    /// The prefixes of 4,096 characters that most requests have.
    pub hot_prefixes: Vec<HotPrefix>,
    /// What breaks sharing, the worst first; `None` where there is no text to look at.
    pub breaks: Option<Vec<Break>>,
    /// What differs between clients; `None` where there is no text to look at.
    pub clients: Option<ClientFindings>,
    /// What the keys in an access log tell.
    pub keys: Option<KeyFindings>,
    /// The hit rate that engines reported, of the requests for which they did.
    pub reported_hit_rate: Option<f64>,
    /// What a router believed beforehand against what engines reported; `None` where it believed nothing.
    pub calibration: Option<Calibration>,
    /// What cannot be told from this log, and what to know about the figures: a sentence each.
    #[serde(serialize_with = "in_words")]
    pub notes: Vec<Note>,
}

impl Findings {
    /// Adds what the last requests of a running router cannot tell; of `missed` more it did not take the hashes.
    pub fn are_of_a_router(&mut self, missed: u64) {
        let mut notes = vec![Note::LastRequestsOnly];
        if missed > 0 {
            notes.push(Note::Missed { requests: missed });
        }
        notes.append(&mut self.notes);
        self.notes = notes;
    }
}

fn in_words<S: Serializer>(notes: &[Note], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(notes.iter().map(ToString::to_string))
}

/// Where the tokens of prompts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenSource {
    /// The log has them.
    Recorded,
    /// Estimated from the text, and scaled to what engines reported for some of it.
    Scaled,
    /// Estimated from the text alone.
    Estimated,
}

/// What prompts have in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sharing {
    /// Of one cache without limit that all requests share: the share of the prompts' tokens that came before.
    pub infinite_hit_rate: Estimate,
    /// The same if nothing broke sharing; `None` where there is no text.
    pub repaired_hit_rate: Option<f64>,
    /// How long the beginning is that a prompt has in common with an earlier one.
    pub shared_lengths: Distribution,
    /// How long ago what comes again was used last; `None` without times.
    pub reuse_seconds: Option<ReuseSeconds>,
    /// What caches of these sizes would hit, with all requests of the log.
    pub curve: Vec<CurvePoint>,
    /// Which share of the blocks was kept track of for that; 1 is all, and then nothing is estimated.
    pub sampled_share: f64,
}

/// A place where prompts part although what follows is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Break {
    /// Why.
    pub cause: Cause,
    /// Where, as people find it: `messages[0] (system)`, `tools`, `body`.
    pub place: String,
    /// The first and the last character at which it was seen there.
    pub characters: (usize, usize),
    /// How many requests part from all earlier ones there.
    pub requests: u64,
    /// Which share of the requests that is.
    pub share: f64,
    /// What one of them would share beyond, in tokens.
    pub lost_tokens_each: f64,
    /// What all of them would, as a share of all prompt tokens: so much more could be hit at most.
    pub lost_hit_rate: f64,
    /// What helps.
    pub advice: &'static str,
    /// What stood there first, where text was to be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

/// What keys of prefixes tell without the prefixes' lengths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KeyFindings {
    /// Requests that have only a key.
    pub requests: u64,
    /// How many keys there are.
    pub distinct: u64,
    /// Share of the requests whose key came before.
    pub repeated: Estimate,
    /// How long ago a key that comes again was used last.
    pub reuse_seconds: Option<ReuseSeconds>,
}
