//! Tools: which one a request insists on, and arguments that fit its JSON Schema.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::vocabulary;

/// Schemas nested deeper than this get `null`.
const DEEPEST: u32 = 8;

/// The tool that the answer must call.
#[derive(Debug, Clone)]
pub(crate) struct ToolChoice {
    name: String,
    schema: Value,
}

/// A tool in any of the three spellings: chat (`function: {name, parameters}`), responses (`name`, `parameters`),
/// Anthropic (`name`, `input_schema`).
#[derive(Debug, Deserialize)]
struct Definition {
    function: Option<Box<Definition>>,
    name: Option<String>,
    #[serde(alias = "input_schema")]
    parameters: Option<Value>,
}

/// `"required"` or `"auto"` as a word, or an object with the name at one of two places.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Choice {
    Word(String),
    Object {
        #[serde(rename = "type")]
        kind: Option<String>,
        name: Option<String>,
        function: Option<Named>,
    },
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

impl ToolChoice {
    /// Reads `tool_choice` against the tools offered. `None`: the model may answer in words, and then it does.
    pub(crate) fn parse(tools: &[Box<RawValue>], choice: Option<&RawValue>) -> Result<Option<Self>, Failure> {
        let Some(choice) = choice else { return Ok(None) };
        let choice: Choice = serde_json::from_str(choice.get()).map_err(|_| {
            Failure::Malformed("tool_choice must be \"none\", \"auto\", \"required\" or name a function".into())
        })?;
        let wanted = match choice {
            Choice::Word(word) if word == "required" || word == "any" => None,
            Choice::Word(_) => return Ok(None),
            Choice::Object { name: Some(name), .. } | Choice::Object { function: Some(Named { name }), .. } => {
                Some(name)
            }
            Choice::Object { kind: Some(kind), .. } if kind == "any" => None,
            Choice::Object { .. } => return Ok(None),
        };
        for tool in tools {
            let definition: Definition = serde_json::from_str(tool.get())
                .map_err(|error| Failure::Malformed(format!("tools: a tool cannot be read: {error}")))?;
            let function = match definition.function {
                Some(function) => *function,
                None => definition,
            };
            if let Some(name) = function.name
                && wanted.as_ref().is_none_or(|wanted| *wanted == name)
            {
                return Ok(Some(Self { name, schema: function.parameters.unwrap_or(Value::Null) }));
            }
        }
        Err(Failure::Malformed(match wanted {
            Some(name) => format!("tool_choice names the tool `{name}`, which is not among the tools"),
            None => "tool_choice requires a tool, but the request offers none".into(),
        }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Arguments as JSON text that the tool's schema accepts, as far as `type`, `enum`, `const`, `properties`,
    /// `required`, `items`, `anyOf` and bounds of numbers say.
    pub(crate) fn arguments(&self, random: &mut Pcg64Mcg) -> String {
        match value_for(&self.schema, random, 0) {
            Value::Object(arguments) => Value::Object(arguments).to_string(),
            _ => "{}".to_owned(),
        }
    }
}

fn value_for(schema: &Value, random: &mut Pcg64Mcg, depth: u32) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array).filter(|choices| !choices.is_empty()) {
        return choices[random.random_range(0..choices.len())].clone();
    }
    let alternatives = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
    if let Some(first) = alternatives.and_then(|schemas| schemas.first()) {
        return value_for(first, random, depth + 1);
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        Some(kind) => kind.as_str(),
        None if schema.get("properties").is_some() => Some("object"),
        None => None,
    };
    match kind {
        Some("object") => Value::Object(object_for(schema, random, depth)),
        Some("array") => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).min(16);
            (0..count).map(|_| value_for(items, random, depth + 1)).collect()
        }
        Some("integer" | "number") => number_for(schema, random),
        Some("boolean") => json!(random.random::<bool>()),
        Some("null") => Value::Null,
        _ => json!(vocabulary::word(random)),
    }
}

/// All required properties, or all there are where none is required.
fn object_for(schema: &Value, random: &mut Pcg64Mcg, depth: u32) -> Map<String, Value> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Map::new() };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    properties
        .iter()
        .filter(|(name, _)| required.is_empty() || required.contains(&name.as_str()))
        .map(|(name, schema)| (name.clone(), value_for(schema, random, depth + 1)))
        .collect()
}

fn number_for(schema: &Value, random: &mut Pcg64Mcg) -> Value {
    let lowest = schema.get("minimum").and_then(Value::as_i64).unwrap_or(0);
    let highest = schema.get("maximum").and_then(Value::as_i64).unwrap_or(lowest.saturating_add(100)).max(lowest);
    json!(random.random_range(lowest..=highest))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).unwrap()
    }

    fn weather() -> Vec<Box<RawValue>> {
        vec![raw(
            r#"{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties":
                {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}, "days": {"type": "integer", "minimum": 1,
                "maximum": 7}, "note": {"type": "string"}}, "required": ["city", "unit", "days"]}}}"#,
        )]
    }

    #[test]
    fn required_calls_the_first_tool_with_fitting_arguments() {
        let choice = ToolChoice::parse(&weather(), Some(&raw(r#""required""#))).unwrap().unwrap();
        let arguments: Value = serde_json::from_str(&choice.arguments(&mut Pcg64Mcg::seed_from_u64(1))).unwrap();
        assert_eq!(choice.name(), "weather");
        assert!(arguments["city"].is_string());
        assert!(["C", "F"].contains(&arguments["unit"].as_str().unwrap()));
        assert!((1..=7).contains(&arguments["days"].as_i64().unwrap()));
        assert_eq!(arguments.get("note"), None);
    }

    #[test]
    fn all_spellings_of_a_choice_are_read() {
        let flat = vec![raw(r#"{"type": "function", "name": "weather", "parameters": {"type": "object"}}"#)];
        let anthropic = vec![raw(r#"{"name": "weather", "input_schema": {"type": "object"}}"#)];
        for (tools, choice) in [
            (weather(), r#"{"type": "function", "function": {"name": "weather"}}"#),
            (flat, r#"{"type": "function", "name": "weather"}"#),
            (anthropic, r#"{"type": "any"}"#),
        ] {
            assert_eq!(ToolChoice::parse(&tools, Some(&raw(choice))).unwrap().unwrap().name(), "weather");
        }
        assert!(ToolChoice::parse(&weather(), Some(&raw(r#""auto""#))).unwrap().is_none());
        assert!(ToolChoice::parse(&weather(), None).unwrap().is_none());
    }

    #[test]
    fn an_unknown_tool_is_refused_by_name() {
        let choice = raw(r#"{"type": "function", "function": {"name": "news"}}"#);
        let failure = ToolChoice::parse(&weather(), Some(&choice)).unwrap_err();
        assert!(failure.to_string().contains("`news`"));
    }
}
