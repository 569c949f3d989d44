//! What to know about an analysis's figures: each as it is, and in an English sentence or two.

use std::fmt;

use serde::Serialize;

/// What cannot be told from a log, or holds for its figures with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "values", rename_all = "snake_case")]
pub enum Note {
    /// The log is what a router has kept.
    LastRequestsOnly,
    /// A router took no hashes of some requests.
    Missed {
        /// How many.
        requests: u64,
    },
    /// Some bodies were left out.
    WrongBodies {
        /// How many.
        bodies: u64,
    },
    /// Some requests stand far behind later ones.
    OutOfOrder {
        /// How many.
        requests: u64,
    },
    /// More was shared than is remembered.
    Forgot,
    /// There are hashes only.
    NoText,
    /// There are bodies whose form nobody knows.
    NativeBodies,
    /// There are keys of prefixes and no chains of blocks.
    KeysOnly {
        /// Whether that holds for every request.
        all: bool,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::LastRequestsOnly => f.write_str(
                "A router keeps hashes of its last requests only (diagnostics.memory): what had come before them is not \
                 known, so more of the tokens may have come before than is told here, and what comes again after longer \
                 is not seen.",
            ),
            Note::Missed { requests } => write!(
                f,
                "{requests} requests are left out, as they came faster than hashes are taken \
                 (diagnostics.requests_per_second): there were more requests a second, and more of the tokens may have \
                 come before."
            ),
            Note::WrongBodies { bodies } => {
                write!(f, "{bodies} bodies were not what their API wants and are left out.")
            }
            Note::OutOfOrder { requests } => write!(
                f,
                "{requests} requests stand far behind later ones in the log; for them, times since the last use are too \
                 short. Sort the log by time."
            ),
            Note::Forgot => f.write_str(
                "Memory is bounded: shared lengths and what breaks sharing are against the last million blocks or more, \
                 not against all of the log. Hit rates are over all of it.",
            ),
            Note::NoText => f.write_str("The log has hashes and no text: what breaks sharing cannot be told."),
            Note::NativeBodies => f.write_str("Native bodies: routers cut prefixes from their bytes as they come."),
            Note::KeysOnly { all } => write!(
                f,
                "{} keys of prefixes and no chains of blocks: how long shared beginnings are, what a cache of another \
                 size or another PrefixLength would hit, and what breaks sharing cannot be told from it. Analyse the \
                 requests themselves for that.",
                if *all { "The log has" } else { "Part of the log has" }
            ),
        }
    }
}
