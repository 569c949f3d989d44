//! Certificates of instances within TLS count, and for some time yet.

use std::time::SystemTime;

use isotherm_config::CERTIFICATE_ENDS_SOON;

use super::{Finding, Verdict, each, finding};
use crate::alerts::{InstanceReading, VariantReading};

const CHECK: &str = "TLS";

const FIX: &str = "Put a new one where its TLS ends: at the proxy before it, or at the engine (vLLM takes it by itself with \
                   --enable-ssl-refresh, else with a restart). The router asks for nothing: the next connection shows it.";

pub(super) fn check(variant: &VariantReading, now: SystemTime) -> Vec<Finding> {
    let well = |variant: &VariantReading| {
        let ends = || variant.instances.iter().filter_map(|instance| Some(instance.certificate?.until));
        let days = ends().min()?.duration_since(now).unwrap_or_default().as_secs() / 86_400;
        let count = ends().count();
        Some(format!("certificates of {count} of {}: the first expires in {days} days", variant.instances.len()))
    };
    each(variant, CHECK, well, |instance| of(instance, now))
}

fn of(instance: &InstanceReading, now: SystemTime) -> Option<Finding> {
    let validity = instance.certificate?;
    let complaint = validity.complaint(now, CERTIFICATE_ENDS_SOON)?;
    // One that does not count is believed all the same under `verify: false`.
    let counts = (validity.from..=validity.until).contains(&now);
    let verdict = if counts || instance.availability == "up" { Verdict::Warning } else { Verdict::Problem };
    Some(finding(CHECK, verdict, &instance.id, format!("its certificate {complaint}"), FIX))
}
