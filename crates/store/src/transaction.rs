//! Reading several tables at one moment, and changing several at once or not at all.

use redb::{ReadTransaction, ReadableTable, TableError, WriteTransaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{StoreError, Table};

/// Tables that can be read: those of a [`Snapshot`], or those of a [`Transaction`] with what it changed so far.
pub trait Records {
    /// The record of this key, if there is one.
    fn get<T: DeserializeOwned>(&self, table: &Table<T>, key: &str) -> Result<Option<T>, StoreError>;

    /// Every record whose key begins with `prefix`, with its key, in byte order of the keys.
    fn scan<T: DeserializeOwned>(&self, table: &Table<T>, prefix: &str) -> Result<Vec<(String, T)>, StoreError>;

    /// How many records have a key that begins with `prefix`. None of them is read.
    fn count<T>(&self, table: &Table<T>, prefix: &str) -> Result<u64, StoreError>;
}

/// All tables as they were at one moment.
pub struct Snapshot(pub(crate) ReadTransaction);

impl Records for Snapshot {
    fn get<T: DeserializeOwned>(&self, table: &Table<T>, key: &str) -> Result<Option<T>, StoreError> {
        match self.0.open_table(table.definition()) {
            Ok(open) => get(&open, table, key),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(StoreError::storage(error)),
        }
    }

    fn scan<T: DeserializeOwned>(&self, table: &Table<T>, prefix: &str) -> Result<Vec<(String, T)>, StoreError> {
        match self.0.open_table(table.definition()) {
            Ok(open) => scan(&open, table, prefix),
            Err(TableError::TableDoesNotExist(_)) => Ok(Vec::new()),
            Err(error) => Err(StoreError::storage(error)),
        }
    }

    fn count<T>(&self, table: &Table<T>, prefix: &str) -> Result<u64, StoreError> {
        match self.0.open_table(table.definition()) {
            Ok(open) => open.how_many(prefix),
            Err(TableError::TableDoesNotExist(_)) => Ok(0),
            Err(error) => Err(StoreError::storage(error)),
        }
    }
}

/// Changes of several tables that are kept together or not at all. There is one at a time.
pub struct Transaction(pub(crate) WriteTransaction);

impl Transaction {
    /// Keeps a record under this key, in place of the one that was there.
    pub fn put<T: Serialize>(&self, table: &Table<T>, key: &str, record: &T) -> Result<(), StoreError> {
        let json = serde_json::to_vec(record).map_err(|source| unreadable(table, key, source))?;
        let mut open = self.0.open_table(table.definition()).map_err(StoreError::storage)?;
        open.insert(key, json.as_slice()).map_err(StoreError::storage)?;
        Ok(())
    }

    /// Takes a record away; tells whether there was one.
    pub fn remove<T>(&self, table: &Table<T>, key: &str) -> Result<bool, StoreError> {
        let mut open = self.0.open_table(table.definition()).map_err(StoreError::storage)?;
        let removed = open.remove(key).map_err(StoreError::storage)?;
        Ok(removed.is_some())
    }
}

impl Records for Transaction {
    fn get<T: DeserializeOwned>(&self, table: &Table<T>, key: &str) -> Result<Option<T>, StoreError> {
        let open = self.0.open_table(table.definition()).map_err(StoreError::storage)?;
        get(&open, table, key)
    }

    fn scan<T: DeserializeOwned>(&self, table: &Table<T>, prefix: &str) -> Result<Vec<(String, T)>, StoreError> {
        let open = self.0.open_table(table.definition()).map_err(StoreError::storage)?;
        scan(&open, table, prefix)
    }

    fn count<T>(&self, table: &Table<T>, prefix: &str) -> Result<u64, StoreError> {
        let open = self.0.open_table(table.definition()).map_err(StoreError::storage)?;
        open.how_many(prefix)
    }
}

type Open<'a> = &'a dyn Readable;

/// What both kinds of open tables offer.
trait Readable {
    fn json(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;
    fn json_from(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, StoreError>;
    fn how_many(&self, prefix: &str) -> Result<u64, StoreError>;
}

impl<R: ReadableTable<&'static str, &'static [u8]>> Readable for R {
    fn json(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let found = ReadableTable::get(self, key).map_err(StoreError::storage)?;
        Ok(found.map(|json| json.value().to_vec()))
    }

    fn json_from(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let mut found = Vec::new();
        for entry in self.range(prefix..).map_err(StoreError::storage)? {
            let (key, json) = entry.map_err(StoreError::storage)?;
            if !key.value().starts_with(prefix) {
                break;
            }
            found.push((key.value().to_owned(), json.value().to_vec()));
        }
        Ok(found)
    }

    fn how_many(&self, prefix: &str) -> Result<u64, StoreError> {
        let mut count = 0;
        for entry in self.range(prefix..).map_err(StoreError::storage)? {
            let (key, _) = entry.map_err(StoreError::storage)?;
            if !key.value().starts_with(prefix) {
                break;
            }
            count += 1;
        }
        Ok(count)
    }
}

fn get<T: DeserializeOwned>(open: Open<'_>, table: &Table<T>, key: &str) -> Result<Option<T>, StoreError> {
    open.json(key)?.map(|json| record(table, key, &json)).transpose()
}

fn scan<T: DeserializeOwned>(open: Open<'_>, table: &Table<T>, prefix: &str) -> Result<Vec<(String, T)>, StoreError> {
    let found = open.json_from(prefix)?.into_iter();
    found
        .map(|(key, json)| {
            let record = record(table, &key, &json)?;
            Ok((key, record))
        })
        .collect()
}

fn record<T: DeserializeOwned>(table: &Table<T>, key: &str, json: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(json).map_err(|source| unreadable(table, key, source))
}

fn unreadable<T>(table: &Table<T>, key: &str, source: serde_json::Error) -> StoreError {
    StoreError::Record { table: table.name(), key: key.to_owned(), source }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Snapshot")
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Transaction")
    }
}
