//! What must hold for any bytes from outside. The fuzz targets look for bytes for which it does not; the tests of the
//! crates replay those that were once found, and a few by hand, from `corpus`. Each file here needs one crate only, so that
//! its tests can take the file in.

pub mod config;
pub mod log;
pub mod metrics_page;
pub mod trace;
pub mod wire;
