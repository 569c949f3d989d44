//! A planned request: who sends it, what its prompt is made of, and what its first characters tell a router.

use std::time::Duration;

use crate::text::CHARACTERS_PER_TOKEN;

/// One request before it has text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRequest {
    /// The session it belongs to: requests of one session follow each other.
    pub session: SessionId,
    /// On whose behalf it is sent.
    pub tenant: TenantId,
    /// How long the client waits before sending it: after the answer before, or for the first of a user after the
    /// run's start. The first request of a session that arrives in open loop does not wait.
    pub think: Duration,
    /// What the prompt is made of, in order; never empty.
    pub prompt: Vec<Piece>,
    /// The answer's text. A later prompt of the session that repeats the answer has a piece of this id and length.
    pub output: PieceId,
    /// How many tokens the answer has; at least 1.
    pub output_tokens: u32,
}

impl PlannedRequest {
    /// The prompt's length.
    pub fn prompt_tokens(&self) -> u64 {
        self.prompt.iter().map(|piece| u64::from(piece.tokens)).sum()
    }

    /// What the first `characters` characters of the prompt consist of. Two prompts have the same beginning exactly
    /// when those characters are the same.
    pub fn beginning(&self, characters: u64) -> Beginning<'_> {
        let mut left = characters;
        for (place, piece) in self.prompt.iter().enumerate() {
            let length = u64::from(piece.characters);
            if length > left {
                let cut = (left > 0).then_some(Cut { piece: piece.id, characters: left });
                return Beginning { whole: &self.prompt[..place], cut };
            }
            left -= length;
        }
        Beginning { whole: &self.prompt, cut: None }
    }
}

/// The first characters of a prompt: all that a router knows that looks no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginning<'a> {
    /// The leading pieces that it covers from end to end.
    pub whole: &'a [Piece],
    /// The piece after them, if the beginning ends inside it.
    pub cut: Option<Cut>,
}

/// A piece of which only the first characters belong to a beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    pub piece: PieceId,
    /// How many of its characters belong to the beginning; at least 1, and fewer than it has.
    pub characters: u64,
}

/// A part of a prompt. Two prompts share exactly the pieces with which both begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Equal ids are equal text; different ids differ from the first characters on.
    pub id: PieceId,
    /// Its length; at least 1.
    pub tokens: u32,
    /// Its length in characters of the request's text, at [`CHARACTERS_PER_TOKEN`] unless the workload knows better.
    /// What a chat template adds counts as tokens, not as characters: engines see it, routers do not.
    pub characters: u32,
}

impl Piece {
    /// A piece of ordinary text.
    pub fn new(id: PieceId, tokens: u32) -> Piece {
        Piece { id, tokens, characters: (f64::from(tokens) * CHARACTERS_PER_TOKEN).round() as u32 }
    }
}

/// Tells the pieces of a plan apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PieceId(pub u64);

/// Tells the sessions of a plan apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// Tells tenants apart; where a workload has only one, it is number 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantId(pub u32);

impl TenantId {
    /// By what name clients tell a router of it. Number 0 has none, since a workload with one tenant has no need to
    /// name it.
    pub fn name(self) -> Option<String> {
        (self.0 > 0).then(|| format!("tenant-{}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Cut, Piece, PieceId, PlannedRequest, SessionId, TenantId};

    fn request(lengths: &[u32]) -> PlannedRequest {
        let piece =
            |(id, &characters): (u64, &u32)| Piece { id: PieceId(id), tokens: characters.div_ceil(4), characters };
        PlannedRequest {
            session: SessionId(0),
            tenant: TenantId(0),
            think: Duration::ZERO,
            prompt: (0..).zip(lengths).map(piece).collect(),
            output: PieceId(99),
            output_tokens: 1,
        }
    }

    fn beginning(lengths: &[u32], characters: u64) -> (usize, Option<(u64, u64)>) {
        let request = request(lengths);
        let beginning = request.beginning(characters);
        (beginning.whole.len(), beginning.cut.map(|Cut { piece, characters }| (piece.0, characters)))
    }

    #[test]
    fn a_beginning_covers_whole_pieces_and_a_part_of_the_next() {
        assert_eq!(beginning(&[100, 200, 300], 99), (0, Some((0, 99))));
        assert_eq!(beginning(&[100, 200, 300], 100), (1, None));
        assert_eq!(beginning(&[100, 200, 300], 101), (1, Some((1, 1))));
        assert_eq!(beginning(&[100, 200, 300], 599), (2, Some((2, 299))));
    }

    #[test]
    fn a_shorter_prompt_is_its_own_beginning() {
        assert_eq!(beginning(&[100, 200], 300), (2, None));
        assert_eq!(beginning(&[100, 200], 4_096), (2, None));
    }

    #[test]
    fn ordinary_text_has_four_and_a_fifth_characters_a_token() {
        assert_eq!(Piece::new(PieceId(1), 8_000).characters, 33_600);
        assert_eq!(Piece::new(PieceId(1), 1).characters, 4);
    }
}
