//! Routing decisions as pure functions.
