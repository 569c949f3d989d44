//! A process that is killed in the middle of its work: what it was told is written is there, and nothing is half done.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use isotherm_store::{Records, Store, StoreError, Table};

const ONE: Table<u64> = Table::named("one");
const OTHER: Table<u64> = Table::named("other");
const DIRECTORY: &str = "STORE_TEST_DIRECTORY";

/// The work of the process that is killed: counts in two tables at once, and tells each number once it is written.
#[test]
fn counting() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let store = Store::open(directory.as_ref()).unwrap();
    for number in 0.. {
        store
            .write::<_, StoreError>(|transaction| {
                transaction.put(&ONE, "number", &number)?;
                transaction.put(&OTHER, "number", &number)
            })
            .unwrap();
        println!("written {number}");
    }
}

#[test]
fn what_was_written_survives_a_kill_and_nothing_is_half_done() {
    let directory = tempfile::tempdir().unwrap();
    for told_before in [1, 40, 5] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "counting", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let told = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("written ")?.parse().ok());
        let last: u64 = told.take(told_before).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let number = |table| store.read(|snapshot| snapshot.get(table, "number")).unwrap().unwrap();
        assert_eq!(number(&ONE), number(&OTHER));
        assert!(number(&ONE) >= last, "{} was written, and {} is there", last, number(&ONE));
    }
}
