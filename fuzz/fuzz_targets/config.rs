//! Looks for bytes that break `check_config`.

#![no_main]

use isotherm_fuzz::config::check_config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_config(bytes));
