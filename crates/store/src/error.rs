//! What can go wrong with a store, said so that a person can act on it.

use std::io;
use std::path::PathBuf;

/// Why a store could not be opened. The file on the disk is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory or a file in it can't be read, made or changed.
    #[error("can't use {path}: {source}; the data directory must be readable and writable for the user that runs this")]
    Io {
        /// What could not be used.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process has the store open.
    #[error("{path} is in use by another process; stop that one, or choose another data directory")]
    InUse {
        /// The data directory.
        path: PathBuf,
    },
    /// The file is no store, or its content is broken.
    #[error(
        "{path} is damaged ({reason}) and was left untouched; put a copy from a backup in its place, or move it away \
         to start empty"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The file was written by a version of this program that knows more.
    #[error(
        "{path} has format {found}, and this version knows formats up to {known}; it was left untouched: start the \
         newer version that wrote it, or move the file away to start empty"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format that it has.
        found: u64,
        /// The newest format that this version reads.
        known: u64,
    },
}

/// Why records could not be read or written. Nothing of the transaction was kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk, or the file on it.
    #[error("the store can't be used: {0}")]
    Storage(#[source] Box<redb::Error>),
    /// A record is not of the shape that its table should hold.
    #[error("record {key:?} of table {table} can't be read: {source}")]
    Record {
        /// The table's name.
        table: &'static str,
        /// The record's key.
        key: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl StoreError {
    pub(crate) fn storage(error: impl Into<redb::Error>) -> StoreError {
        StoreError::Storage(Box::new(error.into()))
    }
}
