//! Looks for bytes that break `check_metrics_page`.

#![no_main]

use isotherm_fuzz::metrics_page::check_metrics_page;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_metrics_page(bytes));
