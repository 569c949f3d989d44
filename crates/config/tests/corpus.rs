//! Replays the saved corpus of the fuzz target `config`.

use std::path::Path;

#[expect(unreachable_pub, reason = "for the fuzz targets it is a library")]
#[path = "../../../fuzz/src/config.rs"]
mod fuzz;

#[test]
fn every_configuration_is_read_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/config");
    let mut replayed = 0;
    for entry in folder.read_dir().expect("the corpus is part of the repository") {
        let path = entry.expect("a readable folder").path();
        println!("{}", path.display());
        fuzz::check_config(&std::fs::read(&path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", folder.display());
}
