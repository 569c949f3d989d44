//! Engines' clocks agree with the router's: else logs and traces of one request lie apart.

use super::{Finding, Verdict, each, finding};
use crate::alerts::VariantReading;

const CHECK: &str = "clocks";

/// How far apart clocks may be, in seconds: a `date` header is accurate to one.
const APART: f64 = 5.0;

pub(super) fn check(variant: &VariantReading) -> Vec<Finding> {
    let well = |variant: &VariantReading| {
        let told = variant.instances.iter().filter(|instance| instance.engine.clock_ahead.is_some()).count();
        (told > 0)
            .then(|| format!("within {APART:.0} s of this machine's, as {told} of {} tell", variant.instances.len()))
    };
    each(variant, CHECK, well, |instance| {
        let ahead = instance.engine.clock_ahead.filter(|ahead| ahead.abs() > APART)?;
        let way = if ahead > 0.0 { "ahead of" } else { "behind" };
        let found = format!("its clock is {:.0} s {way} the router's", ahead.abs());
        Some(finding(CHECK, Verdict::Warning, &instance.id, found, "Let both machines follow NTP (chrony, timesyncd)."))
    })
}
