//! Looks for bytes that break `check_describe`.

#![no_main]

use isotherm_fuzz::wire::check_describe;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_describe(bytes));
