//! A conversation that grows: every prompt is the one before, its answer and something new.

use std::ops::RangeInclusive;
use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg64;

use crate::generator::Session;
use crate::pacing::think;
use crate::pieces::PieceMaker;
use crate::{Piece, PieceId, PlannedRequest, SessionId, TenantId};

/// A conversation so far.
#[derive(Debug)]
pub(crate) struct Dialogue {
    session: SessionId,
    tenant: TenantId,
    pieces: PieceMaker,
    history: Vec<Piece>,
    answered: bool,
}

/// The length of something that is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    pub(crate) tokens: u32,
    pub(crate) characters: u32,
}

/// What the turns of a made-up conversation are drawn from.
pub(crate) struct Ranges {
    /// Mean time between an answer and the next question.
    pub(crate) think: Duration,
    pub(crate) turns: RangeInclusive<u32>,
    pub(crate) question_tokens: RangeInclusive<u32>,
    pub(crate) output_tokens: RangeInclusive<u32>,
}

impl Length {
    /// Of ordinary text.
    pub(crate) fn of_tokens(tokens: u32) -> Length {
        let Piece { characters, .. } = Piece::new(PieceId(0), tokens);
        Length { tokens, characters }
    }
}

impl Dialogue {
    /// A conversation that begins with what others may begin with too.
    pub(crate) fn new(session: SessionId, tenant: TenantId, opening: Option<Piece>) -> Dialogue {
        let pieces = PieceMaker::for_session(session);
        Dialogue { session, tenant, pieces, history: opening.into_iter().collect(), answered: false }
    }

    /// Tokens of all that was said.
    pub(crate) fn tokens(&self) -> u64 {
        self.history.iter().map(|piece| u64::from(piece.tokens)).sum()
    }

    /// The next question and its answer. `pause` is what the user takes to read the answer before, if there was one.
    pub(crate) fn turn(
        &mut self,
        pause: impl FnOnce() -> Duration,
        question: Length,
        answer: Length,
    ) -> PlannedRequest {
        let think = if self.answered { pause() } else { Duration::ZERO };
        self.answered = true;
        self.say(question);
        let prompt = self.history.clone();
        let output = self.say(answer).id;
        let (session, tenant) = (self.session, self.tenant);
        PlannedRequest { session, tenant, think, prompt, output, output_tokens: answer.tokens }
    }

    /// All turns of a made-up conversation: their number and lengths are drawn as they come.
    pub(crate) fn made_up(mut self, mut rng: Pcg64, ranges: Ranges) -> Session {
        let turns = rng.random_range(ranges.turns);
        Box::new((0..turns).map(move |_| {
            let question = Length::of_tokens(rng.random_range(ranges.question_tokens.clone()));
            let answer = Length::of_tokens(rng.random_range(ranges.output_tokens.clone()));
            self.turn(|| think(&mut rng, ranges.think), question, answer)
        }))
    }

    fn say(&mut self, Length { tokens, characters }: Length) -> Piece {
        let piece = Piece { id: self.pieces.id(), tokens, characters };
        self.history.push(piece);
        piece
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Dialogue, Length};
    use crate::{Piece, PieceId, SessionId, TenantId};

    #[test]
    fn an_answer_is_part_of_the_next_prompt() {
        let system = Piece::new(PieceId(1 << 63), 500);
        let mut dialogue = Dialogue::new(SessionId(3), TenantId(2), Some(system));
        let pause = || Duration::from_secs(7);
        let first = dialogue.turn(pause, Length::of_tokens(20), Length::of_tokens(130));
        let second = dialogue.turn(pause, Length::of_tokens(30), Length::of_tokens(1));
        assert_eq!((first.think, second.think), (Duration::ZERO, Duration::from_secs(7)));
        assert_eq!(second.prompt[..2], first.prompt);
        assert_eq!((second.prompt[2].id, second.prompt[2].tokens), (first.output, first.output_tokens));
        assert_eq!(second.prompt.len(), 4);
        assert_eq!((second.session, second.tenant), (SessionId(3), TenantId(2)));
        assert_eq!(dialogue.tokens(), 681);
    }
}
