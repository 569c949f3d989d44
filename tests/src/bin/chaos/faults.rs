//! What goes wrong, chosen by numbers that follow from the seed.

/// Numbers that follow from a seed (splitmix64).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From `least` to one less than `bound`.
    pub(crate) fn between(&mut self, least: u64, bound: u64) -> u64 {
        least + self.next() % (bound - least)
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.next().is_multiple_of(count)
    }
}

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disturbance {
    Kill,
    Restart,
    Engine(&'static str, &'static str),
    Reload,
    Scale,
}

/// Faults of engines, each of which ends by itself, as they are told to the emulator.
const ENGINE_FAULTS: [(&str, &str); 7] = [
    ("hang before the head", r#"{"requests": {"fault": "hang_before_head"}, "next": 3, "for_ms": 1500}"#),
    ("hang after the head", r#"{"requests": {"fault": "hang_after_head"}, "next": 3, "for_ms": 1500}"#),
    ("die after some tokens", r#"{"requests": {"fault": "die_after_tokens", "tokens": 2}, "next": 4, "for_ms": 1500}"#),
    ("answer 503", r#"{"requests": {"fault": "status", "code": 503}, "next": 8, "for_ms": 1500}"#),
    ("answer 429", r#"{"requests": {"fault": "status", "code": 429, "retry_after": 1}, "next": 8, "for_ms": 1500}"#),
    ("an error as first event", r#"{"requests": {"fault": "error_event", "code": 500}, "next": 8, "for_ms": 1500}"#),
    ("ten times slower", r#"{"slow_factor": 10, "for_ms": 1500}"#),
];

impl Disturbance {
    pub(crate) fn pick(random: &mut Random) -> Disturbance {
        match random.between(0, 12) {
            0 => Disturbance::Kill,
            1 | 2 => Disturbance::Restart,
            3 => Disturbance::Reload,
            4 => Disturbance::Scale,
            _ => {
                let (name, fault) = ENGINE_FAULTS[random.between(0, ENGINE_FAULTS.len() as u64) as usize];
                Disturbance::Engine(name, fault)
            }
        }
    }
}
