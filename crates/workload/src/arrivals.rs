//! When sessions arrive: with their users (closed loop), at random, in bursts, or when a trace says (open loop).

use std::time::Duration;

use rand_distr::{Distribution, Gamma};

use crate::generator::{NumberedSessions, Session};
use crate::invalid::check_positive;
use crate::seed::{Purpose, stream};
use crate::{InvalidWorkload, TraceError};

/// What makes sessions arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Closed loop: a fixed number of users who wait for an answer, think, and go on. Each ends a session before it
    /// begins another, so a slower fleet is asked less.
    Users,
    /// Open loop, at the times that the workload itself has: a trace's time stamps, a schedule of bursts.
    Recorded {
        /// How much faster than recorded; 1 is as it was.
        rate: f64,
    },
    /// Open loop: sessions arrive independently of each other and of the answers.
    Poisson {
        /// Sessions, not requests.
        per_second: f64,
    },
    /// Open loop: sessions come in bursts. Gaps have a gamma distribution, the shape that recorded gaps of LLM
    /// services were found to have (BurstGPT, ServeGen).
    Bursts {
        /// Sessions, not requests.
        per_second: f64,
        /// Standard deviation of the gaps over their mean: 1 is Poisson, more is burstier, less more regular.
        variation: f64,
    },
}

/// A session that arrives in open loop, whatever became of those before.
pub struct Arrival {
    /// Since the run's start.
    pub at: Duration,
    /// The first of its requests is sent at once, the others each `think` after the answer before.
    pub requests: Session,
}

/// The arrivals of an open loop, in the order of their times. A trace that cannot be read further ends it with an error.
pub type OpenLoop = Box<dyn Iterator<Item = Result<Arrival, TraceError>> + Send>;

impl std::fmt::Debug for Arrival {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Arrival").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Arrivals {
    /// The same, checked.
    pub(crate) fn timing(self) -> Result<Timing, InvalidWorkload> {
        match self {
            Arrivals::Users => Ok(Timing::Users),
            Arrivals::Recorded { rate } => {
                check_positive("the rate of the recording", rate)?;
                Ok(Timing::Recorded { rate })
            }
            Arrivals::Poisson { per_second } => Gaps::new(per_second, 1.0).map(Timing::Random),
            Arrivals::Bursts { per_second, variation } => Gaps::new(per_second, variation).map(Timing::Random),
        }
    }
}

/// Checked arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Timing {
    Users,
    Recorded { rate: f64 },
    Random(Gaps),
}

/// The gaps between sessions that arrive at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gaps {
    seconds: Gamma<f64>,
}

impl Gaps {
    fn new(per_second: f64, variation: f64) -> Result<Gaps, InvalidWorkload> {
        check_positive("the number of sessions per second", per_second)?;
        check_positive("the variation of the gaps between sessions", variation)?;
        let shape = 1.0 / (variation * variation);
        match Gamma::new(shape, 1.0 / (shape * per_second)) {
            Ok(seconds) => Ok(Gaps { seconds }),
            Err(error) => Err(InvalidWorkload::Gaps { per_second, variation, error }),
        }
    }

    /// Gives every session a time.
    pub(crate) fn arrivals(self, seed: u64, sessions: NumberedSessions) -> OpenLoop {
        let mut rng = stream(seed, Purpose::Arrivals, 0);
        let mut now = 0.0;
        Box::new(sessions.map_while(move |session| {
            now += self.seconds.sample(&mut rng);
            let at = Duration::try_from_secs_f64(now).ok()?;
            Some(session.map(|requests| Arrival { at, requests }))
        }))
    }
}

/// Makes recorded arrivals `rate` times as frequent.
pub(crate) fn speed_up(recorded: OpenLoop, rate: f64) -> OpenLoop {
    Box::new(recorded.map_while(move |arrival| match arrival {
        Ok(Arrival { at, requests }) => {
            let at = Duration::try_from_secs_f64(at.as_secs_f64() / rate).ok()?;
            Some(Ok(Arrival { at, requests }))
        }
        Err(error) => Some(Err(error)),
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{Arrival, Arrivals, Documents, InvalidWorkload, Load, NoSharing, Plan, PlannedRequest};

    const EACH_FIVE_SECONDS: Arrivals = Arrivals::Poisson { per_second: 0.2 };

    fn plan(arrivals: Arrivals, seed: u64) -> Result<Plan, InvalidWorkload> {
        Plan::with_arrivals(NoSharing::for_instances(7), arrivals, seed)
    }

    fn open(arrivals: Arrivals, count: usize) -> Vec<Arrival> {
        let arrivals = plan(arrivals, 1).unwrap().open_loop().unwrap();
        arrivals.take(count).map(Result::unwrap).collect()
    }

    /// Mean and standard deviation of the gaps, in seconds.
    fn gaps(arrivals: Arrivals) -> (f64, f64) {
        let times: Vec<f64> = open(arrivals, 50_001).iter().map(|arrival| arrival.at.as_secs_f64()).collect();
        let gaps: Vec<f64> = times.array_windows().map(|[before, after]| after - before).collect();
        assert!(gaps.iter().all(|gap| *gap >= 0.0));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn gaps_have_the_stated_rate_and_variation() {
        for (arrivals, variation) in [
            (Arrivals::Poisson { per_second: 4.0 }, 1.0),
            (Arrivals::Bursts { per_second: 4.0, variation: 3.0 }, 3.0),
            (Arrivals::Bursts { per_second: 4.0, variation: 0.1 }, 0.1),
        ] {
            let (mean, deviation) = gaps(arrivals);
            assert!((mean * 4.0 - 1.0).abs() < 0.05, "{arrivals:?}: {mean}");
            assert!((deviation / mean / variation - 1.0).abs() < 0.05, "{arrivals:?}: {deviation}");
        }
    }

    #[test]
    fn values_do_not_move_between_releases() {
        let nanoseconds: Vec<u128> = open(EACH_FIVE_SECONDS, 2).iter().map(|arrival| arrival.at.as_nanos()).collect();
        assert_eq!(nanoseconds, [2_333_910_677, 2_388_512_628]);
    }

    #[test]
    fn same_seed_same_arrivals_other_seed_others() {
        let arrivals = |seed| -> Vec<(Duration, Vec<PlannedRequest>)> {
            let open = plan(EACH_FIVE_SECONDS, seed).unwrap().open_loop().unwrap().take(50).map(Result::unwrap);
            open.map(|Arrival { at, requests }| (at, requests.collect())).collect()
        };
        assert_eq!(arrivals(1), arrivals(1));
        assert_ne!(arrivals(1), arrivals(2));
    }

    #[test]
    fn a_session_begins_at_once_and_pauses_before_what_follows() {
        let plan = Plan::with_arrivals(Documents::for_instances(7), EACH_FIVE_SECONDS, 1).unwrap();
        let mut last = None;
        for arrival in plan.open_loop().unwrap().take(200).map(Result::unwrap) {
            let requests: Vec<PlannedRequest> = arrival.requests.collect();
            assert!((5..=6).contains(&requests.len()));
            assert!(requests.iter().all(|request| request.prompt[0] == requests[0].prompt[0]));
            assert!(last < Some(requests[0].prompt[0].id), "every session has its own document");
            assert_eq!(requests[0].think, Duration::ZERO);
            assert!(requests[1..].iter().all(|request| request.think > Duration::ZERO));
            last = requests.last().map(|request| request.output);
        }
    }

    #[test]
    fn users_make_a_closed_loop() {
        let plan = Plan::new(NoSharing::for_instances(7), 1).unwrap();
        let Load::Closed(users) = plan.load() else { panic!("users are a closed loop") };
        assert_eq!(users.len(), 46);
        assert!(plan.open_loop().is_none());
        assert_eq!(super::tests::plan(EACH_FIVE_SECONDS, 1).unwrap().users(), 0);
    }

    #[test]
    fn arrivals_that_cannot_be_are_refused() {
        let refuse = |arrivals| plan(arrivals, 1).unwrap_err().to_string();
        assert_eq!(
            refuse(Arrivals::Poisson { per_second: 0.0 }),
            "the number of sessions per second is 0; it must be a number above 0"
        );
        assert_eq!(
            refuse(Arrivals::Bursts { per_second: 1.0, variation: f64::NAN }),
            "the variation of the gaps between sessions is NaN; it must be a number above 0"
        );
        assert!(refuse(Arrivals::Bursts { per_second: 1.0, variation: 1e-200 }).starts_with("no gaps can be drawn"));
        assert_eq!(
            refuse(Arrivals::Recorded { rate: 1.0 }),
            "no-sharing has no times of its own; give it users, Poisson arrivals or bursts"
        );
    }

    #[test]
    fn times_beyond_all_clocks_end_the_arrivals() {
        assert!(open(Arrivals::Poisson { per_second: 1e-300 }, 1).is_empty());
    }
}
