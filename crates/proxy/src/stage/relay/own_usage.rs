//! The usage that the router asked for in its client's place, on the way to the client.

use bytes::Bytes;
use isotherm_wire::sse::UsageFilter;

/// Keeps from the client what it did not ask for.
#[derive(Debug, Default)]
pub(super) struct OwnUsage(UsageFilter);

impl OwnUsage {
    /// What passes of the next piece, and of what was held back before; may be nothing yet.
    pub(super) fn pass(&mut self, piece: &[u8]) -> Bytes {
        let mut passed = Vec::with_capacity(piece.len());
        self.0.filter(piece, &mut passed);
        Bytes::from(passed)
    }

    /// What is left when nothing more comes.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.0.end(&mut rest);
        rest
    }
}
