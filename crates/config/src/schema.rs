//! The JSON Schema of the configuration file, generated from the types that read it.

use schemars::generate::SchemaSettings;

use crate::file::File;

/// The schema, for `isotherm config schema` and for editors that complete and check YAML.
pub fn schema() -> serde_json::Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<File>().to_value()
}
