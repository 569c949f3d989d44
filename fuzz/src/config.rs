//! Any bytes as a configuration file.

use isotherm_config::{Config, Environment, Overrides};

/// A configuration file: no panic; what is wrong is told by its place, and what is right is read the same again.
pub fn check_config(bytes: &[u8]) {
    let folder = std::env::temp_dir().join(format!("isotherm-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("isotherm.yaml");
    std::fs::write(&file, bytes).expect("written");
    let load = || Config::load(Some(&file), &Environment::default(), &Overrides::default());
    match (load(), load()) {
        (Ok(one), Ok(other)) => assert_eq!(format!("{one:?}"), format!("{other:?}")),
        (Err(error), Err(_)) => assert!(error.to_string().contains("isotherm.yaml"), "{error}"),
        (one, other) => panic!("read twice: {} and {}", one.is_ok(), other.is_ok()),
    }
    let _ = std::fs::remove_dir_all(&folder);
}
