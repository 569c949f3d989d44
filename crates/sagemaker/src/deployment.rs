//! Brings endpoints and inference components from what their records say to what they should be.

mod plan;
mod progress;
mod rollout;
