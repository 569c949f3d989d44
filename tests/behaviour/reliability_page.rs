//! `docs/reliability.md` names tests; they exist, and no number of the list is missing.

use std::collections::BTreeSet;
use std::path::Path;

/// The numbers of the list; those between are not used.
const NUMBERS: [u32; 47] = [
    1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33,
    35, 36, 37, 39, 40, 41, 42, 43, 44, 45, 46, 48, 49, 50, 51, 52,
];

#[test]
fn every_number_has_a_row_and_every_test_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("docs/reliability.md")).expect("the page");
    let numbers: Vec<u32> =
        page.lines().filter_map(|line| line.strip_prefix("| T")?.split(' ').next()?.parse().ok()).collect();
    assert_eq!(numbers, NUMBERS);
    let mut functions = BTreeSet::new();
    for folder in ["crates", "tests"] {
        collect(&root.join(folder), &mut functions);
    }
    let is_name = |word: &&str| {
        word.contains('_')
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit())
    };
    let named: BTreeSet<&str> = page.split('`').skip(1).step_by(2).filter(is_name).collect();
    assert!(named.len() > 100, "only {} tests are named", named.len());
    let missing: Vec<&&str> = named.iter().filter(|name| !functions.contains(**name)).collect();
    assert!(missing.is_empty(), "the page names tests that do not exist: {missing:?}");
}

/// The names of all functions below a folder.
fn collect(folder: &Path, functions: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, functions);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).unwrap_or_default();
            let names = source.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            functions.extend(names.map(str::to_owned));
        }
    }
}
