//! What a store promises: order, all or nothing, there again after a crash, and no word written to a file it refuses.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{OpenError, Records, Store, StoreError, Table};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Fruit {
    colour: String,
    #[serde(default)]
    seeds: u32,
}

const FRUITS: Table<Fruit> = Table::named("fruits");
const COUNTS: Table<u64> = Table::named("counts");

fn fruit(colour: &str) -> Fruit {
    Fruit { colour: colour.to_owned(), seeds: 3 }
}

fn file_of(directory: &Path) -> PathBuf {
    directory.join("isotherm.redb")
}

fn store_with_a_fruit(directory: &Path) -> Store {
    let store = Store::open(directory).unwrap();
    store.write(|transaction| transaction.put(&FRUITS, "apple", &fruit("red"))).unwrap();
    store
}

#[test]
fn records_are_scanned_in_the_order_of_their_keys() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    store
        .write::<_, StoreError>(|transaction| {
            for key in ["b/2", "a/1", "b/1", "c/1"] {
                transaction.put(&FRUITS, key, &fruit(key))?;
            }
            Ok(())
        })
        .unwrap();
    let keys = |prefix: &str| -> Vec<String> {
        let found = store.read(|snapshot| snapshot.scan(&FRUITS, prefix)).unwrap();
        found.into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(keys("b/"), ["b/1", "b/2"]);
    assert_eq!(keys(""), ["a/1", "b/1", "b/2", "c/1"]);
    assert_eq!(keys("d"), Vec::<String>::new());
    let count = |prefix: &str| store.read(|snapshot| snapshot.count(&FRUITS, prefix)).unwrap();
    assert_eq!((count("b/"), count(""), count("d")), (2, 4, 0));
    assert_eq!(store.write::<_, StoreError>(|transaction| transaction.count(&FRUITS, "b/")).unwrap(), 2);
    assert_eq!(store.read(|snapshot| snapshot.count(&COUNTS, "")).unwrap(), 0);
}

#[test]
fn a_change_of_several_tables_is_made_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_with_a_fruit(directory.path());
    let failed = store.write::<(), StoreError>(|transaction| {
        transaction.put(&COUNTS, "apples", &1)?;
        transaction.remove(&FRUITS, "apple")?;
        assert_eq!(transaction.get(&FRUITS, "apple")?, None, "a transaction sees its own changes");
        transaction.get(&Table::<u64>::named("fruits"), "pear")?;
        transaction.put(&FRUITS, "pear", &fruit("green"))?;
        transaction.get(&Table::<u64>::named("fruits"), "pear").map(|_| ())
    });
    let message = failed.unwrap_err().to_string();
    assert!(message.contains("\"pear\" of table fruits"), "{message}");
    store
        .read::<_, StoreError>(|snapshot| {
            assert_eq!(snapshot.get(&FRUITS, "apple")?, Some(fruit("red")));
            assert_eq!(snapshot.get(&FRUITS, "pear")?, None);
            assert_eq!(snapshot.get(&COUNTS, "apples")?, None);
            Ok(())
        })
        .unwrap();
}

#[test]
fn what_was_written_is_there_when_the_file_is_taken_without_closing_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_with_a_fruit(directory.path());
    let copy = tempfile::tempdir().unwrap();
    fs::copy(file_of(directory.path()), file_of(copy.path())).unwrap();
    drop(store);
    let reopened = Store::open(copy.path()).unwrap();
    assert_eq!(reopened.read(|snapshot| snapshot.get(&FRUITS, "apple")).unwrap(), Some(fruit("red")));
}

#[test]
fn an_interrupted_creation_is_begun_anew() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("isotherm.redb.unfinished"), b"half a file").unwrap();
    drop(store_with_a_fruit(directory.path()));
    assert!(!directory.path().join("isotherm.redb.unfinished").exists());
}

#[test]
fn only_one_store_is_open_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let first = Store::open(directory.path()).unwrap();
    assert!(matches!(Store::open(directory.path()), Err(OpenError::InUse { .. })));
    drop(first);
    Store::open(directory.path()).unwrap();
}

#[test]
fn the_file_is_for_its_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("deep/data");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    drop(Store::open(&data).unwrap());
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&file_of(&data)), 0o600);
    fs::set_permissions(file_of(&data), fs::Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(&data).unwrap());
    assert_eq!(mode(&file_of(&data)), 0o600);
}

/// Opens a file that must be refused, and checks that not one byte of it changed.
fn refused(content: &[u8]) -> OpenError {
    let directory = tempfile::tempdir().unwrap();
    fs::write(file_of(directory.path()), content).unwrap();
    let refused = Store::open(directory.path());
    assert_eq!(fs::read(file_of(directory.path())).unwrap(), content, "the file was left as it was");
    refused.unwrap_err()
}

#[test]
fn damaged_files_are_refused_and_left_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    drop(store_with_a_fruit(directory.path()));
    let whole = fs::read(file_of(directory.path())).unwrap();
    let mut overwritten = whole.clone();
    for byte in overwritten.iter_mut().skip(4_096).take(200_000) {
        *byte ^= 0x5a;
    }
    let cases: [(&str, &[u8]); 5] = [
        ("empty", b""),
        ("another file", b"PK\x03\x04 not a database at all"),
        ("truncated", &whole[..whole.len() / 3]),
        ("truncated to its header", &whole[..512]),
        ("overwritten", &overwritten),
    ];
    for (case, content) in cases {
        let error = refused(content);
        assert!(matches!(error, OpenError::Damaged { .. }), "{case}: {error}");
        assert!(error.to_string().contains("left untouched; put a copy from a backup"), "{case}: {error}");
    }
}

#[test]
fn a_newer_format_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_with_a_fruit(directory.path());
    store.write(|transaction| transaction.put(&Table::<u64>::named("format"), "format", &7)).unwrap();
    drop(store);
    let error = refused(&fs::read(file_of(directory.path())).unwrap());
    let message = error.to_string();
    assert!(message.contains("has format 7, and this version knows formats up to 1"), "{message}");
}
