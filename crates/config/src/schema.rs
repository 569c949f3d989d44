//! The JSON Schema of the configuration file, generated from the types that read it.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::Value;

use crate::file::File;

/// The schema, for `isotherm config schema` and for editors that complete and check YAML.
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<File>();
    RecursiveTransform(tidy).transform(&mut schema);
    schema.to_value()
}

/// Leaves out defaults that mean "absent", and joins the lines of descriptions, which are broken for the source only.
fn tidy(schema: &mut Schema) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}
