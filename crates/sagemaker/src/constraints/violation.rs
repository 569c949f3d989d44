//! A constraint that an input does not satisfy, in AWS's words.

use std::fmt::Write;

use serde_json::Value;

/// Messages name this many at most; a body of some megabytes could break a constraint a million times.
const NAMED: usize = 100;

/// A constraint that a value does not satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    /// The value as AWS prints it, quoted where it is not null.
    pub(super) value: String,
    /// Where it is: `productionVariants.1.member.modelName`.
    pub(super) path: String,
    /// What it should be.
    pub(super) constraint: String,
}

impl Violation {
    pub(super) fn new(value: &Value, path: &str, constraint: String) -> Violation {
        let value = match value {
            Value::Null => String::from("null"),
            value => format!("'{}'", printed(value)),
        };
        Violation { value, path: path.to_owned(), constraint }
    }
}

/// All of them in one message.
pub(super) fn message(violations: &[Violation]) -> String {
    let errors = if violations.len() == 1 { "error" } else { "errors" };
    let mut message = format!("{} validation {errors} detected: ", violations.len());
    for (index, Violation { value, path, constraint }) in violations.iter().take(NAMED).enumerate() {
        let separator = if index == 0 { "" } else { "; " };
        // Writing to a string can't fail.
        let _ = write!(message, "{separator}Value {value} at '{path}' failed to satisfy constraint: {constraint}");
    }
    message
}

/// As AWS prints values: lists and maps as Java does.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(members) => {
            let members: Vec<String> = members.iter().take(NAMED).map(printed).collect();
            format!("[{}]", members.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().take(NAMED).map(|(key, value)| format!("{key}={}", printed(value))).collect();
            format!("{{{}}}", members.join(", "))
        }
        value => value.to_string(),
    }
}
