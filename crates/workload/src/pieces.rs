//! Numbers pieces so that different text never has the same id.

use crate::{Piece, PieceId, SessionId};

/// Ids from here on are text that several sessions have in common.
const SHARED: u64 = 1 << 63;

/// Ids from here to [`SHARED`] belong to numbered sessions, those below to closed-loop users or to a trace.
const SESSIONS: u64 = 1 << 62;

/// Room for the pieces of one session, in bits.
const SESSION_BITS: u32 = 20;

/// Makes the pieces of one user or of one session.
#[derive(Clone, Debug)]
pub(crate) struct PieceMaker {
    next: u64,
}

impl PieceMaker {
    pub(crate) fn for_user(user: u32) -> PieceMaker {
        PieceMaker { next: u64::from(user) << 32 }
    }

    pub(crate) fn for_session(session: SessionId) -> PieceMaker {
        PieceMaker { next: of_session(session, 0).0 }
    }

    pub(crate) fn piece(&mut self, tokens: u32) -> Piece {
        Piece::new(self.id(), tokens)
    }

    pub(crate) fn id(&mut self) -> PieceId {
        let id = PieceId(self.next);
        self.next += 1;
        id
    }
}

/// The id of a piece of a numbered session, by its number there.
pub(crate) fn of_session(session: SessionId, piece: u64) -> PieceId {
    PieceId(SESSIONS | ((session.0 << SESSION_BITS) + piece))
}

/// The id of text that any session may have, by a number that the workload gives it.
pub(crate) fn shared(number: u64) -> PieceId {
    PieceId(SHARED | number)
}
