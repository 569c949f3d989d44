//! An instance's cache as a list of hashes: which beginnings of prompts it holds, the least recently used evicted first.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use isotherm_core::AlreadyHashed;
use isotherm_telemetry::Trail;

/// No block.
const NONE: u32 = u32::MAX;

/// What an instance is reckoned to hold. All lengths are in bytes of prompts.
#[derive(Debug)]
pub(super) struct Cache {
    places: HashMap<u64, u32, BuildHasherDefault<AlreadyHashed>>,
    blocks: Vec<Block>,
    free: Vec<u32>,
    /// The most and the least recently used.
    newest: u32,
    oldest: u32,
    used: u64,
    capacity: u64,
    most_blocks: usize,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    hash: u64,
    bytes: u32,
    /// How long the answer is that was given to a prompt which ends here.
    answer: u32,
    newer: u32,
    older: u32,
}

impl Cache {
    /// Holds so much, and no more than so many blocks.
    pub(super) fn new(capacity: u64, most_blocks: usize) -> Cache {
        Cache {
            places: HashMap::default(),
            blocks: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            used: 0,
            capacity,
            most_blocks,
        }
    }

    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.evict();
    }

    /// What it holds in all.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// How much of a prompt's beginning it holds. What follows an earlier prompt is taken for the answer to that one,
    /// which the engine has cached, too.
    pub(super) fn held(&self, trail: &Trail) -> u32 {
        let mut held = 0;
        let mut last = None;
        for (block, end) in trail.blocks.iter().zip(&trail.ends) {
            let Some(place) = self.places.get(&trail.scoped(*block)) else { break };
            (held, last) = (*end, Some(*place));
        }
        let answer = last.map_or(0, |place| self.blocks[place as usize].answer);
        held.saturating_add(answer).min(trail.bytes())
    }

    /// A prompt was computed, and answered with so much. Its end counts as used before its beginning, as engines free it.
    pub(super) fn store(&mut self, trail: &Trail, answer: u32) {
        for index in (0..trail.blocks.len()).rev() {
            let begin = index.checked_sub(1).map_or(0, |before| trail.ends[before]);
            let is_last = index + 1 == trail.blocks.len();
            let bytes = trail.ends[index] - begin;
            self.touch(trail.scoped(trail.blocks[index]), bytes, if is_last { answer } else { 0 });
        }
        self.evict();
    }

    fn touch(&mut self, hash: u64, bytes: u32, answer: u32) {
        let place = match self.places.get(&hash) {
            Some(&place) => {
                self.unlink(place);
                place
            }
            None => {
                let block = Block { hash, bytes, answer: 0, newer: NONE, older: NONE };
                let place = self.free.pop().unwrap_or_else(|| {
                    self.blocks.push(block);
                    self.blocks.len() as u32 - 1
                });
                self.blocks[place as usize] = block;
                self.places.insert(hash, place);
                self.used += u64::from(bytes);
                place
            }
        };
        if answer > 0 {
            let before = std::mem::replace(&mut self.blocks[place as usize].answer, answer);
            self.used = self.used + u64::from(answer) - u64::from(before);
        }
        let block = &mut self.blocks[place as usize];
        (block.newer, block.older) = (NONE, self.newest);
        match self.newest {
            NONE => self.oldest = place,
            newest => self.blocks[newest as usize].newer = place,
        }
        self.newest = place;
    }

    fn unlink(&mut self, place: u32) {
        let Block { newer, older, .. } = self.blocks[place as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.blocks[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.blocks[older as usize].newer = newer,
        }
    }

    fn evict(&mut self) {
        while (self.used > self.capacity || self.places.len() > self.most_blocks) && self.oldest != NONE {
            let place = self.oldest;
            let Block { hash, bytes, answer, .. } = self.blocks[place as usize];
            self.unlink(place);
            self.places.remove(&hash);
            self.free.push(place);
            self.used -= u64::from(bytes) + u64::from(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::{BlockHasher, HashSeed};

    use super::*;

    fn trail(text: &str) -> Trail {
        let mut hasher = BlockHasher::new(HashSeed(1));
        hasher.update(text.as_bytes());
        Trail::new(&hasher.finish().unwrap(), Box::default())
    }

    #[test]
    fn beginnings_are_held_until_others_take_their_place() {
        let (one, other) = (trail(&"a".repeat(640)), trail(&"b".repeat(640)));
        let mut cache = Cache::new(1_000, 1_000);
        cache.store(&one, 0);
        assert_eq!((cache.held(&one), cache.held(&other), cache.used()), (640, 0, 640));
        cache.store(&other, 0);
        // The end of the older one goes first.
        assert_eq!((cache.held(&other), cache.held(&one), cache.used()), (640, 320, 960));
        cache.set_capacity(64);
        assert_eq!((cache.held(&other), cache.held(&one), cache.used()), (64, 0, 64));
    }

    #[test]
    fn what_is_used_again_stays() {
        let prompts: Vec<Trail> = ["a", "b", "c"].map(|letter| trail(&letter.repeat(640))).into();
        let mut cache = Cache::new(1_280, 1_000);
        cache.store(&prompts[0], 0);
        cache.store(&prompts[1], 0);
        cache.store(&prompts[0], 0);
        cache.store(&prompts[2], 0);
        assert_eq!(prompts.iter().map(|prompt| cache.held(prompt)).collect::<Vec<_>>(), [640, 0, 640]);
    }

    #[test]
    fn a_conversation_that_goes_on_finds_the_answer_too() {
        let spoken = |messages: &[&str]| {
            let mut hasher = BlockHasher::new(HashSeed(1));
            messages.iter().for_each(|message| {
                hasher.update(message.as_bytes());
                hasher.end_message();
            });
            Trail::new(&hasher.finish().unwrap(), Box::default())
        };
        let question = "q".repeat(100);
        let (first, second) = (spoken(&[&question]), spoken(&[&question, &"a".repeat(70), "more"]));
        let mut cache = Cache::new(1 << 20, 1_000);
        cache.store(&first, 60);
        assert_eq!((cache.held(&first), cache.held(&second), cache.used()), (100, 160, 160));
    }
}
