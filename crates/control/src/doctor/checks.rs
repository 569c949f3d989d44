//! The checks, one per file: each is a function of facts.

mod caching;
mod certificates;
mod clocks;
mod descriptors;
mod figures;
mod instances;
mod limits;
mod prefix;
mod replicas;
mod reports;
pub(super) mod routers;
mod security;

use isotherm_config::Config;

use super::{Facts, Finding, Verdict};
use crate::alerts::{InstanceReading, VariantReading};

/// Everything that the checks find.
pub(super) fn all(config: &Config, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for variant in &facts.variants {
        findings.extend(instances::check(variant));
        findings.extend(certificates::check(variant, facts.now));
        findings.extend(replicas::check(variant));
        findings.extend(caching::check(variant));
        findings.extend(reports::check(variant));
        findings.extend(figures::check(variant));
        findings.extend(clocks::check(variant));
        findings.extend(prefix::check(variant));
    }
    findings.extend(limits::check(config, facts));
    findings.extend(descriptors::check(config, facts));
    findings.extend(security::check(config, facts.now));
    findings
}

/// The name of the router itself, as a subject.
const ROUTER: &str = "router";

fn finding(check: &str, verdict: Verdict, subject: impl Into<String>, found: impl Into<String>, fix: &str) -> Finding {
    Finding { check: check.to_owned(), verdict, subject: subject.into(), finding: found.into(), fix: fix.to_owned() }
}

fn ok(check: &str, subject: impl Into<String>, found: impl Into<String>) -> Finding {
    finding(check, Verdict::Ok, subject, found, "")
}

fn name(variant: &VariantReading) -> String {
    format!("{}/{}", variant.endpoint, variant.variant)
}

/// One finding of each instance that has one, else one that all is well with the variant.
fn each(
    variant: &VariantReading,
    check: &str,
    well: impl FnOnce(&VariantReading) -> Option<String>,
    of: impl Fn(&InstanceReading) -> Option<Finding>,
) -> Vec<Finding> {
    let findings: Vec<Finding> = variant.instances.iter().filter_map(of).collect();
    if !findings.is_empty() {
        return findings;
    }
    well(variant).into_iter().map(|found| ok(check, name(variant), found)).collect()
}
