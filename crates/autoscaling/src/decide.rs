//! How much a resource should have: pure functions of what was measured and when it was last changed.

mod steps;
mod tracking;

pub(crate) use self::steps::{Called, by_steps};
pub(crate) use self::tracking::{Measured, by_tracking};

use crate::record::{Change, Suspended};
use crate::resource::Capacity;

/// A resource as it stands when something is to be decided.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation {
    /// Seconds of Unix time.
    pub(crate) now: u64,
    pub(crate) capacity: Capacity,
    pub(crate) minimum: u32,
    pub(crate) maximum: u32,
    pub(crate) last_out: Option<Change>,
    pub(crate) last_in: Option<Change>,
}

/// What one policy wants, or the bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// More: this many.
    Out(u32),
    /// Less: this many.
    In(u32),
    /// As many as there are.
    Stay,
    /// It has no say: it never scales in, and sees no reason to scale out.
    Abstain,
}

impl Situation {
    /// What the bounds want, whatever is measured.
    pub(crate) fn by_bounds(&self) -> Wish {
        if self.capacity.desired < self.minimum {
            Wish::Out(self.minimum)
        } else if self.capacity.desired > self.maximum {
            Wish::In(self.maximum)
        } else {
            Wish::Stay
        }
    }

    /// A figure within the bounds.
    fn bounded(&self, wanted: f64) -> u32 {
        // A cast saturates.
        (wanted.max(0.0) as u32).clamp(self.minimum, self.maximum.max(self.minimum))
    }

    /// A wish for this capacity.
    fn towards(&self, wanted: u32) -> Wish {
        match wanted.cmp(&self.capacity.desired) {
            std::cmp::Ordering::Greater => Wish::Out(wanted),
            std::cmp::Ordering::Less => Wish::In(wanted),
            std::cmp::Ordering::Equal => Wish::Stay,
        }
    }

    /// Whether less than `cooldown` seconds have passed since the change.
    fn cools_down(&self, change: Option<Change>, cooldown: u32) -> bool {
        change.is_some_and(|change| self.now < change.at + u64::from(cooldown))
    }
}

/// What comes of the wishes of several policies: the greatest wish for more; less only if none wants to stay, and then
/// the most that any of them leaves. Index of the policy that decided, and the capacity.
pub(crate) fn together(wishes: &[Wish], suspended: Suspended) -> Option<(usize, u32)> {
    let wanted = |of: fn(&Wish) -> Option<u32>| {
        wishes.iter().enumerate().filter_map(|(index, wish)| Some((index, of(wish)?))).max_by_key(|(_, wanted)| *wanted)
    };
    let out = wanted(|wish| if let Wish::Out(wanted) = wish { Some(*wanted) } else { None });
    if out.is_some() {
        return out.filter(|_| !suspended.scaling_out);
    }
    if suspended.scaling_in || wishes.contains(&Wish::Stay) {
        return None;
    }
    wanted(|wish| if let Wish::In(wanted) = wish { Some(*wanted) } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Suspended = Suspended { scaling_in: false, scaling_out: false, scheduled: false };

    #[test]
    fn the_greatest_wish_for_more_counts_and_less_needs_all() {
        use Wish::{Abstain, In, Out, Stay};
        for (wishes, expected) in [
            (vec![Out(4), Out(6), In(1)], Some((1, 6))),
            (vec![In(2), In(3)], Some((1, 3))),
            (vec![In(2), Stay], None),
            (vec![In(2), Abstain], Some((0, 2))),
            (vec![Abstain, Stay], None),
            (vec![], None),
        ] {
            assert_eq!(together(&wishes, NOTHING), expected, "{wishes:?}");
        }
        assert_eq!(together(&[Out(4)], Suspended { scaling_out: true, ..NOTHING }), None);
        assert_eq!(together(&[In(1)], Suspended { scaling_in: true, ..NOTHING }), None);
    }

    #[test]
    fn bounds_hold_whatever_is_measured() {
        let situation = |desired| Situation {
            now: 0,
            capacity: Capacity { desired, running: desired, settled: true },
            minimum: 2,
            maximum: 4,
            last_out: None,
            last_in: None,
        };
        let wishes = [1, 2, 4, 9].map(|desired| situation(desired).by_bounds());
        assert_eq!(wishes, [Wish::Out(2), Wish::Stay, Wish::Stay, Wish::In(4)]);
    }
}
