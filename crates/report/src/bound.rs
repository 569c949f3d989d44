//! How good it could be: the figures of a fleet that knows everything beforehand.

use serde::Serialize;

use crate::measures::Latency;

/// What no routing can beat: every beginning that was ever sent is cached everywhere, and every instance is idle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// Hit rate of one cache without limit that all instances share, 0 to 1.
    pub hit_rate: f64,
    /// TTFT of the same requests with these hits, each alone on an instance.
    pub ttft_ms: Latency<f64>,
}
