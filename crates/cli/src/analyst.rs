//! Analyses a router's own last requests for its admin plane, as `isotherm analyze` does with logs.

use isotherm_analysis::{CacheSize, Input, Options, Told, analyse};
use isotherm_control::Analyst;
use isotherm_engine_model::Profile;

/// The analysis without the recommendation, which takes minutes of simulation: `isotherm analyze --router` makes that.
pub(crate) struct OwnRequests;

impl Analyst for OwnRequests {
    fn analyse(&self, log: Vec<u8>, missed: u64) -> Result<String, String> {
        let input = Input::Text { name: "the last requests".to_owned(), log: log.into() };
        let options = Options { most_simulated: 0, ..Options::default() };
        let mut analysis = analyse(&[input], &options, &()).map_err(|error| error.to_string())?;
        analysis.findings.are_of_a_router(missed);
        let cache = CacheSize { tokens: Profile::default().kv_capacity_tokens, instances: 1 };
        let told = Told { findings: analysis.findings, recommendation: None, cache };
        serde_json::to_string(&told).map_err(|error| error.to_string())
    }
}
