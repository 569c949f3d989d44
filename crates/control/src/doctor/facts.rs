//! What the checks look at.

use std::fs;
use std::time::{Duration, SystemTime};

use isotherm_fleet::Fleet;

use crate::alerts::{self, VariantReading};
use crate::observer::{POINTS, STEP, Seen};

/// What is known at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) now: SystemTime,
    /// The last quarter of an hour; without traffic where no router runs.
    pub(crate) variants: Vec<VariantReading>,
    /// How many files the router may have open; `None` where none runs, or nothing tells.
    pub(crate) most_files: Option<u64>,
}

impl Facts {
    pub(crate) fn of_router(fleet: &Fleet, seen: &Seen) -> Facts {
        let window: Duration = STEP * POINTS as u32;
        let limits = fs::read_to_string("/proc/self/limits").ok();
        Facts {
            now: SystemTime::now(),
            variants: alerts::read(fleet, seen, window),
            most_files: limits.as_deref().and_then(most_files),
        }
    }

    pub(crate) fn of_fleet(fleet: &Fleet) -> Facts {
        Facts { most_files: None, ..Facts::of_router(fleet, &Seen::default()) }
    }
}

/// The soft limit of open files, out of `/proc/self/limits`.
fn most_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_of_open_files_is_found() {
        let limits = "Max processes             63432                63432                processes\n\
                      Max open files            1024                 524288               files\n";
        assert_eq!(most_files(limits), Some(1_024));
        assert_eq!(most_files("Max open files  unlimited unlimited files"), Some(u64::MAX));
        assert_eq!(most_files(""), None);
    }
}
