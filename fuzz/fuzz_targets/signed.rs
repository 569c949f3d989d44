//! Looks for bytes that break `check_signed`.

#![no_main]

use isotherm_fuzz::wire::check_signed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_signed(bytes));
