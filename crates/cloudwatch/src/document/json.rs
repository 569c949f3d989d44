//! Documents as AWS's JSON protocols carry them: moments are numbers, in seconds.

use serde_json::{Map, Number, Value};

use super::Document;

impl Document {
    /// Reads JSON; no text at all is an empty structure.
    ///
    /// # Errors
    ///
    /// Those of what is no JSON.
    pub fn from_json(json: &[u8]) -> Result<Document, serde_json::Error> {
        if json.trim_ascii().is_empty() {
            return Ok(Document::Structure(Vec::new()));
        }
        serde_json::from_slice(json).map(document)
    }

    /// The document as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        value(self).to_string().into_bytes()
    }
}

fn document(value: Value) -> Document {
    match value {
        Value::Null => Document::Null,
        Value::Bool(value) => Document::Boolean(value),
        Value::Number(number) => Document::Number(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Document::Text(text),
        Value::Array(values) => Document::List(values.into_iter().map(document).collect()),
        Value::Object(members) => {
            Document::Structure(members.into_iter().map(|(name, value)| (name.into(), document(value))).collect())
        }
    }
}

fn value(document: &Document) -> Value {
    match document {
        Document::Null => Value::Null,
        Document::Boolean(value) => Value::Bool(*value),
        Document::Number(number) => double(*number),
        Document::Timestamp(seconds) => moment(*seconds),
        Document::Integer(number) => Value::Number((*number).into()),
        Document::Text(text) => Value::String(text.clone()),
        Document::List(values) => Value::Array(values.iter().map(value).collect()),
        Document::Structure(members) => {
            Value::Object(members.iter().map(|(name, member)| (name.to_string(), value(member))).collect())
        }
        Document::Map(entries) => {
            Value::Object(entries.iter().map(|(name, entry)| (name.clone(), value(entry))).collect::<Map<_, _>>())
        }
    }
}

/// With a fraction, even of 0, so that clients read no integer; JSON has no word for what is no number.
fn double(number: f64) -> Value {
    Number::from_f64(number).map_or_else(|| Value::String(number.to_string()), Value::Number)
}

/// Whole seconds without a fraction, as AWS writes them.
fn moment(seconds: f64) -> Value {
    if seconds.fract() == 0.0 { Value::Number(Number::from(seconds as i64)) } else { double(seconds) }
}
