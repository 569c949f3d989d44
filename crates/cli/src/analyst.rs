//! Analyses a router's own last requests for its admin plane, as `isotherm analyze` does with logs.

use isotherm_analysis::{CacheSize, Input, Note, Options, Told, analyse};
use isotherm_control::Analyst;
use isotherm_engine_model::Profile;
use serde::Serialize;

/// The analysis without the recommendation, which takes minutes of simulation: `isotherm analyze --router` makes that.
pub(crate) struct OwnRequests;

/// What `--json` tells, and the same notes with their values, for a page that says them in another language.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    told: Told,
    notes: Vec<Note>,
}

impl Analyst for OwnRequests {
    fn analyse(&self, log: Vec<u8>, missed: u64) -> Result<String, String> {
        let input = Input::Text { name: "the last requests".to_owned(), log: log.into() };
        let options = Options { most_simulated: 0, ..Options::default() };
        let mut analysis = analyse(&[input], &options, &()).map_err(|error| error.to_string())?;
        analysis.findings.are_of_a_router(missed);
        let cache = CacheSize { tokens: Profile::default().kv_capacity_tokens, instances: 1 };
        let notes = analysis.findings.notes.clone();
        let told = Told { findings: analysis.findings, recommendation: None, cache };
        serde_json::to_string(&Answer { told, notes }).map_err(|error| error.to_string())
    }
}
