//! Runs a check over every saved input of a fuzz target, as the crates' plain tests do.

use std::path::Path;

/// Runs `check` over the corpus of `target`, which must not be empty.
pub fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut replayed = 0;
    for entry in folder.read_dir().expect("the corpus is part of the repository") {
        let path = entry.expect("a readable folder").path();
        println!("{}", path.display());
        check(&std::fs::read(&path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", folder.display());
}
