//! Prompts that share nothing from the first character: what prefix routing must not make worse.

use std::ops::RangeInclusive;
use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg64;

use crate::pacing::{PieceMaker, first_appearance, think, users_for};
use crate::plan::{check_count, check_range};
use crate::seed::{Purpose, stream};
use crate::{InvalidWorkload, PlannedRequest, UserRequests, Workload};

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

    pub(crate) fn check(&self) -> Result<(), InvalidWorkload> {
        check_count("the number of users", self.users)?;
        check_range("the length of a prompt", &self.prompt_tokens)?;
        check_range("the length of an answer", &self.output_tokens)
    }

    pub(crate) fn user(&self, seed: u64, user: u32) -> UserRequests {
        let rng = stream(seed, Purpose::User, u64::from(user));
        Box::new(Stranger { workload: self.clone(), rng, pieces: PieceMaker::for_user(user), started: false })
    }
}

impl From<NoSharing> for Workload {
    fn from(no_sharing: NoSharing) -> Workload {
        Workload::NoSharing(no_sharing)
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
        let prompt = self.pieces.piece(self.rng.random_range(self.workload.prompt_tokens.clone()));
        let output_tokens = self.rng.random_range(self.workload.output_tokens.clone());
        Some(PlannedRequest { think, prompt: vec![prompt], output_tokens })
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
