//! The places where prompts part, and what that costs.

use std::collections::HashMap;

use super::Cause;
use crate::chain::extend_by_id;
use crate::known::AlreadyHashed;
use crate::prompt::Place;

/// How many places are kept apart; what comes later is not noted.
const MOST_SITES: usize = 10_000;

/// A place in prompts and what differs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SiteKey {
    pub(crate) place: Place,
    pub(crate) cause: Cause,
}

/// Where within its place a prompt parts from the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    pub(crate) characters: usize,
    /// It is there, not somewhere behind.
    pub(crate) is_exact: bool,
}

/// What was noted of a place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Site {
    pub(crate) place: Place,
    pub(crate) cause: Cause,
    /// The least and the greatest offset within the place, in characters.
    pub(crate) offsets: (usize, usize),
    /// These are exact.
    are_exact: bool,
    /// How many requests parted there.
    pub(crate) requests: u64,
    /// What these would have shared beyond it.
    pub(crate) lost_units: u64,
    /// What stood there first, where text is kept.
    pub(crate) example: Option<String>,
}

/// Places by what they are.
#[derive(Debug, Default)]
pub(super) struct Sites {
    noted: HashMap<SiteKey, Site>,
    /// What stood last at an offset of a place.
    values: HashMap<u64, u64, AlreadyHashed>,
}

impl Sites {
    /// Whether something else stood there before, or nothing that is remembered.
    pub(super) fn changes(&mut self, key: SiteKey, offset: usize, value: u64) -> bool {
        if self.values.len() >= MOST_SITES {
            self.values.clear();
        }
        let place = extend_by_id(offset as u64, key.place.message.map_or(0, |number| u64::from(number) + 1));
        let site = extend_by_id(place, (key.place.kind as u64) << 8 | key.cause as u64);
        self.values.insert(site, value) != Some(value)
    }

    /// Notes that a request parted at an offset and lost so much.
    pub(super) fn note(&mut self, key: SiteKey, offset: Offset, lost_units: u64, example: Option<String>) {
        if self.noted.len() >= MOST_SITES && !self.noted.contains_key(&key) {
            return;
        }
        let site = self.noted.entry(key).or_insert(Site {
            place: key.place,
            cause: key.cause,
            offsets: (offset.characters, offset.characters),
            are_exact: offset.is_exact,
            requests: 0,
            lost_units: 0,
            example,
        });
        if offset.is_exact && !site.are_exact {
            (site.offsets, site.are_exact) = ((offset.characters, offset.characters), true);
        } else if offset.is_exact || !site.are_exact {
            site.offsets = (site.offsets.0.min(offset.characters), site.offsets.1.max(offset.characters));
        }
        site.requests += 1;
        site.lost_units += lost_units;
    }

    /// The places that cost most, the worst first.
    pub(super) fn worst(&self, count: usize) -> Vec<Site> {
        let mut sites: Vec<&Site> = self.noted.values().collect();
        sites.sort_unstable_by_key(|site| (std::cmp::Reverse(site.lost_units), site.place, site.cause));
        sites.into_iter().take(count).cloned().collect()
    }
}
