//! The scenarios that come with the program.

use super::{InvalidScenario, Scenario};

/// A scenario that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

impl Shipped {
    /// What it says.
    ///
    /// # Errors
    /// None that the tests let through.
    pub fn scenario(&self) -> Result<Scenario, InvalidScenario> {
        Scenario::parse(self.name, self.text)
    }
}

/// All of them, in the order in which they are listed to people.
pub fn shipped() -> impl Iterator<Item = Shipped> {
    SHIPPED.into_iter().map(|(name, text)| Shipped { name, text })
}

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../scenarios/", $name, ".yaml")))),*]
    };
}

const SHIPPED: [(&str, &str); 15] = scenarios![
    "aws-long",
    "aws-sharegpt",
    "hot-prefix",
    "cache-pressure",
    "cold-burst",
    "no-sharing",
    "mooncake",
    "agents",
    "long-output",
    "small-model",
    "fp8",
    "mixed-fleet",
    "scale-out-in",
    "instance-failure",
    "multi-tenant",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_scenario_can_be_planned() {
        for shipped in shipped() {
            let scenario = shipped.scenario().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(scenario.name, shipped.name);
            scenario.plan(1).unwrap_or_else(|error| panic!("{}: {error}", shipped.name));
        }
    }
}
