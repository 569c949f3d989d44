//! Whoever is not trusted can neither guess other tenants' homes nor read what passes.

use std::time::SystemTime;

use isotherm_config::{Auth, Config};
use isotherm_core::HashSeed;

use super::{Finding, ROUTER, Verdict, finding, ok};

const CHECK: &str = "security";

pub(super) fn check(config: &Config, now: SystemTime) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_public = !config.listen.ip().to_canonical().is_loopback();
    let has_clients = matches!(config.auth, Auth::Keys { .. });
    if config.hash_seed == HashSeed::default() && (has_clients || is_public) {
        let fix = "Who knows the seed can make prompts that all come home to one instance. Set hash_seed_env or hash_seed_file, \
                   the same for every router.";
        findings.push(finding(
            CHECK,
            Verdict::Warning,
            ROUTER,
            "hash_seed is the default while clients are others",
            fix,
        ));
    }
    if is_public && !has_clients {
        let found = format!("anyone who reaches {} may use the engines", config.listen);
        let fix = "Set auth: { keys_file: PATH }; isotherm config key makes keys.";
        findings.push(finding(CHECK, Verdict::Warning, ROUTER, found, fix));
    }
    if config.expose_decisions && is_public {
        let fix = "Set expose_decisions: false, and ask `isotherm explain` instead.";
        findings.push(finding(CHECK, Verdict::Warning, ROUTER, "answers tell clients the names of instances", fix));
    }
    for warning in config.warnings(now) {
        findings.push(of_config(&warning));
    }
    if findings.is_empty() {
        let found = if has_clients { "keys, and a seed of one's own" } else { "reachable from this machine only" };
        findings.push(ok(CHECK, ROUTER, found));
    }
    findings
}

/// What reading the configuration warns of: certificates that end, secrets in the clear. What helps stands behind a colon
/// or a semicolon there.
fn of_config(warning: &str) -> Finding {
    let (found, fix) = warning.split_once("; ").or_else(|| warning.split_once(": ")).unwrap_or((warning, ""));
    let verdict = if warning.contains("expired") || warning.contains("has ended") || warning.contains("believed") {
        Verdict::Problem
    } else {
        Verdict::Warning
    };
    let is_of_certificate = warning.contains("certificate");
    let fix = match (fix, is_of_certificate) {
        ("", true) => "Put a new one into that file; it is read again by itself, and connections stay.",
        ("", false) => "See the configuration.",
        (fix, _) => fix,
    };
    finding(if is_of_certificate { "TLS" } else { CHECK }, verdict, ROUTER, found, fix)
}
