//! The nodes of the tree and who resides in them.

use std::ops::{Index, IndexMut};

use super::{BlockHash, SeatId, Use};
use crate::index::popularity::Popularity;

/// Estimated bytes of a node beside its run: itself, its entry in the map, the heads of its allocations.
pub(super) const NODE_BYTES: usize = 160;
/// Estimated bytes of a residence: itself and its entry in the seat's order.
pub(super) const RESIDENCE_BYTES: usize = 80;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(u32);

/// A run of blocks that no prompt has left in the middle.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) run: Box<[BlockHash]>,
    /// How many blocks come before the run.
    pub(super) position: u32,
    pub(super) residences: Vec<Residence>,
    pub(super) popularity: Popularity,
}

/// How much of a run an instance holds, always from the run's beginning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Residence {
    pub(super) seat: SeatId,
    /// Blocks that were there when a request got its first token.
    pub(super) confirmed: u32,
    /// How many requests are on their way that will leave the whole run there. While there are any, it is not evicted:
    /// neither do engines evict what a running request uses.
    pub(super) expected_by: u32,
    pub(super) last_use: Use,
    /// Tokens of the last answer to a prompt that ended with the run.
    pub(super) answer: u32,
}

impl Node {
    pub(super) fn new(run: Box<[BlockHash]>, position: u32) -> Node {
        Node { run, position, residences: Vec::new(), popularity: Popularity::default() }
    }

    pub(super) fn bytes(&self) -> usize {
        NODE_BYTES + self.run.len() * size_of::<BlockHash>()
    }

    /// How many blocks a residence counts for.
    pub(super) fn held(&self, residence: &Residence) -> u32 {
        if residence.expected_by > 0 { self.run.len() as u32 } else { residence.confirmed }
    }

    pub(super) fn residence_of(&self, seat: SeatId) -> Option<usize> {
        self.residences.iter().position(|residence| residence.seat == seat)
    }

    /// Cuts the run after `at` blocks. Returns the end as a node that continues this one, with those who hold part of
    /// it, and their residences there.
    ///
    /// Every prompt that uses a node uses it whole, so requests on their way count for both parts.
    pub(super) fn split_off(&mut self, at: u32) -> (Node, Vec<Residence>) {
        let end: Box<[BlockHash]> = self.run[at as usize..].into();
        self.run = self.run[..at as usize].into();
        let mut node = Node { popularity: self.popularity, ..Node::new(end, self.position + at) };
        for residence in &mut self.residences {
            if residence.expected_by > 0 || residence.confirmed > at {
                let confirmed = residence.confirmed.saturating_sub(at);
                node.residences.push(Residence { confirmed, ..*residence });
            }
            residence.confirmed = residence.confirmed.min(at);
            residence.answer = 0;
        }
        let beyond = node.residences.clone();
        (node, beyond)
    }
}

/// Nodes by number; numbers of removed ones are given again.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    slots: Vec<Option<Node>>,
    free: Vec<u32>,
}

impl Nodes {
    pub(super) fn add(&mut self, node: Node) -> NodeId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[id as usize] = Some(node);
        NodeId(id)
    }

    pub(super) fn ids(&self) -> Vec<NodeId> {
        let living = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
        living.map(|(id, _)| NodeId(id as u32)).collect()
    }

    pub(super) fn remove(&mut self, id: NodeId) -> Node {
        self.free.push(id.0);
        self.slots[id.0 as usize].take().expect(LIVING)
    }
}

/// Ids leave this module only within the index, which forgets a node's id everywhere when it removes the node.
const LIVING: &str = "an id names a node that is there";

impl Index<NodeId> for Nodes {
    type Output = Node;

    fn index(&self, id: NodeId) -> &Node {
        self.slots[id.0 as usize].as_ref().expect(LIVING)
    }
}

impl IndexMut<NodeId> for Nodes {
    fn index_mut(&mut self, id: NodeId) -> &mut Node {
        self.slots[id.0 as usize].as_mut().expect(LIVING)
    }
}
