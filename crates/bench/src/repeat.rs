//! Runs strategies in turn, once with each seed, so that what changes on the machine meanwhile touches all of them.

use isotherm_report::Run;
use isotherm_workload::Plan;

use crate::validity::{Counted, objections};
use crate::{Arm, CompareError, Fleet, Options, Progress, Replay, RunError, Timetable, calibrate, replay};

/// What is repeated.
#[derive(Clone, Debug)]
pub struct Repeats<'a> {
    /// The strategies' names, the baseline first.
    pub strategies: &'a [String],
    /// One run of each strategy with each of these, which differ in their seeds.
    pub plans: &'a [Plan],
    pub timetable: Timetable,
}

/// The runs.
#[derive(Clone, Debug)]
pub struct Repeated {
    /// For each strategy, in the order given, its runs seed by seed.
    pub runs: Vec<Vec<Run>>,
    /// Why the figures must not be trusted, one sentence each; empty when they may.
    pub invalid: Vec<String>,
    /// What the first failed request of all met.
    pub first_failure: Option<isotherm_report::Failure>,
}

/// Runs all strategies with the first plan, then all with the second (A B A B …), each on a fleet of its own.
///
/// # Errors
/// Those of the fleet, or when a target cannot be reached or a trace not be read.
pub fn repeat<F: Fleet>(
    fleet: &mut F,
    repeats: &Repeats<'_>,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Repeated, CompareError<F::Error>> {
    let mut options = options.clone();
    let mut repeated =
        Repeated { runs: vec![Vec::new(); repeats.strategies.len()], invalid: Vec::new(), first_failure: None };
    for plan in repeats.plans {
        let seed = plan.seed();
        for (strategy, runs) in repeats.strategies.iter().zip(&mut repeated.runs) {
            let arm = fleet.start(strategy).map_err(CompareError::Fleet)?;
            progress.started_for(&format!("{strategy} {seed}"), repeats.timetable.duration);
            let outcome = measure(&arm, plan, repeats.timetable, &mut options, progress, fleet);
            progress.finished();
            let engine_lag = fleet.stop().map_err(CompareError::Fleet)?;
            let Replay { run, client_lag, requests, errors, first_failure } = outcome?;
            let name = format!("{strategy}, seed {seed}");
            let counted = Counted { strategy: &name, requests, errors, first_failure: first_failure.as_ref() };
            repeated.invalid.extend(objections(&counted, engine_lag, client_lag, options.speed));
            repeated.first_failure = repeated.first_failure.or(first_failure);
            runs.push(run);
        }
    }
    Ok(repeated)
}

/// Runs one strategy once. The first run of all finds out how long tokens are.
fn measure<F: Fleet>(
    arm: &Arm,
    plan: &Plan,
    timetable: Timetable,
    options: &mut Options,
    progress: &dyn Progress,
    fleet: &F,
) -> Result<Replay, RunError> {
    if options.characters_per_token.is_none() {
        options.characters_per_token = calibrate(&arm.target, arm.text_seed, options)?;
    }
    replay(arm, plan, timetable, options, progress, &|| fleet.work())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isotherm_workload::{Documents, Plan};

    use super::{Repeats, repeat};
    use crate::run::mock::{Answer, Mock, stream};
    use crate::{Arm, Fleet, Lag, Options, Target, Timetable, Work};

    /// Notes what is started and stopped.
    #[derive(Default)]
    struct Noted {
        mock: Option<Mock>,
        notes: Vec<String>,
    }

    impl Fleet for Noted {
        type Error = String;

        fn start(&mut self, strategy: &str) -> Result<Arm, String> {
            let mock = Mock::start(|_, _| Answer::sse(stream(1, 90, 0)));
            let target = Target::new(&format!("http://{}", mock.address), "m").unwrap();
            self.mock = Some(mock);
            self.notes.push(strategy.to_owned());
            Ok(Arm { target, instances: vec!["a".to_owned()], accelerators: Some(8), text_seed: 1 })
        }

        fn stop(&mut self) -> Result<Option<Lag>, String> {
            self.mock = None;
            self.notes.push("stop".to_owned());
            Ok(Some(Lag { p99: Duration::from_millis(50), max: Duration::from_millis(50) }))
        }

        fn work(&self) -> Option<Work> {
            Some(Work::default())
        }
    }

    #[test]
    fn strategies_take_turns_with_equal_plans_and_fresh_fleets() {
        let think = Duration::from_millis(10);
        let documents = Documents { users: 2, think, document_tokens: 50, ..Documents::for_instances(1) };
        let plans: Vec<Plan> = (1..=2).map(|seed| Plan::new(documents.clone(), seed).unwrap()).collect();
        let strategies = ["A".to_owned(), "B".to_owned()];
        let timetable = Timetable { warm_up: Duration::from_millis(20), duration: Duration::from_millis(120) };
        let options = Options { speed: 1.0, characters_per_token: Some(4.0), ..Options::for_users(2) };
        let mut fleet = Noted::default();
        let repeats = Repeats { strategies: &strategies, plans: &plans, timetable };
        let repeated = repeat(&mut fleet, &repeats, &options, &()).unwrap();
        assert_eq!(fleet.notes, ["A", "stop", "B", "stop", "A", "stop", "B", "stop"]);
        assert_eq!(repeated.runs.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
        let lagging: Vec<&str> = repeated.invalid.iter().filter_map(|sentence| sentence.split(':').next()).collect();
        for run in ["A, seed 1", "B, seed 1", "A, seed 2", "B, seed 2"] {
            assert!(lagging.contains(&run), "{lagging:?}");
        }
    }
}
