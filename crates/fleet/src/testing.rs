//! What tests of this crate share: fleets from a few lines of configuration, and fake instances.

use std::sync::Arc;

use isotherm_config::{Config, Environment, Overrides};
use isotherm_telemetry::Metrics;

use crate::{Clock, Fleet, Variant};

/// A configuration from its text.
pub(crate) fn config(yaml: &str) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("isotherm.yaml");
    std::fs::write(&path, yaml).unwrap();
    Config::load(Some(&path), &Environment::default(), &Overrides::default()).unwrap()
}

/// One endpoint `chat` with one variant `main`; `instances` are lines of YAML, each beginning with `- `.
pub(crate) fn one_variant(settings: &str, instances: &[&str]) -> Config {
    let instances = instances.join(", ");
    config(&format!("endpoints: [{{name: chat, variants: [{{name: main, {settings} instances: [{instances}]}}]}}]"))
}

/// The fleet of a configuration, with nothing running.
pub(crate) fn fleet(config: &Config) -> Fleet {
    Fleet::new(config, Arc::new(Metrics::new("0")), Clock::start())
}

/// The first variant of the default endpoint.
pub(crate) fn variant(fleet: &Fleet) -> Arc<Variant> {
    Arc::clone(&fleet.topology().default_endpoint().unwrap().variants()[0].variant)
}
