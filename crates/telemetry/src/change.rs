//! Where a prompt stops being the same as an earlier one.

use std::collections::{HashMap, HashSet};

use isotherm_core::BLOCK_BYTES;

use crate::trail::{Part, PartEnd, PartKind, Role, Trail};

/// The first thing in which a request differs from an earlier one of the same tenant, in the order in which it matters to
/// an engine's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// None: it begins with all of the earlier prompt, or is a beginning of it.
    None {
        /// How many bytes they share.
        shared_bytes: u32,
    },
    /// The model.
    Model,
    /// The adapter.
    Adapter,
    /// The salts.
    Salt,
    /// A part of the prompt.
    Part {
        /// Which.
        part: Part,
        /// How many bytes they share before it ends; known to within a block.
        shared_bytes: u32,
    },
}

impl Change {
    /// How a request differs from an earlier one.
    pub fn between(earlier: &Trail, later: &Trail) -> Change {
        match () {
            () if earlier.model != later.model => Change::Model,
            () if earlier.adapter != later.adapter => Change::Adapter,
            () if earlier.salt != later.salt => Change::Salt,
            () => Change::of_prompts(earlier, later),
        }
    }

    /// How its prompt differs, whatever separates the two otherwise.
    pub fn of_prompts(earlier: &Trail, later: &Trail) -> Change {
        let shared_bytes = shared_bytes(earlier, later);
        let equal = earlier.parts.iter().zip(&later.parts).take_while(|(one, other)| one.chain == other.chain).count();
        let shorter = earlier.bytes().min(later.bytes());
        let end = later.parts.get(equal).filter(|_| equal < earlier.parts.len());
        // A text without a template may go on anywhere, which is known to within a block and a 32nd of its length.
        let goes_on = |part: Part| {
            part.kind == PartKind::Prompt && shared_bytes > 0 && shared_bytes + BLOCK_BYTES + shorter / 32 >= shorter
        };
        match end {
            Some(end) if !goes_on(end.part) => Change::Part { part: end.part, shared_bytes },
            _ => Change::None { shared_bytes },
        }
    }

    /// How many bytes the two share.
    pub fn shared_bytes(self) -> u32 {
        match self {
            Change::None { shared_bytes } | Change::Part { shared_bytes, .. } => shared_bytes,
            Change::Model | Change::Adapter | Change::Salt => 0,
        }
    }

    /// Whether it is in parts of this kind.
    pub fn is_in(self, kind: PartKind) -> bool {
        matches!(self, Change::Part { part, .. } if part.kind == kind)
    }

    /// Whether it is in what the application says before users speak.
    pub fn is_in_system(self) -> bool {
        self.is_in(PartKind::System) || matches!(self, Change::Part { part, .. } if part.role == Role::System)
    }
}

/// How many bytes two prompts share at their beginning, as far as the kept blocks and parts tell.
pub fn shared_bytes(one: &Trail, other: &Trail) -> u32 {
    let blocks = one.blocks.iter().zip(&other.blocks).take_while(|(one, other)| one == other).count();
    let parts = one.parts.iter().zip(&other.parts).take_while(|(one, other)| one.chain == other.chain).count();
    let of_blocks = blocks.checked_sub(1).map_or(0, |last| one.ends[last]);
    of_blocks.max(equal_bytes(one, parts))
}

/// How many bytes of a later prompt stand in parts that an earlier one has, too, wherever they stand there.
pub fn bytes_in_equal_parts(earlier: &Trail, later: &HashMap<u64, u32>) -> u32 {
    let mut found = HashSet::new();
    let equal = |part: &&PartEnd| later.contains_key(&part.own) && found.insert(part.own);
    earlier.parts.iter().filter(equal).fold(0, |sum: u32, part| sum.saturating_add(later[&part.own]))
}

/// The parts of a prompt that say something, and how long they are.
pub fn parts_of(trail: &Trail) -> HashMap<u64, u32> {
    let mut begin = 0;
    let mut parts = HashMap::new();
    for part in &trail.parts {
        if part.part.kind != PartKind::Head {
            parts.insert(part.own, part.end - begin);
        }
        begin = part.end;
    }
    parts
}

fn equal_bytes(trail: &Trail, parts: usize) -> u32 {
    parts.checked_sub(1).and_then(|last| trail.parts.get(last)).map_or(0, |part| part.end)
}

#[cfg(test)]
mod tests {
    use isotherm_core::{BlockHasher, HashSeed};

    use super::*;
    use crate::trail::PartEnd;

    /// A prompt of parts, each given as what it is, its message and its text.
    fn trail(parts: &[(PartKind, u16, &str)]) -> Trail {
        let mut hasher = BlockHasher::new(HashSeed(5));
        let mut ends = Vec::new();
        for &(kind, message, text) in parts {
            if kind == PartKind::Head {
                hasher.end_message();
            }
            hasher.update(text.as_bytes());
            let (chain, end) = hasher.so_far();
            ends.push(PartEnd { chain, end, own: 0, part: Part { kind, role: Role::User, message } });
        }
        Trail::new(&hasher.finish().unwrap(), ends.into())
    }

    fn chat(tools: &str, messages: &[&str]) -> Trail {
        let tools = [(PartKind::Tools, Part::NO_MESSAGE, tools)];
        let messages = messages
            .iter()
            .zip(0..)
            .flat_map(|(text, number)| [(PartKind::Head, number, "<user>"), (PartKind::Text, number, *text)]);
        trail(&tools.into_iter().chain(messages).collect::<Vec<_>>())
    }

    #[test]
    fn the_first_difference_is_named() {
        let one = chat("[f]", &["Hello", "there"]);
        let part = |other: &Trail| match Change::between(&one, other) {
            Change::Part { part, .. } => (part.kind, part.message),
            other => panic!("{other:?}"),
        };
        assert_eq!(part(&chat("[g]", &["Hello", "there"])), (PartKind::Tools, Part::NO_MESSAGE));
        assert_eq!(part(&chat("[f]", &["Hello!", "there"])), (PartKind::Text, 0));
        assert_eq!(part(&chat("[f]", &["Hello", "you"])), (PartKind::Text, 1));
        assert_eq!(Change::between(&one, &Trail { model: 1, ..one.clone() }), Change::Model);
        assert_eq!(Change::between(&one, &Trail { salt: 1, ..one.clone() }), Change::Salt);
    }

    #[test]
    fn a_conversation_that_goes_on_has_not_changed() {
        let (first, second) = (chat("[f]", &["Hello"]), chat("[f]", &["Hello", "Hi.", "And now?"]));
        assert_eq!(Change::between(&first, &second), Change::None { shared_bytes: first.bytes() });
        assert_eq!(Change::between(&second, &first), Change::None { shared_bytes: first.bytes() });
        let prompt = |text: &str| trail(&[(PartKind::Prompt, Part::NO_MESSAGE, text)]);
        let long = "word ".repeat(1_000);
        let change = Change::between(&prompt(&long), &prompt(&(long.clone() + "and on")));
        assert!(matches!(change, Change::None { shared_bytes: 4_900.. }), "{change:?}");
        assert!(matches!(Change::between(&prompt(&long), &prompt("other")), Change::Part { shared_bytes: 0, .. }));
    }
}
