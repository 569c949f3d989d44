//! Looks for bytes that break `check_frames`.

#![no_main]

use isotherm_fuzz::wire::check_frames;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_frames(bytes));
