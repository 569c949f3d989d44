//! What request logs tell of shared beginnings, and what to configure for them.
