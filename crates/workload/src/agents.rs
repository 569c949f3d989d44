//! Sessions of a coding agent: long prompts that grow by tool results, replayed with their recorded pauses.

mod recording;
mod session;
mod tree;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;

use crate::generator::{Session, Sessions};
use crate::invalid::check_count;
use crate::seed::{Purpose, stream};
use crate::{InvalidWorkload, SessionId, TraceError, TraceSource};
use recording::Recording;
use session::AgentSession;

/// 18 sessions of Claude Code.
const CLAUDE_CODE: TraceSource =
    TraceSource::shipped("the Claude Code sessions", include_bytes!("../../../data/claude-code-sessions.jsonl.gz"));

/// Users whose agents work: each request repeats the conversation so far and adds the result of a tool.
///
/// Sessions are chosen at random and may run several times; each time they are somebody else's, with other text.
#[derive(Clone, Debug, PartialEq)]
pub struct Agents {
    /// Closed-loop users, at least 1.
    pub users: u32,
    /// Mean pause between two sessions of a user. Within a session the pauses are the recorded ones.
    pub think: Duration,
    /// The sessions to choose from.
    pub sessions: Arc<AgentSessions>,
    /// Whether sessions whose tool definitions are equally long have the same ones, as users of one program do.
    /// Recordings cannot tell: their hashes hold for one session only.
    pub shared_tools: bool,
    /// Longer recorded pauses are cut to this: nobody waits half an hour in a benchmark.
    pub longest_think: Duration,
    /// Prompt and answer together, in tokens. A session ends before the request that would be longer.
    pub longest_context: u32,
}

impl Agents {
    /// The default for a fleet of this size: 12 users for each instance, pauses up to a minute, a context of 131,072.
    ///
    /// # Errors
    /// Never, as long as what was shipped is whole.
    pub fn for_instances(instances: u32) -> Result<Agents, TraceError> {
        Ok(Agents {
            users: instances.saturating_mul(12),
            think: Duration::from_secs(10),
            sessions: Arc::new(AgentSessions::claude_code()?),
            shared_tools: true,
            longest_think: Duration::from_secs(60),
            longest_context: 131_072,
        })
    }

    /// Whether at least the first request of a session fits into the context.
    fn admits(&self, session: &AgentSession) -> bool {
        session.context_of(0).is_some_and(|tokens| tokens <= u64::from(self.longest_context))
    }

    fn replay(&self, recorded: usize, session: SessionId) -> Session {
        let (workload, mut place) = (self.clone(), 0);
        Box::new(std::iter::from_fn(move || {
            let recorded = workload.sessions.0.get(recorded)?;
            let fits = recorded.context_of(place)? <= u64::from(workload.longest_context);
            let mut request = recorded.request(place, session, workload.shared_tools).filter(|_| fits)?;
            request.think = request.think.min(workload.longest_think);
            place += 1;
            Some(request)
        }))
    }
}

/// Recorded sessions of agents.
#[derive(Clone, PartialEq)]
pub struct AgentSessions(Vec<AgentSession>);

impl AgentSessions {
    /// The sessions that come with Isotherm: 18 of Claude Code, 4 to 48 requests each.
    ///
    /// # Errors
    /// Never, as long as what was shipped is whole.
    pub fn claude_code() -> Result<AgentSessions, TraceError> {
        AgentSessions::read(&CLAUDE_CODE)
    }

    /// Reads one session a line, in the JSON of kv-cache-tester: `block_size`, `tool_tokens`, `system_tokens` and
    /// `requests`, each with `t`, `in`, `out`, `hash_ids`, `think_time`. The requests of a sub-agent
    /// (`"type": "subagent"`) run where it was started, one sub-agent after the other.
    ///
    /// Kept in memory is what prompts have in common, not the hashes: a few kilobytes a session.
    ///
    /// # Errors
    /// When the source cannot be read or a line is no such session.
    pub fn read(source: &TraceSource) -> Result<AgentSessions, TraceError> {
        source.records(|line| Recording::parse(line)?.session().map(Some)).collect::<Result<_, _>>().map(AgentSessions)
    }
}

impl fmt::Debug for AgentSessions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AgentSessions({})", self.0.len())
    }
}

impl Sessions for Agents {
    fn name(&self) -> &'static str {
        "agents"
    }

    fn check(&self) -> Result<(), InvalidWorkload> {
        check_count("the number of users", self.users)?;
        if self.sessions.0.iter().any(|session| self.admits(session)) {
            return Ok(());
        }
        Err(InvalidWorkload::NoSession { why: format!("begins within {} tokens", self.longest_context) })
    }

    fn users(&self) -> u32 {
        self.users
    }

    fn think(&self) -> Duration {
        self.think
    }

    fn session(&self, seed: u64, number: u64) -> Session {
        let mut rng = stream(seed, Purpose::Session, number);
        loop {
            let recorded = rng.random_range(0..self.sessions.0.len());
            if self.admits(&self.sessions.0[recorded]) {
                return self.replay(recorded, SessionId(number));
            }
        }
    }
}

#[cfg(test)]
mod tests;
