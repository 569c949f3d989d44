//! What instances are believed to have cached, from what was sent there: the memory of routers that see no engine events.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use isotherm_core::AlreadyHashed;

use crate::prompt::Beginning;

/// For every beginning that was sent the instances that got it, within a capacity for each instance.
#[derive(Debug)]
pub(super) struct History {
    capacity_tokens: u64,
    holders: HashMap<u64, Vec<Holder>, BuildHasherDefault<AlreadyHashed>>,
    instances: Vec<Memory>,
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    instance: u32,
    last_use: u64,
    /// Length of the beginning's last piece.
    tokens: u32,
}

/// What one instance holds, the least recently used first. A beginning that was used again stands here more than once;
/// only its last use counts.
#[derive(Debug, Default)]
struct Memory {
    uses: VecDeque<(u64, u64)>,
    tokens: u64,
}

impl History {
    pub(super) fn new(capacity_tokens: u64) -> History {
        History { capacity_tokens, holders: HashMap::default(), instances: Vec::new(), uses: 0 }
    }

    /// How many leading tokens of a prompt each instance holds, by its number.
    pub(super) fn held(&self, beginnings: &[Beginning], held: &mut Vec<u32>) {
        held.clear();
        held.resize(self.instances.len(), 0);
        let mut before = 0;
        for beginning in beginnings {
            let Some(holders) = self.holders.get(&beginning.hash) else { return };
            for holder in holders {
                let held = &mut held[holder.instance as usize];
                if *held == before {
                    *held = beginning.tokens;
                }
            }
            before = beginning.tokens;
        }
    }

    /// A prompt was sent to an instance. Its end is forgotten first.
    pub(super) fn note(&mut self, beginnings: &[Beginning], instance: u32) {
        if self.instances.len() <= instance as usize {
            self.instances.resize_with(instance as usize + 1, Memory::default);
        }
        for (place, beginning) in beginnings.iter().enumerate().rev() {
            let before = place.checked_sub(1).map_or(0, |before| beginnings[before].tokens);
            self.uses += 1;
            let memory = &mut self.instances[instance as usize];
            memory.uses.push_back((beginning.hash, self.uses));
            let holders = self.holders.entry(beginning.hash).or_default();
            match holders.iter_mut().find(|holder| holder.instance == instance) {
                Some(holder) => holder.last_use = self.uses,
                None => {
                    let tokens = beginning.tokens - before;
                    holders.push(Holder { instance, last_use: self.uses, tokens });
                    memory.tokens += u64::from(tokens);
                }
            }
        }
        self.shrink(instance);
    }

    /// An instance lost everything.
    pub(super) fn forget(&mut self, instance: u32) {
        self.holders.retain(|_, holders| {
            holders.retain(|holder| holder.instance != instance);
            !holders.is_empty()
        });
        if let Some(memory) = self.instances.get_mut(instance as usize) {
            *memory = Memory::default();
        }
    }

    fn shrink(&mut self, instance: u32) {
        let memory = &mut self.instances[instance as usize];
        while memory.tokens > self.capacity_tokens {
            let Some((hash, last_use)) = memory.uses.pop_front() else { return };
            let Some(holders) = self.holders.get_mut(&hash) else { continue };
            let stale = |holder: &Holder| holder.instance == instance && holder.last_use == last_use;
            if let Some(place) = holders.iter().position(stale) {
                memory.tokens -= u64::from(holders.swap_remove(place).tokens);
                if holders.is_empty() {
                    self.holders.remove(&hash);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(pieces: &[u64]) -> Vec<Beginning> {
        let mut hash = 0;
        let chained = pieces.iter().enumerate().map(|(place, piece)| {
            hash = crate::prompt::mix(hash ^ piece);
            Beginning { hash, tokens: (place as u32 + 1) * 100 }
        });
        chained.collect()
    }

    fn held(history: &History, pieces: &[u64]) -> Vec<u32> {
        let mut held = Vec::new();
        history.held(&prompt(pieces), &mut held);
        held
    }

    #[test]
    fn holds_what_was_sent_as_far_as_it_is_equal() {
        let mut history = History::new(1_000);
        history.note(&prompt(&[1, 2, 3]), 0);
        history.note(&prompt(&[1, 4]), 2);
        assert_eq!(held(&history, &[1, 2, 9]), [200, 0, 100]);
        assert_eq!(held(&history, &[1, 4, 9]), [100, 0, 200]);
        assert_eq!(held(&history, &[9]), [0, 0, 0]);
        history.forget(0);
        assert_eq!(held(&history, &[1, 2]), [0, 0, 100]);
    }

    #[test]
    fn forgets_the_least_recently_used_and_of_a_prompt_the_end() {
        let mut history = History::new(400);
        history.note(&prompt(&[1, 2]), 0);
        history.note(&prompt(&[3, 4]), 0);
        history.note(&prompt(&[1, 2]), 0);
        history.note(&prompt(&[5]), 0);
        assert_eq!(
            (held(&history, &[3, 4]), held(&history, &[1, 2]), held(&history, &[5])),
            (vec![100], vec![200], vec![100])
        );
        history.note(&prompt(&[6, 7]), 0);
        assert_eq!((held(&history, &[3, 4]), held(&history, &[1, 2])), (vec![0], vec![100]));
    }
}
