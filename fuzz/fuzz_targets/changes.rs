//! Looks for bytes that break `check_changes`; begin from the corpus of `describe`.

#![no_main]

use isotherm_fuzz::wire::check_changes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_changes(bytes));
