//! `docs/reliability.md` and `docs/peers-bugs.md` name tests; they exist, and no number of the lists is missing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The numbers of the list; those between are not used.
const NUMBERS: [u32; 47] = [
    1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33,
    35, 36, 37, 39, 40, 41, 42, 43, 44, 45, 46, 48, 49, 50, 51, 52,
];

/// The numbers up to 105 that the list of other routers' bugs does not use.
const UNUSED_BUGS: [u32; 19] = [4, 9, 13, 19, 21, 26, 29, 39, 44, 51, 54, 62, 66, 70, 79, 89, 92, 99, 101];

#[test]
fn every_number_has_a_row_and_every_test_that_is_named_exists() {
    let page = read("docs/reliability.md");
    let numbers: Vec<u32> = page.lines().filter_map(|line| line.strip_prefix("| T").and_then(number)).collect();
    assert_eq!(numbers, NUMBERS);
    assert!(missing(&page, 150).is_empty(), "the page names tests that do not exist: {:?}", missing(&page, 150));
}

#[test]
fn every_bug_of_others_has_a_row_with_a_test_or_a_reason() {
    let page = read("docs/peers-bugs.md");
    let numbers: Vec<u32> = page.lines().filter_map(|line| line.strip_prefix("| ").and_then(number)).collect();
    let all: Vec<u32> = (1..=105).filter(|number| !UNUSED_BUGS.contains(number)).collect();
    assert_eq!(numbers, all);
    assert!(missing(&page, 90).is_empty(), "the page names tests that do not exist: {:?}", missing(&page, 90));
    for row in page.lines().filter(|line| line.strip_prefix("| ").and_then(number).is_some()) {
        let cells: Vec<&str> = row.split(" | ").collect();
        match cells[2] {
            "shown" | "in part" => assert!(cells[3].contains('`'), "{row}"),
            "out of scope" => assert!(!cells[3].starts_with('`'), "a reason comes first: {row}"),
            other => panic!("{other} is no state: {row}"),
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).expect("the page")
}

fn number(cell: &str) -> Option<u32> {
    cell.split(' ').next()?.parse().ok()
}

/// The tests that a page names and that are not there. At least so many are named.
fn missing(page: &str, least: usize) -> Vec<String> {
    let mut functions = BTreeSet::new();
    for folder in ["crates", "tests"] {
        collect(&root().join(folder), &mut functions);
    }
    let is_name = |word: &&str| {
        word.contains('_')
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit())
    };
    let rows: String = page.lines().filter(|line| line.starts_with('|')).collect::<Vec<_>>().join("\n");
    let named: BTreeSet<&str> = rows.split('`').skip(1).step_by(2).filter(is_name).collect();
    assert!(named.len() >= least, "only {} tests are named", named.len());
    named.into_iter().filter(|name| !functions.contains(*name)).map(str::to_owned).collect()
}

/// The names of all functions below a folder, in Rust and in Python.
fn collect(folder: &Path, functions: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let word = match path.extension().and_then(std::ffi::OsStr::to_str) {
            _ if path.is_dir() => {
                collect(&path, functions);
                continue;
            }
            Some("rs") => "fn ",
            Some("py") => "def ",
            _ => continue,
        };
        let source = std::fs::read_to_string(&path).unwrap_or_default();
        let names = source.split(word).skip(1).filter_map(|rest| rest.split(['(', '<']).next());
        functions.extend(names.map(str::to_owned));
    }
}
