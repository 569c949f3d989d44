//! Helpers for tests through the front door.
