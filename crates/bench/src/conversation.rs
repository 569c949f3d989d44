//! Turns planned prompts into messages: what the engine answered in a session comes back as it said it.

use std::borrow::Cow;
use std::collections::HashMap;

use isotherm_workload::{PieceId, PlannedRequest, SessionId, TextWriter};

use crate::chat::{Message, Role};

/// The answers of one session so far.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    session: Option<SessionId>,
    answers: HashMap<PieceId, String>,
}

impl Conversation {
    /// The messages of a prompt. A piece that is an earlier answer of the session is the assistant's, in the engine's
    /// own words, so that its cache knows them; the pieces between two answers are one message of the user's. An
    /// answer that never came is replaced by text of its length.
    pub(crate) fn messages(&mut self, planned: &PlannedRequest, writer: &TextWriter) -> Vec<Message<'_>> {
        if self.session.replace(planned.session) != Some(planned.session) {
            self.answers.clear();
        }
        let runs = planned.prompt.chunk_by(|before, after| self.is_answer(before.id) == self.is_answer(after.id));
        let mut messages = Vec::new();
        for run in runs {
            if self.is_answer(run[0].id) {
                messages.extend(run.iter().filter_map(|piece| {
                    let said = self.answers.get(&piece.id)?;
                    let content = if said.is_empty() {
                        Cow::Owned(writer.prompt(&[*piece]))
                    } else {
                        Cow::Borrowed(said.as_str())
                    };
                    Some(Message { role: Role::Assistant, content })
                }));
            } else {
                messages.push(Message { role: Role::User, content: Cow::Owned(writer.prompt(run)) });
            }
        }
        messages
    }

    /// Remembers an answer; an empty one if it did not come.
    pub(crate) fn answered(&mut self, output: PieceId, text: String) {
        self.answers.insert(output, text);
    }

    fn is_answer(&self, piece: PieceId) -> bool {
        self.answers.contains_key(&piece)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isotherm_workload::{Piece, PieceId, PlannedRequest, SessionId, TenantId, TextWriter};

    use super::{Conversation, Role};

    fn request(session: u64, pieces: &[u64]) -> PlannedRequest {
        PlannedRequest {
            session: SessionId(session),
            tenant: TenantId::default(),
            think: Duration::ZERO,
            prompt: pieces.iter().map(|&id| Piece::new(PieceId(id), 20)).collect(),
            output: PieceId(0),
            output_tokens: 1,
        }
    }

    fn spoken(conversation: &mut Conversation, request: &PlannedRequest) -> Vec<(Role, String)> {
        let messages = conversation.messages(request, &TextWriter::new(1));
        messages.into_iter().map(|message| (message.role, message.content.into_owned())).collect()
    }

    fn text(pieces: &[u64]) -> String {
        TextWriter::new(1).prompt(&request(0, pieces).prompt)
    }

    #[test]
    fn answers_come_back_in_the_words_of_the_engine() {
        let mut conversation = Conversation::default();
        assert_eq!(spoken(&mut conversation, &request(1, &[1, 2])), [(Role::User, text(&[1, 2]))]);
        conversation.answered(PieceId(3), "It is warm.".to_owned());
        assert_eq!(
            spoken(&mut conversation, &request(1, &[1, 2, 3, 4])),
            [(Role::User, text(&[1, 2])), (Role::Assistant, "It is warm.".to_owned()), (Role::User, text(&[4]))]
        );
    }

    #[test]
    fn an_answer_that_never_came_is_made_up() {
        let mut conversation = Conversation::default();
        spoken(&mut conversation, &request(1, &[1]));
        conversation.answered(PieceId(3), String::new());
        assert_eq!(
            spoken(&mut conversation, &request(1, &[1, 3, 4])),
            [(Role::User, text(&[1])), (Role::Assistant, text(&[3])), (Role::User, text(&[4]))]
        );
    }

    #[test]
    fn another_session_knows_nothing_of_the_one_before() {
        let mut conversation = Conversation::default();
        spoken(&mut conversation, &request(1, &[1]));
        conversation.answered(PieceId(3), "It is warm.".to_owned());
        assert_eq!(spoken(&mut conversation, &request(2, &[1, 3])), [(Role::User, text(&[1, 3]))]);
    }
}
