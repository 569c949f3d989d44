//! A recorded session, ready to be replayed: a tree of pieces, and where each request's prompt ends in it.

use std::time::Duration;

use super::tree::{Prompt, Tree};
use crate::pieces::{of_session, shared};
use crate::{Piece, PlannedRequest, SessionId, TenantId};

/// What is kept of a recording.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentSession {
    tree: Tree,
    /// The pauses before the requests.
    thinks: Vec<Duration>,
    tool_tokens: u32,
}

impl AgentSession {
    /// `opening` is where in a prompt the tool definitions end, and where the system prompt.
    pub(crate) fn new(
        prompts: &[Prompt<'_>],
        thinks: Vec<Duration>,
        block_tokens: u32,
        opening: [u32; 2],
    ) -> AgentSession {
        AgentSession { tree: Tree::of(prompts, block_tokens, opening), thinks, tool_tokens: opening[0] }
    }

    /// Tokens of a request's prompt and answer; `None` behind the last.
    pub(crate) fn context_of(&self, place: usize) -> Option<u64> {
        let request = self.tree.requests.get(place)?;
        let prompt: u64 = self.tree.path(request.prompt_end).map(|(_, tokens)| u64::from(tokens)).sum();
        Some(prompt + u64::from(self.tree.branches[request.output].tokens))
    }

    /// A request as part of a replay; `None` behind the last.
    pub(crate) fn request(&self, place: usize, session: SessionId, shared_tools: bool) -> Option<PlannedRequest> {
        let request = self.tree.requests.get(place)?;
        let mut prompt: Vec<Piece> = self
            .tree
            .path(request.prompt_end)
            .map(|(branch, tokens)| Piece::new(of_session(session, branch as u64), tokens))
            .collect();
        prompt.reverse();
        if let Some(tools) = prompt.first_mut().filter(|first| shared_tools && first.tokens == self.tool_tokens) {
            tools.id = shared(u64::from(self.tool_tokens));
        }
        Some(PlannedRequest {
            session,
            tenant: TenantId::default(),
            think: self.thinks.get(place).copied().unwrap_or_default(),
            prompt,
            output: of_session(session, request.output as u64),
            output_tokens: self.tree.branches[request.output].tokens,
        })
    }
}
