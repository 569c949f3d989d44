//! One file per command.

pub(crate) mod analyze;
pub(crate) mod bench;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod engine;
pub(crate) mod explain;
pub(crate) mod instances;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod top;
pub(crate) mod up;
