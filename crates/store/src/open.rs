//! The store itself: how its file is made, judged and opened.

use std::any::Any;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::backends::InMemoryBackend;
use redb::{Builder, Database, DatabaseError, ReadableDatabase, StorageBackend, StorageError};

use crate::transaction::Records;
use crate::{OpenError, Snapshot, StoreError, Table, Transaction};

/// The format of the records that this version writes. A higher one in a file means that a newer version wrote it.
const FORMAT: u64 = 1;

const FORMAT_TABLE: Table<u64> = Table::named("format");
const FORMAT_KEY: &str = "format";

const FILE: &str = "isotherm.redb";
const UNFINISHED_FILE: &str = "isotherm.redb.unfinished";
const LOCK_FILE: &str = "isotherm.lock";

/// Memory for pages of the file: stores hold some thousand small records.
const CACHE_BYTES: usize = 16 << 20;

/// Records on disk. One process has a store open at a time; in it, any number of threads may share it.
#[derive(Debug)]
pub struct Store {
    database: Database,
    /// Holds the data directory for this process until it is dropped.
    _lock: File,
}

impl Store {
    /// Opens the store of a data directory; makes both if they are not there, readable for this user alone.
    ///
    /// A file that is damaged or of a newer format is refused before anything is written to it: what opening may
    /// change (a process killed in the middle of a transaction leaves work) is tried on a copy in memory first.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; the messages say what to do.
    pub fn open(directory: &Path) -> Result<Store, OpenError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|source| unusable(directory, source))?;
        let lock = lock(directory)?;
        let path = directory.join(FILE);
        if path.try_exists().map_err(|source| unusable(&path, source))? {
            judge(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(|source| unusable(&path, source))?;
        } else {
            make(directory, &path)?;
        }
        let database = builder().open(&path).map_err(|error| refusal(&path, error))?;
        Ok(Store { database, _lock: lock })
    }

    /// Reads all tables as they are now; changes made meanwhile are not seen and need not wait.
    ///
    /// # Errors
    ///
    /// Those of `read`, and those of the disk.
    pub fn read<T, E: From<StoreError>>(&self, read: impl FnOnce(&Snapshot) -> Result<T, E>) -> Result<T, E> {
        let snapshot = self.database.begin_read().map_err(StoreError::storage)?;
        read(&Snapshot(snapshot))
    }

    /// Changes records; waits for another change to end. When this returns `Ok` the changes are on the disk; with
    /// `Err`, or after a crash, none of them was made.
    ///
    /// # Errors
    ///
    /// Those of `change`, and those of the disk.
    pub fn write<T, E: From<StoreError>>(&self, change: impl FnOnce(&Transaction) -> Result<T, E>) -> Result<T, E> {
        let transaction = Transaction(self.database.begin_write().map_err(StoreError::storage)?);
        match change(&transaction) {
            Ok(value) => {
                transaction.0.commit().map_err(StoreError::storage)?;
                Ok(value)
            }
            Err(error) => {
                transaction.0.abort().map_err(StoreError::storage)?;
                Err(error)
            }
        }
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn lock(directory: &Path) -> Result<File, OpenError> {
    let path = directory.join(LOCK_FILE);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(|source| unusable(&path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: directory.to_owned() }),
        Err(TryLockError::Error(source)) => Err(unusable(&path, source)),
    }
}

/// Makes an empty store under another name and moves it into place whole, so that no crash leaves half of one.
fn make(directory: &Path, path: &Path) -> Result<(), OpenError> {
    let unfinished = directory.join(UNFINISHED_FILE);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&unfinished);
    drop(file.map_err(|source| unusable(&unfinished, source))?);
    let database = builder().create(&unfinished).map_err(|error| refusal(&unfinished, error))?;
    mark(&database).map_err(|error| unusable(&unfinished, io::Error::other(error)))?;
    database.close().map_err(|error| refusal(&unfinished, error))?;
    fs::rename(&unfinished, path).map_err(|source| unusable(path, source))?;
    let directory_file = File::open(directory).map_err(|source| unusable(directory, source))?;
    directory_file.sync_all().map_err(|source| unusable(directory, source))
}

fn mark(database: &Database) -> Result<(), StoreError> {
    let transaction = Transaction(database.begin_write().map_err(StoreError::storage)?);
    transaction.put(&FORMAT_TABLE, FORMAT_KEY, &FORMAT)?;
    transaction.0.commit().map_err(StoreError::storage)
}

/// Whether the file is a healthy store of a known format; found out on a copy, so that nothing is written to it.
fn judge(path: &Path) -> Result<(), OpenError> {
    let bytes = fs::read(path).map_err(|source| unusable(path, source))?;
    // The database's own assertions may panic on bytes that it never wrote.
    let judged = catch_unwind(AssertUnwindSafe(|| format_of(&bytes)));
    let damaged = |reason: String| OpenError::Damaged { path: path.to_owned(), reason };
    match judged {
        Ok(Ok(Some(FORMAT))) => Ok(()),
        Ok(Ok(Some(found))) => Err(OpenError::Newer { path: path.to_owned(), found, known: FORMAT }),
        Ok(Ok(None)) => Err(damaged(String::from("it has no format mark"))),
        Ok(Err(error)) => Err(damaged(error.to_string())),
        Err(panic) => Err(damaged(panic_message(panic.as_ref()))),
    }
}

fn format_of(bytes: &[u8]) -> Result<Option<u64>, StoreError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let copy = InMemoryBackend::new();
    let filled = copy.set_len(bytes.len() as u64).and_then(|()| copy.write(0, bytes));
    filled.map_err(|error| StoreError::storage(StorageError::Corrupted(format!("{error:?}"))))?;
    let database =
        builder().set_check_integrity_on_open(true).create_with_backend(copy).map_err(StoreError::storage)?;
    Snapshot(database.begin_read().map_err(StoreError::storage)?).get(&FORMAT_TABLE, FORMAT_KEY)
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("its content makes no sense").to_owned()
}

fn refusal(path: &Path, error: DatabaseError) -> OpenError {
    match error {
        DatabaseError::Storage(StorageError::Io(source)) => unusable(path, source),
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            OpenError::InUse { path: path.to_owned() }
        }
        error => OpenError::Damaged { path: path.to_owned(), reason: error.to_string() },
    }
}

fn unusable(path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { path: PathBuf::from(path), source }
}
