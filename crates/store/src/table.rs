//! Named tables of one kind of record.

use std::fmt;
use std::marker::PhantomData;

use redb::TableDefinition;

/// A table: keys are text, in byte order; each record is a `T`, kept as JSON.
pub struct Table<T> {
    name: &'static str,
    record: PhantomData<fn() -> T>,
}

impl<T> Table<T> {
    /// The table of this name. A table comes to be with its first record.
    pub const fn named(name: &'static str) -> Table<T> {
        Table { name, record: PhantomData }
    }

    /// The table's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn definition(&self) -> TableDefinition<'static, &'static str, &'static [u8]> {
        TableDefinition::new(self.name)
    }
}

impl<T> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Table").field(&self.name).finish()
    }
}
