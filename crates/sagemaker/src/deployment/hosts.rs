//! Which instance a copy of a component goes to.

use crate::shapes::{ComponentCompute, PlacementStrategy};

/// What an instance has room for; `None`: nobody knows, so anything fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Capacity {
    /// Accelerators.
    pub(super) accelerators: f64,
    /// Memory in MiB.
    pub(super) memory: f64,
}

/// An instance that may hold copies.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Host {
    /// Its id.
    pub(super) id: String,
    /// Its kind.
    pub(super) instance_type: String,
    /// What it has in all.
    pub(super) capacity: Option<Capacity>,
    /// What the copies on it take.
    pub(super) taken: Capacity,
    /// How many copies of the component in question lie on it.
    pub(super) copies: u32,
    /// How many copies of whatever component lie on it.
    pub(super) all_copies: u32,
}

impl Capacity {
    /// Nothing.
    pub(super) const NONE: Capacity = Capacity { accelerators: 0.0, memory: 0.0 };

    /// What a copy takes.
    pub(super) fn of_copy(compute: Option<&ComponentCompute>) -> Capacity {
        compute.map_or(Capacity::NONE, |compute| Capacity {
            accelerators: compute.number_of_accelerator_devices_required.unwrap_or(0.0),
            memory: f64::from(compute.min_memory_required_in_mb),
        })
    }

    /// What an instance of a kind has, as AWS's pages on accelerated instances say; unknown for kinds without
    /// accelerators, and for those not listed here.
    pub(super) fn of_instance(instance_type: &str) -> Option<Capacity> {
        let found = ACCELERATED.iter().find(|(kind, ..)| instance_type.strip_prefix("ml.") == Some(*kind));
        found.map(|&(_, accelerators, gibibytes)| Capacity {
            accelerators: accelerators.into(),
            memory: f64::from(gibibytes) * 1_024.0,
        })
    }

    pub(super) fn plus(self, other: Capacity) -> Capacity {
        Capacity { accelerators: self.accelerators + other.accelerators, memory: self.memory + other.memory }
    }

    fn fits_into(self, whole: Capacity) -> bool {
        self.accelerators <= whole.accelerators && self.memory <= whole.memory
    }
}

/// The host for another copy: apart from its like where it is to spread (the default), or where there is most already.
/// Ties go to the first. `None` where it fits nowhere.
pub(super) fn place(hosts: &[Host], copy: Capacity, strategy: Option<PlacementStrategy>) -> Option<usize> {
    let fits = |host: &Host| host.capacity.is_none_or(|whole| host.taken.plus(copy).fits_into(whole));
    let candidates = hosts.iter().enumerate().filter(|(_, host)| fits(host));
    let best = match strategy {
        Some(PlacementStrategy::Binpack) => candidates.max_by_key(|(at, host)| (host.all_copies, usize::MAX - at)),
        Some(PlacementStrategy::Spread) | None => {
            candidates.min_by_key(|(at, host)| (host.copies, host.all_copies, *at))
        }
    };
    best.map(|(at, _)| at)
}

/// Kind, accelerators, memory in GiB.
const ACCELERATED: [(&str, u32, u32); 57] = [
    ("dl1.24xlarge", 8, 768),
    ("g4dn.xlarge", 1, 16),
    ("g4dn.2xlarge", 1, 32),
    ("g4dn.4xlarge", 1, 64),
    ("g4dn.8xlarge", 1, 128),
    ("g4dn.12xlarge", 4, 192),
    ("g4dn.16xlarge", 1, 256),
    ("g5.xlarge", 1, 16),
    ("g5.2xlarge", 1, 32),
    ("g5.4xlarge", 1, 64),
    ("g5.8xlarge", 1, 128),
    ("g5.12xlarge", 4, 192),
    ("g5.16xlarge", 1, 256),
    ("g5.24xlarge", 4, 384),
    ("g5.48xlarge", 8, 768),
    ("g6.xlarge", 1, 16),
    ("g6.2xlarge", 1, 32),
    ("g6.4xlarge", 1, 64),
    ("g6.8xlarge", 1, 128),
    ("g6.12xlarge", 4, 192),
    ("g6.16xlarge", 1, 256),
    ("g6.24xlarge", 4, 384),
    ("g6.48xlarge", 8, 768),
    ("g6e.xlarge", 1, 32),
    ("g6e.2xlarge", 1, 64),
    ("g6e.4xlarge", 1, 128),
    ("g6e.8xlarge", 1, 256),
    ("g6e.12xlarge", 4, 384),
    ("g6e.16xlarge", 1, 512),
    ("g6e.24xlarge", 4, 768),
    ("g6e.48xlarge", 8, 1_536),
    ("inf1.xlarge", 1, 8),
    ("inf1.2xlarge", 1, 16),
    ("inf1.6xlarge", 4, 48),
    ("inf1.24xlarge", 16, 192),
    ("inf2.xlarge", 1, 16),
    ("inf2.8xlarge", 1, 128),
    ("inf2.24xlarge", 6, 384),
    ("inf2.48xlarge", 12, 768),
    ("p2.xlarge", 1, 61),
    ("p2.8xlarge", 8, 488),
    ("p2.16xlarge", 16, 732),
    ("p3.2xlarge", 1, 61),
    ("p3.8xlarge", 4, 244),
    ("p3.16xlarge", 8, 488),
    ("p4d.24xlarge", 8, 1_152),
    ("p4de.24xlarge", 8, 1_152),
    ("p5.4xlarge", 1, 256),
    ("p5.48xlarge", 8, 2_048),
    ("p5e.48xlarge", 8, 2_048),
    ("p5en.48xlarge", 8, 2_048),
    ("p6-b200.48xlarge", 8, 2_048),
    ("p6-b300.48xlarge", 8, 4_096),
    ("trn1.2xlarge", 1, 32),
    ("trn1.32xlarge", 16, 512),
    ("trn1n.32xlarge", 16, 512),
    ("trn2.48xlarge", 16, 2_048),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn host(id: &str, instance_type: &str) -> Host {
        Host {
            id: id.to_owned(),
            instance_type: instance_type.to_owned(),
            capacity: Capacity::of_instance(instance_type),
            taken: Capacity::NONE,
            copies: 0,
            all_copies: 0,
        }
    }

    fn put(hosts: &mut [Host], copy: Capacity, strategy: Option<PlacementStrategy>) -> Option<String> {
        let host = &mut hosts[place(hosts, copy, strategy)?];
        host.taken = host.taken.plus(copy);
        host.copies += 1;
        host.all_copies += 1;
        Some(host.id.clone())
    }

    #[test]
    fn copies_spread_until_accelerators_run_out() {
        let mut hosts = [host("a", "ml.g5.12xlarge"), host("b", "ml.g5.12xlarge"), host("c", "ml.g5.xlarge")];
        let copy = Capacity { accelerators: 2.0, memory: 1_024.0 };
        let placed: Vec<_> = (0..5).map(|_| put(&mut hosts, copy, None)).collect();
        let expected = ["a", "b", "a", "b"].map(|id| Some(id.to_owned())).into_iter().chain([None]);
        assert!(placed.into_iter().eq(expected));
    }

    #[test]
    fn memory_bounds_and_unknown_kinds_take_anything() {
        let mut hosts = [host("a", "ml.g5.xlarge")];
        let copy = Capacity { accelerators: 0.0, memory: 10_000.0 };
        assert_eq!(put(&mut hosts, copy, None).as_deref(), Some("a"));
        assert_eq!(put(&mut hosts, copy, None), None, "16 GiB hold one of 10 GB");
        let mut hosts = [host("a", "ml.m5.large")];
        assert!((0..9).all(|_| put(&mut hosts, copy, None).is_some()));
    }

    #[test]
    fn packed_copies_fill_one_host_after_the_other() {
        let mut hosts = [host("a", "ml.g5.12xlarge"), host("b", "ml.g5.12xlarge")];
        let copy = Capacity { accelerators: 2.0, memory: 0.0 };
        let placed: Vec<_> = (0..3).filter_map(|_| put(&mut hosts, copy, Some(PlacementStrategy::Binpack))).collect();
        assert_eq!(placed, ["a", "a", "b"]);
    }
}
