//! Routers that stand beside each other agree on every prefix's home.

use serde_json::Value;

use super::{Finding, Verdict, finding, ok};
use crate::doctor::Checkup;

const CHECK: &str = "routers";

pub(crate) fn check(routers: &[(String, Checkup)]) -> Vec<Finding> {
    let Some(((first, checkup), others)) = routers.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (other, others_checkup) in others {
        for (what, fix) in differences(&checkup.routing, &others_checkup.routing) {
            let found = format!("{what} differs from that of {first}");
            findings.push(finding(CHECK, Verdict::Problem, other, found, fix));
        }
        if checkup.version != others_checkup.version {
            let found = format!("version {} beside {} of {first}", others_checkup.version, checkup.version);
            findings.push(finding(CHECK, Verdict::Warning, other, found, "Run one release everywhere."));
        }
    }
    if findings.is_empty() {
        let found = format!("{} routers agree on seed, strategy and instances", routers.len());
        findings.push(ok(CHECK, first, found));
    }
    findings
}

fn differences(one: &Value, other: &Value) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    if one["hash_seed"] != other["hash_seed"] {
        found.push(("hash_seed".to_owned(), "Give every router the same hash_seed: else each has homes of its own."));
    }
    let nothing = serde_json::Map::new();
    let variants = |routing: &'_ Value| routing["variants"].as_object().cloned().unwrap_or_default();
    let (ours, theirs) = (variants(one), variants(other));
    let names: std::collections::BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for name in names {
        let fields = |variants: &'_ serde_json::Map<String, Value>| {
            variants.get(name).and_then(Value::as_object).unwrap_or(&nothing).clone()
        };
        let (ours, theirs) = (fields(&ours), fields(&theirs));
        for field in ["strategy", "prefix_length", "rollout", "instances"] {
            if ours.get(field) != theirs.get(field) {
                let fix = "Give every router the same configuration: each prefix must have one home.";
                found.push((format!("{name}: {field}"), fix));
            }
        }
    }
    found
}
