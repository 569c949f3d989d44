//! Walks an input along its shape: refuses what is of another type, collects what breaks a constraint, and keeps only
//! the members that the service model knows.

use serde_json::{Map, Number, Value};

use super::catalogue::{Bounds, CATALOGUE, Kind, Text};
use super::violation::{Violation, message};
use crate::error::ServiceError;

/// Checks an input against its shape and gives what the shape knows of it: unknown members and nulls are left out.
///
/// # Errors
///
/// `SerializationException` for a value of the wrong type, `ValidationException` that names every broken constraint.
pub(crate) fn check(shape: &'static str, input: &Value) -> Result<Value, ServiceError> {
    let mut walk = Walk { violations: Vec::new() };
    let known = walk.structure(shape, input, "")?;
    match walk.violations.as_slice() {
        [] => Ok(known),
        violations => Err(ServiceError::Validation(message(violations))),
    }
}

struct Walk {
    violations: Vec<Violation>,
}

impl Walk {
    fn value(&mut self, kind: &Kind, value: &Value, path: &str) -> Result<Value, ServiceError> {
        match kind {
            Kind::Structure(shape) => self.structure(shape, value, path),
            Kind::List { size, of } => self.list(*size, of, value, path),
            Kind::Map { size, key, value: of } => self.map(*size, key, of, value, path),
            Kind::Text(text) => {
                let given = value.as_str().ok_or_else(|| mismatch(value, "a String", path))?;
                for constraint in broken_by_text(text, given) {
                    self.note(value, path, constraint);
                }
                Ok(value.clone())
            }
            Kind::Integer { range, one_of } => self.integer(*range, one_of, value, path),
            Kind::Float { least } => {
                // SageMaker's floats have 32 bits.
                let given = value.as_f64().filter(|given| given.abs() <= f64::from(f32::MAX));
                let given = given.ok_or_else(|| mismatch(value, "a Float", path))?;
                if let Some(least) = least.filter(|&least| given < least) {
                    self.note(value, path, format!("Member must have value greater than or equal to {least}"));
                }
                Ok(value.clone())
            }
            Kind::Boolean if value.is_boolean() => Ok(value.clone()),
            Kind::Boolean => Err(mismatch(value, "a Boolean", path)),
            Kind::Timestamp if value.as_f64().is_some_and(|seconds| seconds >= 0.0) => Ok(value.clone()),
            Kind::Timestamp => Err(mismatch(value, "a Timestamp, in seconds since 1970", path)),
        }
    }

    fn structure(&mut self, shape: &'static str, value: &Value, path: &str) -> Result<Value, ServiceError> {
        let given = value.as_object().ok_or_else(|| mismatch(value, "a structure", path))?;
        let mut known = Map::new();
        for member in CATALOGUE.members(shape) {
            let path = inside(path, member.name);
            match given.get(member.name).filter(|value| !value.is_null()) {
                Some(value) => {
                    known.insert(member.name.to_owned(), self.value(&member.kind, value, &path)?);
                }
                None if member.required => self.note(&Value::Null, &path, String::from("Member must not be null")),
                None => {}
            }
        }
        Ok(Value::Object(known))
    }

    fn list(&mut self, size: Bounds, of: &Kind, value: &Value, path: &str) -> Result<Value, ServiceError> {
        let given = value.as_array().ok_or_else(|| mismatch(value, "a list", path))?;
        if let Some(constraint) = broken_bound(size, "length", length(given.len())) {
            self.note(value, path, constraint);
            return Ok(value.clone());
        }
        let mut known = Vec::with_capacity(given.len());
        for (index, member) in given.iter().enumerate() {
            let path = format!("{path}.{}.member", index + 1);
            if member.is_null() {
                self.note(member, &path, String::from("Member must not be null"));
            } else {
                known.push(self.value(of, member, &path)?);
            }
        }
        Ok(Value::Array(known))
    }

    fn map(&mut self, size: Bounds, key: &Text, of: &Text, value: &Value, path: &str) -> Result<Value, ServiceError> {
        let given = value.as_object().ok_or_else(|| mismatch(value, "a map", path))?;
        let mut known = Map::new();
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (name, member) in given.iter().filter(|(_, member)| !member.is_null()) {
            let text = member.as_str().ok_or_else(|| mismatch(member, "a String", &format!("{path}.{name}")))?;
            keys.extend(broken_by_text(key, name));
            values.extend(broken_by_text(of, text));
            known.insert(name.clone(), member.clone());
        }
        if let Some(constraint) = broken_bound(size, "length", length(given.len())) {
            self.note(value, path, constraint);
        }
        if !keys.is_empty() {
            self.note(value, path, format!("Map keys must satisfy constraint: [{}]", all_of(key).join(", ")));
        }
        if !values.is_empty() {
            self.note(value, path, format!("Map value must satisfy constraint: [{}]", all_of(of).join(", ")));
        }
        Ok(Value::Object(known))
    }

    fn integer(&mut self, range: Bounds, one_of: &[i64], value: &Value, path: &str) -> Result<Value, ServiceError> {
        let given = whole(value).ok_or_else(|| mismatch(value, "an Integer", path))?;
        if let Some(constraint) = broken_bound(range, "value", given) {
            self.note(value, path, constraint);
        }
        if !one_of.is_empty() && !one_of.contains(&given) {
            self.note(value, path, enumeration(one_of.iter().map(i64::to_string)));
        }
        Ok(Value::Number(Number::from(given)))
    }

    fn note(&mut self, value: &Value, path: &str, constraint: String) {
        self.violations.push(Violation::new(value, path, constraint));
    }
}

/// The constraints that a text breaks.
fn broken_by_text(text: &Text, given: &str) -> Vec<String> {
    let mut broken = Vec::new();
    broken.extend(broken_bound(text.length, "length", length(given.chars().count())));
    if let Some(pattern) = text.pattern.as_ref().filter(|pattern| !pattern.matches(given)) {
        broken.push(expression(pattern.text));
    }
    if !text.one_of.is_empty() && !text.one_of.contains(&given) {
        broken.push(enumeration(text.one_of.iter().map(ToString::to_string)));
    }
    broken
}

/// All constraints of a text, broken or not, as AWS lists them for the keys and values of maps.
fn all_of(text: &Text) -> Vec<String> {
    let most = text.length.most.map(|most| at_most("length", most));
    let least = text.length.least.map(|least| at_least("length", least));
    let pattern = text.pattern.as_ref().map(|pattern| expression(pattern.text));
    [most, least, pattern].into_iter().flatten().collect()
}

fn broken_bound(bounds: Bounds, what: &str, given: i64) -> Option<String> {
    let below = bounds.least.filter(|&least| given < least).map(|least| at_least(what, least));
    below.or_else(|| bounds.most.filter(|&most| given > most).map(|most| at_most(what, most)))
}

fn at_least(what: &str, least: i64) -> String {
    format!("Member must have {what} greater than or equal to {least}")
}

fn at_most(what: &str, most: i64) -> String {
    format!("Member must have {what} less than or equal to {most}")
}

fn expression(pattern: &str) -> String {
    format!("Member must satisfy regular expression pattern: {pattern}")
}

fn enumeration(values: impl Iterator<Item = String>) -> String {
    format!("Member must satisfy enum value set: [{}]", values.collect::<Vec<_>>().join(", "))
}

fn length(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// A whole number within 32 bits, as SageMaker's integers are; `2.0` is one.
fn whole(value: &Value) -> Option<i64> {
    let whole =
        value.as_i64().or_else(|| value.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i64));
    whole.filter(|&number| i32::try_from(number).is_ok())
}

/// `productionVariants.1.member` and `ModelName` are `productionVariants.1.member.modelName`.
fn inside(path: &str, member: &str) -> String {
    let mut letters = member.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    let separator = if path.is_empty() { "" } else { "." };
    format!("{path}{separator}{}{}", first.map(String::from).unwrap_or_default(), letters.as_str())
}

fn mismatch(value: &Value, wanted: &str, path: &str) -> ServiceError {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(true) => "TRUE_VALUE",
        Value::Bool(false) => "FALSE_VALUE",
        Value::Number(number) if number.is_f64() => "DECIMAL_VALUE",
        Value::Number(_) => "NUMBER_VALUE",
        Value::String(_) => "STRING_VALUE",
        Value::Array(_) => "START_ARRAY",
        Value::Object(_) => "START_OBJECT",
    };
    let place = if path.is_empty() { String::new() } else { format!(" at '{path}'") };
    ServiceError::Serialization(format!("{kind} can not be converted to {wanted}{place}"))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
