//! Looks for bytes that break `check_trace`.

#![no_main]

use isotherm_fuzz::trace::check_trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_trace(bytes));
