//! Tests that the schema says what the parser does.

use serde_json::Value;

use super::*;

/// Checks an instance against a schema, as far as this crate's schemas go; the place and keyword of the first mismatch.
fn mismatch(root: &Value, schema: &Value, instance: &Value, path: &str) -> Option<String> {
    let fields = schema.as_object()?;
    fields.iter().find_map(|(keyword, wanted)| {
        let holds = match keyword.as_str() {
            "$ref" => {
                let name = wanted.as_str()?.rsplit('/').next()?;
                return mismatch(root, &root["$defs"][name], instance, path);
            }
            "properties" => {
                let entries = instance.as_object()?;
                return entries
                    .iter()
                    .find_map(|(key, value)| mismatch(root, wanted.get(key)?, value, &format!("{path}/{key}")));
            }
            "items" => {
                let items = instance.as_array()?;
                return items.iter().find_map(|item| mismatch(root, wanted, item, &format!("{path}/*")));
            }
            "type" => type_fits(wanted, instance),
            "enum" => wanted.as_array()?.contains(instance),
            "const" => wanted == instance,
            "anyOf" => wanted.as_array()?.iter().any(|branch| mismatch(root, branch, instance, path).is_none()),
            "oneOf" => {
                wanted.as_array()?.iter().filter(|branch| mismatch(root, branch, instance, path).is_none()).count() == 1
            }
            "required" => wanted.as_array()?.iter().all(|key| instance.get(key.as_str().unwrap_or_default()).is_some()),
            "additionalProperties" if wanted.is_object() => {
                let values = instance.as_object()?;
                return values.iter().find_map(|(key, value)| mismatch(root, wanted, value, &format!("{path}/{key}")));
            }
            "additionalProperties" => instance.as_object()?.keys().all(|key| schema["properties"].get(key).is_some()),
            "minimum" => instance.as_f64()? >= wanted.as_f64()?,
            "exclusiveMinimum" => instance.as_f64()? > wanted.as_f64()?,
            "maximum" => instance.as_f64()? <= wanted.as_f64()?,
            "minItems" => instance.as_array()?.len() as u64 >= wanted.as_u64()?,
            // Patterns are the business of a real validator.
            "pattern" | "format" | "description" | "default" | "title" | "$schema" | "$defs" => true,
            other => panic!("the schema uses {other}, which this test does not know"),
        };
        (!holds).then(|| format!("{path}: {keyword}"))
    })
}

fn type_fits(wanted: &Value, instance: &Value) -> bool {
    match wanted {
        Value::Array(types) => types.iter().any(|one| type_fits(one, instance)),
        one => match one.as_str().unwrap_or_default() {
            "object" => instance.is_object(),
            "array" => instance.is_array(),
            "string" => instance.is_string(),
            "boolean" => instance.is_boolean(),
            "integer" => instance.is_u64() || instance.is_i64(),
            "number" => instance.is_number(),
            "null" => instance.is_null(),
            other => panic!("unknown type {other}"),
        },
    }
}

fn schema_mismatch(text: &str) -> Option<String> {
    let instance: Value = serde_saphyr::from_str(text).unwrap();
    let schema = crate::schema();
    mismatch(&schema, &schema, &instance, "")
}

#[test]
fn what_the_parser_takes_fits_the_schema() {
    assert_eq!(schema_mismatch(EXAMPLE), None);
    assert_eq!(schema_mismatch(EVERY_KEY), None);
}

#[test]
fn what_the_parser_refuses_does_not_fit_the_schema() {
    let variant =
        |element: &str| format!("endpoints: [{{ name: e, variants: [{{ name: v, instances: [], {element} }}] }}]");
    let instance =
        |element: &str| format!("endpoints: [{{ name: e, variants: [{{ name: v, instances: [{element}] }}] }}]");
    for (text, place) in [
        ("liten: x".to_owned(), ": additionalProperties"),
        ("listen: 8080".to_owned(), "/listen: type"),
        ("auth: everybody".to_owned(), "/auth: anyOf"),
        ("hash_seed: -1".to_owned(), "/hash_seed: minimum"),
        ("access_log: 5".to_owned(), "/access_log: anyOf"),
        ("timeouts: { connect: 10 }".to_owned(), "/timeouts/connect: type"),
        ("limits: { connections: 0 }".to_owned(), "/limits/connections: minimum"),
        ("endpoints: [{ variants: [] }]".to_owned(), "/endpoints/*/variants: minItems"),
        ("endpoints: [{ name: e }]".to_owned(), "/endpoints/*: required"),
        (variant("weight: -1"), "/endpoints/*/variants/*/weight: minimum"),
        (variant("routing: { rollout: 101 }"), "/endpoints/*/variants/*/routing/rollout: maximum"),
        (variant("routing: { spill: prev }"), "/endpoints/*/variants/*/routing/spill: enum"),
        (instance("{ url: 'http://a', weight: 0 }"), "/endpoints/*/variants/*/instances/*/weight: exclusiveMinimum"),
        ("alerts: { spills: { above: 2 } }".to_owned(), "/alerts/spills/above: maximum"),
        ("alerts: { hot_prefix: { skew: 0 } }".to_owned(), "/alerts/hot_prefix/skew: minimum"),
        ("aws: {}".to_owned(), "/aws: required"),
        ("aws: { data_dir: d, providers: [{}] }".to_owned(), "/aws/providers/*: oneOf"),
        (
            "aws: { data_dir: d, providers: [{ emulated: { speed: 0 } }] }".to_owned(),
            "/aws/providers/*/emulated/speed: exclusiveMinimum",
        ),
        (instance("{ id: a }"), "/endpoints/*/variants/*/instances/*: oneOf"),
        (instance("{ url: 'http://a', dns: 'http://b' }"), "/endpoints/*/variants/*/instances/*: oneOf"),
    ] {
        assert_eq!(schema_mismatch(&text).as_deref(), Some(place), "{text}");
        assert!(load(&text).is_err(), "{text}");
    }
}

#[test]
fn the_schema_has_exactly_the_keys_that_the_parser_allows() {
    let schema = crate::schema();
    let nested = |parents: &str, element: &str| format!("{parents}{element}");
    let variant = "endpoints: [{ name: e, variants: [{ name: v, instances: [], ";
    for (properties, text) in [
        (&schema["properties"], "zz: 1".to_owned()),
        (&schema["$defs"]["Admin"]["properties"], "admin: { zz: 1 }".to_owned()),
        (&schema["$defs"]["Keys"]["properties"], "auth: { zz: 1, keys_file: k }".to_owned()),
        (&schema["$defs"]["Timeouts"]["properties"], "timeouts: { zz: 1 }".to_owned()),
        (&schema["$defs"]["Limits"]["properties"], "limits: { zz: 1 }".to_owned()),
        (&schema["$defs"]["Queue"]["properties"], "limits: { queue: { zz: 1 } }".to_owned()),
        (&schema["$defs"]["Alerts"]["properties"], "alerts: { zz: 1 }".to_owned()),
        (&schema["$defs"]["HitRateRule"]["properties"], "alerts: { hit_rate: { zz: 1 } }".to_owned()),
        (&schema["$defs"]["RestartRule"]["properties"], "alerts: { engine_restarted: { zz: 1 } }".to_owned()),
        (&schema["$defs"]["EngineMetrics"]["properties"], nested(variant, "engine_metrics: { zz: 1 } }] }]")),
        (&schema["$defs"]["Aws"]["properties"], "aws: { zz: 1, data_dir: d }".to_owned()),
        (&schema["$defs"]["Provider"]["properties"], "aws: { data_dir: d, providers: [{ zz: 1 }] }".to_owned()),
        (
            &schema["$defs"]["ProviderMatch"]["properties"],
            "aws: { data_dir: d, providers: [{ match: { zz: 1 }, emulated: {} }] }".to_owned(),
        ),
        (
            &schema["$defs"]["EmulatedProvider"]["properties"],
            "aws: { data_dir: d, providers: [{ emulated: { zz: 1 } }] }".to_owned(),
        ),
        (
            &schema["$defs"]["ProcessProvider"]["properties"],
            "aws: { data_dir: d, providers: [{ process: { zz: 1, command: [x, '{port}'] } }] }".to_owned(),
        ),
        (
            &schema["$defs"]["StaticProvider"]["properties"],
            "aws: { data_dir: d, providers: [{ static: { zz: 1, urls: ['http://a'] } }] }".to_owned(),
        ),
        (&schema["$defs"]["Endpoint"]["properties"], "endpoints: [{ zz: 1, name: e, variants: [] }]".to_owned()),
        (&schema["$defs"]["Variant"]["properties"], nested(variant, "zz: 1 }] }]")),
        (&schema["$defs"]["Routing"]["properties"], nested(variant, "routing: { zz: 1 } }] }]")),
        (&schema["$defs"]["Health"]["properties"], nested(variant, "health: { zz: 1 } }] }]")),
        (
            &schema["$defs"]["Instance"]["properties"],
            "endpoints: [{ name: e, variants: [{ name: v, instances: [{ zz: 1 }] }] }]".to_owned(),
        ),
    ] {
        let lines = load(&text).unwrap_err();
        let (_, allowed) = lines[0].split_once("unknown key; allowed: ").unwrap();
        let mut allowed: Vec<&str> = allowed.split(", ").collect();
        allowed.sort_unstable();
        let properties = properties.as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), allowed, "{text}");
        for (key, property) in properties {
            assert!(property.get("description").is_some(), "{key} is not described");
        }
    }
}

#[test]
fn defaults_of_the_schema_are_those_of_the_parser() {
    let schema = crate::schema();
    assert_eq!(schema["$defs"]["Timeouts"]["properties"]["first_byte"]["default"], "10m");
    assert_eq!(schema["$defs"]["Limits"]["properties"]["body"]["default"], "32MiB");
    assert_eq!(schema["$defs"]["Routing"]["properties"]["strategy"]["default"], "PREFIX_AWARE");
    assert_eq!(schema["properties"]["access_log"]["default"], "off");
    assert!(schema["$defs"]["Instance"]["properties"]["max_in_flight"].get("default").is_none());
}
