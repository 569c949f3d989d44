//! An instance's share of the tree, in the order in which it is forgotten.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::Use;
use super::node::NodeId;

/// What one instance holds.
#[derive(Debug)]
pub(super) struct Seat {
    /// What can be forgotten, that is what no request on its way uses: the longest unused first; of one use, the end of
    /// the prompt before its beginning, as vLLM frees blocks.
    order: BTreeSet<(Use, Reverse<u32>, NodeId)>,
    pub(super) blocks: u64,
    /// The most blocks that it is believed to hold.
    pub(super) capacity: u64,
}

/// The node that a seat forgets next.
pub(super) struct Oldest {
    pub(super) node: NodeId,
    pub(super) last_use: Use,
}

impl Default for Seat {
    fn default() -> Seat {
        Seat { order: BTreeSet::new(), blocks: 0, capacity: u64::MAX }
    }
}

impl Seat {
    pub(super) fn oldest(&self) -> Option<Oldest> {
        self.order.first().map(|&(last_use, _, node)| Oldest { node, last_use })
    }

    pub(super) fn insert(&mut self, node: NodeId, position: u32, last_use: Use) {
        self.order.insert((last_use, Reverse(position), node));
    }

    pub(super) fn remove(&mut self, node: NodeId, position: u32, last_use: Use) {
        self.order.remove(&(last_use, Reverse(position), node));
    }
}
