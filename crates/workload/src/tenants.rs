//! Conversations of several tenants whose system prompts are equal: what may be shared depends on isolation.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::dialogue::{Dialogue, Ranges};
use crate::generator::{Session, Sessions};
use crate::invalid::{check_count, check_exponent, check_range};
use crate::pacing::users_for;
use crate::pieces::shared;
use crate::popularity::rank;
use crate::seed::{Purpose, stream};
use crate::{InvalidWorkload, Piece, SessionId, TenantId};

/// Conversations over one system prompt, each on behalf of a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenants {
    /// Closed-loop users, at least 1.
    pub users: u32,
    /// Mean think time between an answer and the next question.
    pub think: Duration,
    /// How many tenants there are, at least 1. Tenant 0 has the most conversations.
    pub tenants: u32,
    /// Exponent of the tenants' sizes (Zipf's law); 0 makes all equal; not below.
    pub inequality: f64,
    /// Tokens of the system prompt that all tenants have, at least 1.
    pub system_tokens: u32,
    /// How many questions a conversation has, at least 1.
    pub turns: RangeInclusive<u32>,
    /// Tokens of a question, at least 1.
    pub question_tokens: RangeInclusive<u32>,
    /// Tokens of an answer, at least 1.
    pub output_tokens: RangeInclusive<u32>,
}

impl Tenants {
    /// The default for a fleet of this size: 20 tenants of unequal size, a system prompt of 4,000 tokens, conversations
    /// of 2 to 8 turns.
    pub fn for_instances(instances: u32) -> Tenants {
        Tenants {
            users: users_for(instances),
            think: Duration::from_secs(2),
            tenants: 20,
            inequality: 1.0,
            system_tokens: 4_000,
            turns: 2..=8,
            question_tokens: 50..=500,
            output_tokens: 100..=300,
        }
    }
}

impl Sessions for Tenants {
    fn name(&self) -> &'static str {
        "tenants"
    }

    fn check(&self) -> Result<(), InvalidWorkload> {
        check_count("the number of users", self.users)?;
        check_count("the number of tenants", self.tenants)?;
        check_exponent("the exponent of the tenants' sizes", self.inequality)?;
        check_count("the length of the system prompt", self.system_tokens)?;
        check_range("the number of turns", &self.turns)?;
        check_range("the length of a question", &self.question_tokens)?;
        check_range("the length of an answer", &self.output_tokens)
    }

    fn users(&self) -> u32 {
        self.users
    }

    fn think(&self) -> Duration {
        self.think
    }

    fn session(&self, seed: u64, number: u64) -> Session {
        let mut rng = stream(seed, Purpose::Session, number);
        let tenant = TenantId(rank(&mut rng, self.tenants, self.inequality) - 1);
        let system = Piece::new(shared(0), self.system_tokens);
        let ranges = Ranges {
            think: self.think,
            turns: self.turns.clone(),
            question_tokens: self.question_tokens.clone(),
            output_tokens: self.output_tokens.clone(),
        };
        Dialogue::new(SessionId(number), tenant, Some(system)).made_up(rng, ranges)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use crate::{Plan, SessionId, TenantId, Tenants};

    #[test]
    fn all_tenants_share_the_system_prompt_and_nothing_else() {
        let requests = Plan::new(Tenants::for_instances(7), 1).unwrap().in_turn(20_000);
        let mut owners = HashMap::new();
        for request in &requests {
            assert_eq!(request.prompt[0], requests[0].prompt[0]);
            assert!(request.prompt.len() % 2 == 0, "system prompt, question, then answer and question in turn");
            for piece in &request.prompt[1..] {
                assert_eq!(*owners.entry(piece.id).or_insert(request.tenant), request.tenant);
            }
        }
    }

    #[test]
    fn tenants_are_of_unequal_size_and_a_conversation_has_one() {
        let requests = Plan::new(Tenants::for_instances(7), 2).unwrap().in_turn(40_000);
        let mut tenants: BTreeMap<SessionId, TenantId> = BTreeMap::new();
        for request in &requests {
            assert_eq!(*tenants.entry(request.session).or_insert(request.tenant), request.tenant);
        }
        let size = |tenant| tenants.values().filter(|found| **found == TenantId(tenant)).count() as f64;
        let ratio = size(0) / size(4);
        assert!((4.0..6.2).contains(&ratio), "{ratio}");
        assert!(size(19) > 0.0 && size(20) == 0.0);
    }

    #[test]
    fn conversations_have_the_stated_number_of_turns() {
        let plan = Plan::new(Tenants::for_instances(1), 3).unwrap();
        let sessions: Vec<SessionId> = plan.user(0).take(500).map(|request| request.session).collect();
        let mut turns: Vec<usize> = sessions.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
        turns.pop();
        assert!(turns.iter().all(|turns| (2..=8).contains(turns)), "{turns:?}");
        assert!(turns.contains(&2) && turns.contains(&8));
    }
}
