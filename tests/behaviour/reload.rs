//! The configuration file changes under a running router.
