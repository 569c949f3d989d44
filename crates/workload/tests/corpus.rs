//! Replays the saved corpus of the fuzz target `trace`.

use std::path::Path;

#[expect(unreachable_pub, reason = "for the fuzz targets it is a library")]
#[path = "../../../fuzz/src/trace.rs"]
mod fuzz;

#[test]
fn every_trace_is_read_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/trace");
    let mut replayed = 0;
    for entry in folder.read_dir().expect("the corpus is part of the repository") {
        let path = entry.expect("a readable folder").path();
        println!("{}", path.display());
        fuzz::check_trace(&std::fs::read(&path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", folder.display());
}
