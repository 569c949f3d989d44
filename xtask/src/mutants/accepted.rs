//! The changes of `core` that no test notices and that none has to, each with its reason.

use std::fmt::Write;

/// A change that may survive.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// Its file in `crates/core/src`.
    pub(crate) file: &'static str,
    /// As cargo-mutants names it, without the line.
    pub(crate) what: &'static str,
    /// In how many places of the function.
    pub(crate) times: usize,
    /// Why it makes no difference, or none that a test could see.
    pub(crate) reason: &'static str,
}

pub(crate) const ACCEPTED: &[Accepted] = &[
    once(
        "adaptive/blocks.rs",
        "replace > with >= in BlockHasher::update",
        "A block of which nothing is there yet is filled like one that is begun: the same blocks, copied once more.",
    ),
    once(
        "index.rs",
        "replace < with > in PrefixIndex::look_up",
        "Where a prompt leaves a run, no other run begins: the next step ends the walk as well.",
    ),
    once(
        "index.rs",
        "replace < with > in PrefixIndex::withdraw",
        "Where a prompt leaves a run, no other run begins: the next step ends the walk as well.",
    ),
    once(
        "index.rs",
        "replace < with <= in PrefixIndex::is_full",
        "Nobody holds as many blocks as the number that stands for a capacity that is not known.",
    ),
    once(
        "index.rs",
        "replace > with >= in PrefixIndex::keep_within_budget",
        "Forgets one run earlier where the budget is used to the byte.",
    ),
    once(
        "placement.rs",
        "replace + with - in uniform",
        "Differs for one hash in 2^53, which nobody can find for a test.",
    ),
    once(
        "variant/choose.rs",
        "replace match guard same == weight with false in Weights::note",
        "Equal weights taken for several: the same order, computed more slowly.",
    ),
    once("variant/choose/adaptive.rs", "replace | with ^ in order_of_equals", "The two halves share no bit."),
    once(
        "variant/choose/least_outstanding.rs",
        "replace < with <= in pick",
        "Whoever stands at the cursor is compared twice, with itself the second time.",
    ),
    once(
        "variant/choose/random.rs",
        "replace < with <= in pick",
        "Differs for one draw in 2^53: the one that falls on the border of two instances.",
    ),
];

/// A change in one place.
const fn once(file: &'static str, what: &'static str, reason: &'static str) -> Accepted {
    Accepted { file, what, times: 1, reason }
}

/// Each with its reason below it.
pub(crate) fn list() -> String {
    let mut text = String::new();
    for Accepted { file, what, times, reason } in ACCEPTED {
        let times = if *times == 1 { String::new() } else { format!(" ({times} times)") };
        let _ = writeln!(text, "{file}: {what}{times}\n  {reason}");
    }
    text
}
