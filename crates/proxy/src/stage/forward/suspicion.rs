//! Keeps a request that kills engines from being walked through the fleet.

use isotherm_core::{KeyScope, PrefixHasher, prefix_key};
use isotherm_fleet::Placement;

use super::attempt::{Miss, MissKind};
use super::held::Held;
use crate::rescue::Failure;
use crate::stage::finish::Record;
use crate::upstream::Outgoing;

/// What is known of one request from instances that died on it.
#[derive(Debug)]
pub(super) struct Suspicion<'o> {
    outgoing: &'o Outgoing,
    /// Its hash, once that was worth computing.
    hash: Option<u64>,
}

impl<'o> Suspicion<'o> {
    /// Looks whether a request may be tried at all.
    pub(super) fn of(outgoing: &'o Outgoing, record: &Record) -> Result<Suspicion<'o>, Failure> {
        let suspects = record.worker.fleet.suspects();
        let hash = if suspects.any() { hash(outgoing, record) } else { None };
        match hash.and_then(|hash| suspects.pause(hash, record.worker.now())) {
            Some(left) => Err(Failure::KillsInstances(left)),
            None => Ok(Suspicion { outgoing, hash }),
        }
    }

    /// Notes what came of an attempt.
    pub(super) fn note(&mut self, placement: &Placement, outcome: &Result<Box<Held>, Miss>, record: &Record) {
        let suspects = record.worker.fleet.suspects();
        match (outcome, self.hash) {
            (Ok(_), Some(hash)) => suspects.acquit(hash),
            (Err(Miss { kind: MissKind::Broken, .. }), _) => {
                self.hash = self.hash.or_else(|| hash(self.outgoing, record));
                if let Some(hash) = self.hash {
                    suspects.died(hash, placement.instance.serial(), record.worker.now());
                }
            }
            (Ok(_), None) | (Err(_), _) => {}
        }
    }

    /// Whether it has killed so many that it is not to be sent once more.
    pub(super) fn is_strong(&self, record: &Record) -> bool {
        self.hash.is_some_and(|hash| record.worker.fleet.suspects().is_likely(hash))
    }
}

/// The hash of path and body; `None` without a body, for then there is nothing to die on.
fn hash(outgoing: &Outgoing, record: &Record) -> Option<u64> {
    let seed = record.rules.hash_seed;
    let mut hasher = PrefixHasher::new(seed);
    hasher.update(&outgoing.body);
    let scope = KeyScope { endpoint: outgoing.head.uri.path(), variant: "", model: None, adapter: None, tenant: None };
    Some(prefix_key(seed, &scope, None, None, &hasher.finish()?).as_u128() as u64)
}
