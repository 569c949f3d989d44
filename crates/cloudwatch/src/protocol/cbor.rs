//! Smithy RPC v2 CBOR: moments are tagged numbers.

use ciborium::Value;

use crate::Refusal;
use crate::document::Document;

/// The tag of a moment in seconds of Unix time (RFC 8949, section 3.4.2).
const MOMENT: u64 = 1;

/// How deep the SDKs' models nest, and more.
const DEEPEST: usize = 32;

/// Reads a body; an empty one is an empty structure.
pub(crate) fn read(body: &[u8]) -> Result<Document, Refusal> {
    if body.is_empty() {
        return Ok(Document::Structure(Vec::new()));
    }
    let value: Value = ciborium::de::from_reader_with_recursion_limit(body, DEEPEST)
        .map_err(|error| Refusal::serialization(format!("The body is no CBOR: {error}.")))?;
    document(value)
}

/// The document as CBOR; what is nothing is an empty structure.
pub(crate) fn written(document: &Document) -> Vec<u8> {
    let value = if *document == Document::Null { Value::Map(Vec::new()) } else { value(document) };
    let mut bytes = Vec::new();
    // Writing into memory fails for no value that there is.
    drop(ciborium::into_writer(&value, &mut bytes));
    bytes
}

fn document(value: Value) -> Result<Document, Refusal> {
    Ok(match value {
        Value::Bool(value) => Document::Boolean(value),
        Value::Integer(number) => Document::Number(i128::from(number) as f64),
        Value::Float(number) => Document::Number(number),
        Value::Text(text) => Document::Text(text),
        Value::Tag(MOMENT, moment) => match document(*moment)? {
            Document::Number(seconds) => Document::Timestamp(seconds),
            _ => return Err(Refusal::serialization("A timestamp (tag 1) must hold a number.")),
        },
        Value::Array(values) => Document::List(values.into_iter().map(document).collect::<Result<_, _>>()?),
        Value::Map(entries) => {
            let entry = |(name, value)| match name {
                Value::Text(name) => Ok((name.into(), document(value)?)),
                _ => Err(Refusal::serialization("The names of members must be text.")),
            };
            Document::Structure(entries.into_iter().map(entry).collect::<Result<_, _>>()?)
        }
        // Bytes, other tags, null and undefined: nothing that an operation here takes.
        _ => Document::Null,
    })
}

fn value(document: &Document) -> Value {
    match document {
        Document::Null => Value::Null,
        Document::Boolean(value) => Value::Bool(*value),
        Document::Number(number) => Value::Float(*number),
        Document::Integer(number) => Value::Integer((*number).into()),
        Document::Timestamp(seconds) => Value::Tag(MOMENT, Box::new(Value::Float(*seconds))),
        Document::Text(text) => Value::Text(text.clone()),
        Document::List(values) => Value::Array(values.iter().map(value).collect()),
        Document::Structure(members) => {
            Value::Map(members.iter().map(|(name, member)| (name.as_ref().into(), value(member))).collect())
        }
        Document::Map(entries) => {
            Value::Map(entries.iter().map(|(name, entry)| (name.as_str().into(), value(entry))).collect())
        }
    }
}
