//! models_and_health
