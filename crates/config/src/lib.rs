//! The one configuration: YAML, environment and flags, parsed into valid types.
