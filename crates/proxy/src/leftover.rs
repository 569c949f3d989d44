//! Gives memory back to the system that large bodies have left behind.
//!
//! glibc keeps what is freed, and keeps it for good once a small allocation stands behind it: a burst of prompts of 1 MB
//! would stay in memory. It could return each large allocation at once, but then each prompt of 1 MB has its memory mapped
//! and cleared anew, which costs as much as all else that is done with it. So it is asked for once, when the burst is over.

use std::cell::Cell;

/// A body from this length on leaves something behind that is worth asking for.
const LARGE: usize = 128 * 1024;
/// For how many looks in a row there have to be no large bodies.
const QUIET: u32 = 5;

/// What the bodies of one thread have left behind.
#[derive(Debug, Default)]
pub(crate) struct Leftover {
    /// How many more looks without large bodies have to follow; 0: nothing is left behind.
    quiet: Cell<u32>,
}

impl Leftover {
    /// Notes a body's length.
    pub(crate) fn note(&self, length: usize) {
        if length >= LARGE {
            self.quiet.set(QUIET);
        }
    }

    /// Looks whether the time has come, and then gives back what is not used.
    pub(crate) fn look(&self) {
        if self.is_due() {
            give_back();
        }
    }

    fn is_due(&self) -> bool {
        let quiet = self.quiet.get();
        self.quiet.set(quiet.saturating_sub(1));
        quiet == 1
    }
}

/// Other C libraries give large allocations back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn give_back() {
    // SAFETY: malloc_trim(3) may be called at any time by any thread (it takes the allocator's locks), and touches only
    // memory that is not allocated.
    #[expect(unsafe_code, reason = "there is no other way to ask the C library")]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_when_large_bodies_have_ceased() {
        let leftover = Leftover::default();
        let due = || (0..2 * QUIET).filter(|_| leftover.is_due()).count();
        leftover.note(LARGE - 1);
        assert_eq!(due(), 0);
        leftover.note(LARGE);
        assert!((1..QUIET).all(|_| !leftover.is_due()));
        // Another one puts it off.
        leftover.note(LARGE);
        leftover.note(1);
        assert!((1..QUIET).all(|_| !leftover.is_due()));
        assert_eq!(due(), 1);
        assert_eq!(due(), 0);
    }
}
