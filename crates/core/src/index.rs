//! What each instance's cache is believed to hold: a tree of prompts, cut into blocks, with the instances that hold them.
//!
//! A prompt is a chain of blocks whose hashes are chained too, so that one hash stands for everything up to its block.
//! Runs of blocks without a branch share one node, so a prompt of 32 KB costs a few look-ups whatever its length, and a
//! block costs eight bytes however many instances hold it. Each instance's share is ordered by last use, the ends of
//! prompts first, as engines evict.

mod node;
mod popularity;
mod seat;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use self::node::{Node, NodeId, Nodes, Residence};
use self::seat::Seat;
use crate::AlreadyHashed;

/// The hash of a block and of everything before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockHash(pub u64);

/// An instance's place in the index; numbers are small and are given again after an instance has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SeatId(pub(crate) u32);

/// When something was last used: counts uses, so that order is exact whatever the clock's resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Use(u64);

/// The beliefs about all instances of a variant, within a budget of bytes.
#[derive(Debug)]
pub(crate) struct PrefixIndex {
    nodes: Nodes,
    /// The node that begins with a block. Chained hashes make the parent part of the name.
    by_first_block: HashMap<BlockHash, NodeId, BuildHasherDefault<AlreadyHashed>>,
    seats: Vec<Option<Seat>>,
    uses: u64,
    /// Requests that got their first token.
    requests: u64,
    budget: usize,
    bytes: usize,
}

/// How many requests back uses count, for each instance: a prefix that is used less often is none that others will come
/// for soon.
const WINDOW_PER_SEAT: f64 = 128.0;
/// What one later use of a prefix, on an instance that would compute it now, takes off the cost of computing it: not all
/// of the prefill, since that later use could have gone to an instance that holds it, only a little later.
const REUSE_COUNTS: f64 = 0.03;

/// What a block weighs that some instance is computing just now, and none has computed yet: who computes it beside that one
/// does work that a moment later nobody would have had to do. It keeps a burst of equal cold prompts together.
const BEING_COMPUTED: f64 = 1.2;

/// The part of an instance's capacity from which on it counts as full.
const FULL: f64 = 0.95;

/// What anyone knows of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Known {
    /// Leading blocks that somebody holds.
    pub(crate) blocks: u32,
    /// Those blocks as they weigh: a block that many requests begin with weighs less, for whoever computes it now computes
    /// it for them, too; one that is being computed weighs more.
    pub(crate) weight: f64,
}

/// How much of a prompt an instance holds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Match {
    /// Leading blocks that it holds or is computing now.
    pub(crate) blocks: u32,
    /// Leading blocks of which an earlier request has got its first token there.
    pub(crate) confirmed: u32,
    /// When the deepest of the confirmed ones was last used.
    pub(crate) last_use: Use,
    /// Tokens that it answered to a prompt which ended with the last of them: a prompt that goes on from there is most
    /// likely the next turn of a chat, and begins with that answer.
    pub(crate) answer: u32,
    /// The blocks that it holds or is computing, as they weigh.
    pub(crate) weight: f64,
}

impl PrefixIndex {
    pub(crate) fn new(budget: usize) -> PrefixIndex {
        PrefixIndex {
            nodes: Nodes::default(),
            by_first_block: HashMap::default(),
            seats: Vec::new(),
            uses: 0,
            requests: 0,
            budget,
            bytes: 0,
        }
    }

    /// What it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a seat for an instance.
    pub(crate) fn sit(&mut self) -> SeatId {
        let free = self.seats.iter().position(Option::is_none).unwrap_or_else(|| {
            self.seats.push(None);
            self.seats.len() - 1
        });
        self.seats[free] = Some(Seat::default());
        SeatId(free as u32)
    }

    /// Forgets an instance and everything that it was believed to hold.
    pub(crate) fn leave(&mut self, seat: SeatId) {
        self.clear(seat);
        self.seats[seat.0 as usize] = None;
    }

    /// Forgets what an instance was believed to hold: its process is another one.
    pub(crate) fn clear(&mut self, seat: SeatId) {
        for id in self.nodes.ids() {
            if let Some(at) = self.nodes[id].residence_of(seat) {
                let before = self.nodes[id].held(&self.nodes[id].residences[at]);
                let last_use = self.nodes[id].residences[at].last_use;
                self.nodes[id].residences[at] = Residence { seat, confirmed: 0, expected_by: 0, last_use, answer: 0 };
                self.shrunk(id, seat, before);
            }
        }
    }

    /// How much of a prompt each instance holds, into `matches` by seat; returns what anyone holds.
    pub(crate) fn look_up(&self, prompt: &[BlockHash], matches: &mut Vec<Match>) -> Known {
        matches.clear();
        matches.resize(self.seats.len(), Match::default());
        let window = self.window();
        let mut known = Known::default();
        while let Some((node, shared)) = self.step(prompt, known.blocks) {
            let position = known.blocks;
            // Of the later uses, one more holder would get its part.
            let uses = node.popularity.at(self.requests, window) / (node.residences.len() + 1) as f64;
            let computed = node.residences.iter().any(|residence| residence.confirmed > 0);
            let weight = if computed { 1.0 / (1.0 + REUSE_COUNTS * uses) } else { BEING_COMPUTED };
            for residence in &node.residences {
                let found = &mut matches[residence.seat.0 as usize];
                if found.blocks == position {
                    let held = node.held(residence).min(shared);
                    found.blocks = position + held;
                    found.weight += weight * f64::from(held);
                    let whole = found.blocks == position + node.run.len() as u32;
                    found.answer = if whole { residence.answer } else { 0 };
                }
                if found.confirmed == position && residence.confirmed > 0 {
                    found.confirmed = position + residence.confirmed.min(shared);
                    found.last_use = residence.last_use;
                }
            }
            known.blocks += shared;
            known.weight += weight * f64::from(shared);
            if (shared as usize) < node.run.len() {
                break;
            }
        }
        known
    }

    fn window(&self) -> f64 {
        WINDOW_PER_SEAT * self.seats.len() as f64
    }

    /// Notes that a prompt is on its way to an instance; it counts as held there from now on.
    pub(crate) fn expect(&mut self, prompt: &[BlockHash], seat: SeatId) {
        self.settle(prompt, seat, |node, at| node.residences[at].expected_by += 1);
    }

    /// The first token has come: what was expected is there.
    pub(crate) fn confirm(&mut self, prompt: &[BlockHash], seat: SeatId) {
        self.requests += 1;
        let (requests, window) = (self.requests, self.window());
        self.settle(prompt, seat, |node, at| {
            // Only now: what a burst asks for at once is not what others will come for later.
            node.popularity.count(requests, window);
            let residence = &mut node.residences[at];
            residence.confirmed = node.run.len() as u32;
            residence.expected_by = residence.expected_by.saturating_sub(1);
        });
    }

    /// The prompt was answered with so many tokens, which are in the instance's cache, too.
    pub(crate) fn answered(&mut self, prompt: &[BlockHash], seat: SeatId, tokens: u32) {
        let mut position = 0;
        while let Some((id, shared)) = self.step_id(prompt, position) {
            position += shared;
            if position as usize == prompt.len() {
                let node = &mut self.nodes[id];
                if let Some(at) = node.residence_of(seat).filter(|_| shared as usize == node.run.len()) {
                    node.residences[at].answer = tokens;
                }
                return;
            }
        }
    }

    /// The request has failed before its first token: what only it had promised is not there.
    pub(crate) fn withdraw(&mut self, prompt: &[BlockHash], seat: SeatId) {
        let mut path = Vec::new();
        let mut position = 0;
        while let Some((id, shared)) = self.step_id(prompt, position) {
            path.push(id);
            position += shared;
            if (shared as usize) < self.nodes[id].run.len() {
                break;
            }
        }
        // From the end, so that what nobody holds any more goes before what leads to it.
        for id in path.into_iter().rev() {
            let Some(at) = self.nodes[id].residence_of(seat) else { continue };
            let node = &mut self.nodes[id];
            let before = node.held(&node.residences[at]);
            node.residences[at].expected_by = node.residences[at].expected_by.saturating_sub(1);
            self.shrunk(id, seat, before);
        }
        self.keep_within_capacity(seat);
    }

    /// Forgets what an instance has last used at or before a moment, and believes it to hold no more than what is left.
    ///
    /// Returns the blocks that are left.
    pub(crate) fn forget_until(&mut self, seat: SeatId, moment: Use) -> u64 {
        while let Some(oldest) = self.seat(seat).and_then(Seat::oldest)
            && oldest.last_use <= moment
        {
            if !self.evict_oldest(seat, u32::MAX) {
                break;
            }
        }
        self.seat(seat).map_or(0, |seat| seat.blocks)
    }

    /// The most blocks that an instance is believed to hold; the oldest beyond it are forgotten.
    pub(crate) fn set_capacity(&mut self, seat: SeatId, blocks: u64) {
        if let Some(Some(seat)) = self.seats.get_mut(seat.0 as usize) {
            seat.capacity = blocks;
        }
        self.keep_within_capacity(seat);
    }

    /// The most blocks that an instance is believed to hold.
    pub(crate) fn capacity(&self, seat: SeatId) -> u64 {
        self.seat(seat).map_or(u64::MAX, |seat| seat.capacity)
    }

    /// Whether an instance is known to have no room left: what it computes makes it forget something else.
    pub(crate) fn is_full(&self, seat: SeatId) -> bool {
        let known = self.seat(seat).filter(|seat| seat.capacity < u64::MAX);
        known.is_some_and(|seat| seat.blocks as f64 > FULL * seat.capacity as f64)
    }

    fn seat(&self, seat: SeatId) -> Option<&Seat> {
        self.seats.get(seat.0 as usize).and_then(Option::as_ref)
    }

    /// The node at a position of a prompt, and how many of its blocks the prompt shares (at least the first).
    fn step_id(&self, prompt: &[BlockHash], position: u32) -> Option<(NodeId, u32)> {
        let rest = prompt.get(position as usize..)?;
        let id = *self.by_first_block.get(rest.first()?)?;
        Some((id, shared_blocks(&self.nodes[id].run, rest) as u32))
    }

    fn step(&self, prompt: &[BlockHash], position: u32) -> Option<(&Node, u32)> {
        self.step_id(prompt, position).map(|(id, shared)| (&self.nodes[id], shared))
    }

    /// Walks a prompt to its end, making nodes where there are none and ends of nodes where it ends, and applies `note` to
    /// each and the place of the instance's residence in it.
    fn settle(&mut self, prompt: &[BlockHash], seat: SeatId, mut note: impl FnMut(&mut Node, usize)) {
        if self.seat(seat).is_none() {
            return;
        }
        self.uses += 1;
        let now = Use(self.uses);
        let mut position = 0;
        while (position as usize) < prompt.len() {
            let (id, shared) = match self.step_id(prompt, position) {
                Some((id, shared)) => {
                    if (shared as usize) < self.nodes[id].run.len() {
                        self.split(id, shared);
                    }
                    (id, shared)
                }
                None => {
                    let run: Box<[BlockHash]> = prompt[position as usize..].into();
                    let shared = run.len() as u32;
                    (self.plant(Node::new(run, position)), shared)
                }
            };
            self.reside(id, seat, now, &mut note);
            position += shared;
        }
        self.keep_within_capacity(seat);
        self.keep_within_budget();
    }

    fn reside(&mut self, id: NodeId, seat: SeatId, now: Use, note: &mut impl FnMut(&mut Node, usize)) {
        let node = &mut self.nodes[id];
        let at = node.residence_of(seat).unwrap_or_else(|| {
            let last_use = Use::default();
            node.residences.push(Residence { seat, confirmed: 0, expected_by: 0, last_use, answer: 0 });
            self.bytes += node::RESIDENCE_BYTES;
            node.residences.len() - 1
        });
        let position = node.position;
        let old = node.residences[at];
        note(node, at);
        node.residences[at].last_use = now;
        let new = node.residences[at];
        let (before, after) = (node.held(&old), node.held(&new));
        if let Some(Some(seat)) = self.seats.get_mut(seat.0 as usize) {
            seat.blocks = seat.blocks + u64::from(after) - u64::from(before);
            seat.remove(id, position, old.last_use);
            if new.expected_by == 0 {
                seat.insert(id, position, now);
            }
        }
    }

    fn plant(&mut self, node: Node) -> NodeId {
        self.bytes += node.bytes();
        let first = node.run[0];
        let id = self.nodes.add(node);
        self.by_first_block.insert(first, id);
        id
    }

    /// Cuts a node in two after `at` blocks; the end becomes a node of its own, where anyone holds some of it.
    fn split(&mut self, id: NodeId, at: u32) {
        self.bytes -= self.nodes[id].bytes();
        let (end, beyond) = self.nodes[id].split_off(at);
        self.bytes += self.nodes[id].bytes();
        if beyond.is_empty() {
            return;
        }
        self.bytes += end.bytes() + beyond.len() * node::RESIDENCE_BYTES;
        let position = end.position;
        let first = end.run[0];
        let end_id = self.nodes.add(end);
        for residence in beyond.iter().filter(|residence| residence.expected_by == 0) {
            if let Some(Some(seat)) = self.seats.get_mut(residence.seat.0 as usize) {
                seat.insert(end_id, position, residence.last_use);
            }
        }
        self.by_first_block.insert(first, end_id);
    }

    /// Takes note that a residence holds fewer blocks than `before`; drops it, and the node, when it holds none.
    fn shrunk(&mut self, id: NodeId, seat: SeatId, before: u32) {
        let node = &mut self.nodes[id];
        let Some(at) = node.residence_of(seat) else { return };
        let residence = node.residences[at];
        let held = node.held(&residence);
        if let Some(Some(seat)) = self.seats.get_mut(seat.0 as usize) {
            seat.blocks -= u64::from(before - held);
            if held == 0 {
                seat.remove(id, node.position, residence.last_use);
            } else if residence.expected_by == 0 {
                seat.insert(id, node.position, residence.last_use);
            }
        }
        if held == 0 {
            node.residences.swap_remove(at);
            self.bytes -= node::RESIDENCE_BYTES;
            self.fell(id);
        }
    }

    /// Removes a node that nobody holds. Then nobody holds one behind it either: an instance uses the beginning of a
    /// prompt whenever it uses its end, so it forgets the end first.
    fn fell(&mut self, id: NodeId) {
        if self.nodes[id].residences.is_empty() {
            let node = self.nodes.remove(id);
            self.bytes -= node.bytes();
            self.by_first_block.remove(&node.run[0]);
        }
    }

    /// Forgets at most `most` blocks of what an instance has used longest ago, from its end. False when there is nothing
    /// that can be forgotten: it holds nothing, or only what requests on their way use.
    fn evict_oldest(&mut self, seat: SeatId, most: u32) -> bool {
        let Some(oldest) = self.seat(seat).and_then(Seat::oldest) else { return false };
        let node = &mut self.nodes[oldest.node];
        let Some(at) = node.residence_of(seat) else { return false };
        let before = node.residences[at].confirmed;
        node.residences[at].confirmed = before.saturating_sub(most);
        self.shrunk(oldest.node, seat, before);
        true
    }

    fn keep_within_capacity(&mut self, seat: SeatId) {
        while let Some(over) = self.seat(seat).and_then(|seat| seat.blocks.checked_sub(seat.capacity))
            && over > 0
            && self.evict_oldest(seat, u32::try_from(over).unwrap_or(u32::MAX))
        {}
    }

    /// Forgets what anyone has used longest ago.
    fn keep_within_budget(&mut self) {
        while self.bytes > self.budget {
            let oldest = self
                .seats
                .iter()
                .enumerate()
                .filter_map(|(id, seat)| Some((seat.as_ref()?.oldest()?.last_use, SeatId(id as u32))));
            match oldest.min() {
                Some((_, seat)) if self.evict_oldest(seat, u32::MAX) => {}
                _ => break,
            }
        }
    }
}

/// How many leading blocks two prompts share that share the first. Hashes are chained: where two are equal, all before
/// them are.
fn shared_blocks(one: &[BlockHash], other: &[BlockHash]) -> usize {
    let shorter = one.len().min(other.len());
    if one.get(shorter.wrapping_sub(1)) == other.get(shorter.wrapping_sub(1)) {
        return shorter;
    }
    let (mut equal, mut different) = (0, shorter);
    while equal < different {
        let middle = equal.midpoint(different);
        if one[middle] == other[middle] {
            equal = middle + 1;
        } else {
            different = middle;
        }
    }
    equal
}
