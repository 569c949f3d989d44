//! Looks for bytes that break `check_event_stream`.

#![no_main]

use isotherm_fuzz::wire::check_event_stream;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_event_stream(bytes));
