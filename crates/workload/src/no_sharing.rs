//! Prompts that share nothing from the first character: what prefix routing must not make worse.

use std::ops::RangeInclusive;
use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg64;

use crate::generator::{Session, Sessions, single};
use crate::invalid::{check_count, check_range};
use crate::pacing::{first_appearance, think, users_for};
use crate::pieces::PieceMaker;
use crate::seed::{Purpose, stream};
use crate::{InvalidWorkload, PlannedRequest, SessionId, TenantId, UserRequests};

/// Every prompt is new.
#[derive(Clone, Debug, PartialEq)]
pub struct NoSharing {
    /// Closed-loop users, at least 1.
    pub users: u32,
    /// Mean think time between an answer and the next prompt.
    pub think: Duration,
    /// Tokens of a prompt, at least 1.
    pub prompt_tokens: RangeInclusive<u32>,
    /// Tokens of an answer, at least 1.
    pub output_tokens: RangeInclusive<u32>,
}

impl NoSharing {
    /// The default for a fleet of this size: 1,000 to 3,000 tokens, so that the engines compute about as many new
    /// tokens for a request as they do for the default documents under perfect affinity.
    pub fn for_instances(instances: u32) -> NoSharing {
        NoSharing {
            users: users_for(instances),
            think: Duration::from_secs(2),
            prompt_tokens: 1_000..=3_000,
            output_tokens: 100..=160,
        }
    }

    fn request(&self, rng: &mut Pcg64, pieces: &mut PieceMaker) -> PlannedRequest {
        let prompt = pieces.piece(rng.random_range(self.prompt_tokens.clone()));
        PlannedRequest {
            session: SessionId(prompt.id.0),
            tenant: TenantId::default(),
            think: Duration::ZERO,
            prompt: vec![prompt],
            output: pieces.id(),
            output_tokens: rng.random_range(self.output_tokens.clone()),
        }
    }
}

impl Sessions for NoSharing {
    fn name(&self) -> &'static str {
        "no-sharing"
    }

    fn check(&self) -> Result<(), InvalidWorkload> {
        check_count("the number of users", self.users)?;
        check_range("the length of a prompt", &self.prompt_tokens)?;
        check_range("the length of an answer", &self.output_tokens)
    }

    fn users(&self) -> u32 {
        self.users
    }

    fn think(&self) -> Duration {
        self.think
    }

    fn session(&self, seed: u64, number: u64) -> Session {
        let mut pieces = PieceMaker::for_session(SessionId(number));
        single(self.request(&mut stream(seed, Purpose::Session, number), &mut pieces))
    }

    fn user(&self, seed: u64, user: u32) -> UserRequests {
        let rng = stream(seed, Purpose::User, u64::from(user));
        Box::new(Stranger { workload: self.clone(), rng, pieces: PieceMaker::for_user(user), started: false })
    }
}

/// One user who never says the same thing twice.
struct Stranger {
    workload: NoSharing,
    rng: Pcg64,
    pieces: PieceMaker,
    started: bool,
}

impl Iterator for Stranger {
    type Item = PlannedRequest;

    fn next(&mut self) -> Option<PlannedRequest> {
        let pause = if self.started { think } else { first_appearance };
        let think = pause(&mut self.rng, self.workload.think);
        self.started = true;
        Some(PlannedRequest { think, ..self.workload.request(&mut self.rng, &mut self.pieces) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::{NoSharing, Plan, TextWriter};

    #[test]
    fn no_two_prompts_begin_alike() {
        let plan = Plan::new(NoSharing::for_instances(7), 1).unwrap();
        let requests = plan.in_turn(2_000);
        let writer = TextWriter::new(1);
        let beginnings: HashSet<String> =
            requests.iter().map(|request| writer.prompt(&request.prompt).chars().take(8).collect()).collect();
        assert_eq!(beginnings.len(), requests.len());
        assert!(requests.iter().all(|request| (1_000..=3_000).contains(&request.prompt[0].tokens)));
    }
}
