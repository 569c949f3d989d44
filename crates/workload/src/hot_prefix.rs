//! One prefix that very many requests share, beside documents: affinity alone would overload one instance.

use std::time::Duration;

use rand::RngExt;

use crate::generator::{Session, Sessions, single};
use crate::invalid::{check_count, check_share};
use crate::pieces::{PieceMaker, shared};
use crate::seed::{Purpose, stream};
use crate::{Documents, InvalidWorkload, Piece, PlannedRequest, SessionId};

/// Document sessions between which users ask about something that everybody asks about.
#[derive(Clone, Debug, PartialEq)]
pub struct HotPrefix {
    /// The share of the requests that begin with the hot prefix, 0 to 1.
    pub share: f64,
    /// Tokens of the hot prefix, at least 1.
    pub hot_tokens: u32,
    /// The other requests, and the users.
    pub documents: Documents,
}

impl HotPrefix {
    /// The default for a fleet of this size: half of the requests begin with 8,000 equal tokens.
    pub fn for_instances(instances: u32) -> HotPrefix {
        HotPrefix { share: 0.5, hot_tokens: 8_000, documents: Documents::for_instances(instances) }
    }

    /// The share of the sessions that are one hot question, so that `share` of the requests are: a document session
    /// counts as many requests as it has questions.
    fn share_of_sessions(&self) -> f64 {
        let questions = &self.documents.questions;
        let mean = f64::from(*questions.start()).midpoint(f64::from(*questions.end()));
        self.share * mean / (1.0 - self.share + self.share * mean)
    }
}

impl Sessions for HotPrefix {
    fn name(&self) -> &'static str {
        "hot-prefix"
    }

    fn check(&self) -> Result<(), InvalidWorkload> {
        check_share("the share of the hot prefix", self.share)?;
        check_count("the length of the hot prefix", self.hot_tokens)?;
        self.documents.check()
    }

    fn users(&self) -> u32 {
        self.documents.users
    }

    fn think(&self) -> Duration {
        self.documents.think
    }

    fn session(&self, seed: u64, number: u64) -> Session {
        let mut rng = stream(seed, Purpose::Hot, number);
        if rng.random::<f64>() >= self.share_of_sessions() {
            return self.documents.session(seed, number);
        }
        let session = SessionId(number);
        let hot = Piece::new(shared(0), self.hot_tokens);
        let question = self.documents.question(&mut rng, &mut PieceMaker::for_session(session), hot);
        single(PlannedRequest { session, ..question })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::pieces::shared;
    use crate::{Arrivals, HotPrefix, Plan, PlannedRequest};

    fn share(requests: &[PlannedRequest]) -> f64 {
        let hot = requests.iter().filter(|request| request.prompt[0].id == shared(0)).count();
        hot as f64 / requests.len() as f64
    }

    #[test]
    fn the_stated_share_of_requests_begins_with_the_hot_prefix() {
        for stated in [0.0, 0.1, 0.5, 0.8, 1.0] {
            let workload = HotPrefix { share: stated, ..HotPrefix::for_instances(7) };
            let closed = Plan::new(workload.clone(), 1).unwrap().in_turn(20_000);
            assert!((share(&closed) - stated).abs() < 0.015, "{stated}: {}", share(&closed));
            let open = Plan::with_arrivals(workload, Arrivals::Poisson { per_second: 10.0 }, 1).unwrap();
            let sessions = open.open_loop().unwrap().take(8_000);
            let requests: Vec<PlannedRequest> = sessions.flat_map(|arrival| arrival.unwrap().requests).collect();
            assert!((share(&requests) - stated).abs() < 0.015, "{stated}: {}", share(&requests));
        }
    }

    #[test]
    fn hot_questions_differ_and_are_asked_after_a_pause() {
        let requests = Plan::new(HotPrefix { share: 1.0, ..HotPrefix::for_instances(7) }, 1).unwrap().in_turn(500);
        let mut questions: Vec<_> = requests.iter().map(|request| request.prompt[1].id).collect();
        questions.sort_unstable();
        questions.dedup();
        assert_eq!(questions.len(), 500);
        assert!(requests.iter().all(|request| request.think > Duration::ZERO && request.prompt[0].tokens == 8_000));
    }
}
