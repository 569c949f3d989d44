//! Application Auto Scaling: targets, target tracking and what came of them.
