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
