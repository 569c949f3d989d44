//! Every instance answers, and says what it serves.

use super::{Finding, Verdict, each, finding, name};
use crate::alerts::{InstanceReading, VariantReading};

const CHECK: &str = "instances";

pub(super) fn check(variant: &VariantReading) -> Vec<Finding> {
    if variant.instances.is_empty() {
        let fix = "List instances in the configuration, or add one: isotherm instances add http://HOST:PORT.";
        return vec![finding(CHECK, Verdict::Problem, name(variant), "no instance at all", fix)];
    }
    let count = variant.instances.len();
    each(variant, CHECK, |_| Some(format!("{count} of {count} answer and list their models")), of)
}

fn of(instance: &InstanceReading) -> Option<Finding> {
    let problem = instance.problem.as_ref().map_or("no reason given", |problem| problem.message());
    match instance.availability {
        "down" => Some(finding(
            CHECK,
            Verdict::Problem,
            &instance.id,
            format!("does not answer: {problem}"),
            "Is the engine running, and does it listen on an address that this machine reaches? curl its /health from here.",
        )),
        "ejected" => Some(finding(
            CHECK,
            Verdict::Warning,
            &instance.id,
            "answers probes and fails requests",
            "Read the engine's log; isotherm_upstream_errors_total tells the kind of failure.",
        )),
        "draining" => None,
        _ if instance.models.is_none() => Some(finding(
            CHECK,
            Verdict::Warning,
            &instance.id,
            "does not list its models: it is taken to serve every model",
            "Let GET /v1/models answer, with the key in api_key_env where the engine wants one.",
        )),
        _ => None,
    }
}
