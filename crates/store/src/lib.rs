//! Records on disk: typed, transactional, and there again after a crash.
