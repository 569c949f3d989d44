//! Looks for bytes that break `check_response`.

#![no_main]

use isotherm_fuzz::wire::check_response;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_response(bytes));
