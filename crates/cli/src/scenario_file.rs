//! Scenarios by name or file, as `simulate` and `bench` take them.

use std::path::Path;

use isotherm_sim::{InvalidScenario, Scenario, shipped};

use crate::exit::Failure;

/// A scenario that comes with the program, or a file.
pub(crate) fn read(name: &str) -> Result<Scenario, Failure> {
    if let Some(shipped) = shipped().find(|shipped| shipped.name == name) {
        return shipped.scenario().map_err(failure);
    }
    let path = Path::new(name);
    if path.extension().is_none() && !path.exists() {
        let names: Vec<&str> = shipped().map(|shipped| shipped.name).collect();
        let text = format!("--scenario {name}: neither a file nor one of {}", names.join(", "));
        return Err(Failure::Usage(text));
    }
    let text = std::fs::read_to_string(path).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    Scenario::parse(name, &text).map_err(failure)
}

/// What is wrong with a scenario is what was asked wrongly.
pub(crate) fn failure(error: InvalidScenario) -> Failure {
    Failure::Usage(error.to_string())
}
