//! Records on disk: typed, transactional, and there again after a crash.
//!
//! A [`Store`] is one file in a data directory. It holds named [`Table`]s whose records are JSON, so that a record of
//! an older version still reads when a field has been added (with `#[serde(default)]`). Several tables are read in one
//! [`Snapshot`] and changed in one [`Transaction`]; a transaction that returned is on the disk.

mod error;
mod open;
mod table;
mod transaction;

pub use error::{OpenError, StoreError};
pub use open::Store;
pub use table::Table;
pub use transaction::{Records, Snapshot, Transaction};

#[cfg(test)]
mod tests;
