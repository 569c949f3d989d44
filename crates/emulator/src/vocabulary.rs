//! Plausible sentences, deterministic and cheap: what the emulated model has to say.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// Appends sentences until `text` has at least `characters` characters.
pub(crate) fn speak(random: &mut Pcg64Mcg, characters: usize, text: &mut String) {
    while text.len() < characters {
        sentence(random, text);
    }
}

/// A single word, for values of tool arguments.
pub(crate) fn word(random: &mut Pcg64Mcg) -> &'static str {
    pick(random, &NOUNS)
}

fn sentence(random: &mut Pcg64Mcg, text: &mut String) {
    if !text.is_empty() {
        text.push(' ');
    }
    let pattern = pick(random, &PATTERNS);
    for (index, part) in pattern.iter().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        text.push_str(match part {
            Part::Opening => pick(random, &OPENINGS),
            Part::Link => pick(random, &LINKS),
            Part::Adjective => pick(random, &ADJECTIVES),
            Part::Noun => pick(random, &NOUNS),
            Part::Verb => pick(random, &VERBS),
            Part::Adverb => pick(random, &ADVERBS),
        });
    }
    text.push('.');
}

fn pick<T: Copy>(random: &mut Pcg64Mcg, choices: &[T]) -> T {
    choices[random.random_range(0..choices.len())]
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Opening,
    Link,
    Adjective,
    Noun,
    Verb,
    Adverb,
}

use Part::{Adjective, Adverb, Link, Noun, Opening, Verb};

const PATTERNS: [&[Part]; 6] = [
    &[Opening, Noun, Verb, Link, Noun],
    &[Opening, Adjective, Noun, Verb, Link, Adjective, Noun],
    &[Opening, Noun, Adverb, Verb, Link, Noun],
    &[Opening, Adjective, Noun, Verb, Link, Noun, Adverb],
    &[Opening, Noun, Verb, Link, Adjective, Noun, Adverb],
    &[Opening, Adjective, Adjective, Noun, Verb, Link, Noun],
];

const OPENINGS: [&str; 8] = ["The", "Every", "This", "Each", "One", "Another", "That", "Such a"];

const LINKS: [&str; 10] = ["the", "a", "its", "every", "this", "another", "one", "that", "each", "no"];

const ADJECTIVES: [&str; 24] = [
    "warm", "cold", "long", "short", "careful", "bright", "quiet", "steady", "simple", "recent", "early", "distant",
    "common", "rare", "naïve", "familiar", "gentle", "narrow", "broad", "patient", "honest", "curious", "sturdy",
    "clear",
];

const NOUNS: [&str; 40] = [
    "answer", "question", "river", "garden", "document", "policy", "engine", "window", "letter", "station", "summer",
    "winter", "market", "bridge", "forest", "teacher", "student", "machine", "library", "harbour", "mountain",
    "kitchen", "painter", "story", "number", "signal", "village", "journey", "café", "lantern", "orchard", "compass",
    "meadow", "notebook", "sailor", "workshop", "evening", "morning", "reader", "writer",
];

const VERBS: [&str; 24] = [
    "follows",
    "keeps",
    "finds",
    "changes",
    "explains",
    "remembers",
    "carries",
    "opens",
    "closes",
    "reaches",
    "builds",
    "shows",
    "warms",
    "crosses",
    "answers",
    "describes",
    "supports",
    "improves",
    "measures",
    "repeats",
    "visits",
    "holds",
    "connects",
    "observes",
];

const ADVERBS: [&str; 12] = [
    "slowly",
    "often",
    "rarely",
    "always",
    "quietly",
    "again",
    "soon",
    "today",
    "carefully",
    "together",
    "steadily",
    "gladly",
];

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn equal_seeds_say_equal_things() {
        let say = |seed| {
            let mut text = String::new();
            speak(&mut Pcg64Mcg::seed_from_u64(seed), 300, &mut text);
            text
        };
        assert_eq!(say(1), say(1));
        assert_ne!(say(1), say(2));
        assert!(say(1).len() >= 300 && say(1).ends_with('.'));
    }
}
