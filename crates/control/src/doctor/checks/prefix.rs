//! Prompts are longer than the prefix: of a shorter one the whole text is the key, the last question with it.

use super::{Finding, Verdict, finding, name, ok};
use crate::alerts::VariantReading;

const CHECK: &str = "prefix length";

/// How many prompts say something.
const LEAST: u64 = 20;

pub(super) fn check(variant: &VariantReading) -> Option<Finding> {
    let (length, short) = (variant.prefix_length?, variant.short);
    if short.prompts < LEAST {
        return None;
    }
    let share = short.short as f64 / short.prompts as f64;
    let found = format!("{:.0} % of the prompts are shorter than prefix_length {length}", share * 100.0);
    if share <= 0.5 {
        return Some(ok(CHECK, name(variant), found));
    }
    let fix = "Their whole text is the key, so requests that differ only in their end have different homes. Lower \
               prefix_length (isotherm analyze recommends one), or use ADAPTIVE, which needs none.";
    Some(finding(CHECK, Verdict::Warning, name(variant), found, fix))
}
