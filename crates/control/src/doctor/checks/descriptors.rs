//! The router may open as many files as its connections need.

use isotherm_config::Config;

use super::{Facts, Finding, ROUTER, Verdict, finding, ok};

const CHECK: &str = "file descriptors";

pub(super) fn check(config: &Config, facts: &Facts) -> Option<Finding> {
    let most = facts.most_files?;
    // A client's connection, and one to an instance.
    let needed = 2 * u64::from(config.limits.connections);
    let allowed = if most == u64::MAX { "any number".to_owned() } else { most.to_string() };
    let found = format!("{allowed} allowed, {needed} needed for {} clients at once", config.limits.connections);
    if most >= needed {
        return Some(ok(CHECK, ROUTER, found));
    }
    let fix = "Raise them where the router is started (systemd: LimitNOFILE=, shells: ulimit -n, containers: --ulimit nofile=), \
               or lower limits.connections.";
    Some(finding(CHECK, Verdict::Warning, ROUTER, found, fix))
}
