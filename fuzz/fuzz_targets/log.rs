//! Looks for bytes that break `check_log`.

#![no_main]

use isotherm_fuzz::log::check_log;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_log(bytes));
