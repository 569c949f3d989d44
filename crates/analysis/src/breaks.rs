//! What keeps prompts from sharing more of their beginnings: where a prompt parts from all earlier ones although what
//! follows there is known, and why.
//!
//! Each prompt is compared with the earlier ones twice: as it is, and repaired, with volatile text masked and tools in one
//! order and spelling. What the repaired prompt shares beyond the other is what the first difference costs. Where neither
//! shares more, but sentences behind the difference are known, the text between is what differs.

mod cause;
mod sentences;
mod site;

use isotherm_wire::request::Mark;

pub use self::cause::Cause;
pub(crate) use self::site::Site;
use self::site::{Offset, SiteKey, Sites};
use crate::chain::{Block, TEXT_BLOCK_BYTES, UNITS_PER_TOKEN, extend};
use crate::known::Known;
use crate::prompt::{Piece, Prompt, chain_piece};
use crate::tools::{Canonical, Tools};
use crate::volatile::{self, Volatile};

/// Hashes that are remembered of each kind, at least: 16 to 32 MiB each.
const REMEMBERED: usize = 1 << 20;

/// A loss below this is chance, in tokens.
const LEAST_LOSS_TOKENS: u32 = 32;

/// Compares prompts with the earlier ones.
#[derive(Debug)]
pub(crate) struct Breaks {
    known: Known,
    repaired: Known,
    sentences: Known,
    /// Each beginning of the first block that a prompt did not share.
    beginnings: Known,
    tools: Tools,
    sites: Sites,
    keep_text: bool,
    scratch: Scratch,
}

/// Memory that is used again for each prompt.
#[derive(Debug, Default)]
struct Scratch {
    /// Of the repaired prompt, and how many each of its pieces has.
    blocks: Vec<Block>,
    blocks_of_pieces: Vec<usize>,
    text: Vec<u8>,
    volatile: Vec<Volatile>,
}

/// How far a prompt is known from earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shared {
    /// Of the prompt as it is.
    pub(crate) units: u64,
    /// If it were repaired.
    pub(crate) repaired_units: u64,
}

/// The first block of a prompt that no earlier one has.
struct Difference<'p> {
    piece: usize,
    of: &'p Piece,
    /// Where in the piece's text the block begins.
    offset: usize,
}

/// What differs, within the piece's text.
struct Found {
    start: usize,
    end: usize,
    /// It begins to differ at `start`; otherwise somewhere behind.
    is_exact: bool,
}

impl Found {
    fn exactly((start, end): (usize, usize)) -> Found {
        Found { start, end, is_exact: true }
    }
}

impl Breaks {
    /// `keep_text` keeps an example of the text at each place.
    pub(crate) fn new(keep_text: bool) -> Breaks {
        Breaks {
            known: Known::new(REMEMBERED),
            repaired: Known::new(REMEMBERED),
            sentences: Known::new(REMEMBERED),
            beginnings: Known::new(REMEMBERED),
            tools: Tools::default(),
            sites: Sites::default(),
            keep_text,
            scratch: Scratch::default(),
        }
    }

    /// Takes a prompt and its blocks, which are chained from `scope` on.
    pub(crate) fn take(&mut self, prompt: &Prompt, blocks: &[Block], scope: u64) -> Shared {
        let mut scratch = std::mem::take(&mut self.scratch);
        let count = blocks.iter().take_while(|block| self.known.contains(block.hash)).count();
        let units: u64 = blocks[..count].iter().map(|block| u64::from(block.units)).sum();
        let repaired_units = self.repaired_units(prompt, scope, &mut scratch);
        if let Some(difference) = difference(prompt, count) {
            let before = count.checked_sub(1).map_or(scope, |last| blocks[last].hash);
            let parted = self.parted(prompt, &difference, before);
            self.explain(prompt, &difference, parted, repaired_units.saturating_sub(units), &mut scratch);
        }
        blocks.iter().for_each(|block| _ = self.known.insert(block.hash));
        scratch.blocks.iter().for_each(|block| _ = self.repaired.insert(block.hash));
        self.remember_sentences(prompt, count);
        self.scratch = scratch;
        Shared { units, repaired_units: repaired_units.max(units) }
    }

    /// The blocks of the last prompt, repaired, and how many each of its pieces has.
    pub(crate) fn last_repaired(&mut self) -> (&mut [Block], &[usize]) {
        (&mut self.scratch.blocks, &self.scratch.blocks_of_pieces)
    }

    /// The places that cost most, the worst first.
    pub(crate) fn worst(&self, count: usize) -> Vec<Site> {
        self.sites.worst(count)
    }

    /// Earlier prompts have been forgotten, so some of what was shared is not known to be.
    pub(crate) fn forgot(&self) -> bool {
        self.known.forgot()
    }

    /// How much of the repaired prompt is known. Leaves its blocks.
    fn repaired_units(&mut self, prompt: &Prompt, scope: u64, scratch: &mut Scratch) -> u64 {
        let Scratch { blocks, blocks_of_pieces, text, volatile } = scratch;
        blocks.clear();
        blocks_of_pieces.clear();
        let mut hash = scope;
        for piece in &prompt.pieces {
            text.clear();
            if piece.mark == Mark::Tools {
                text.extend_from_slice(&self.tools.canonical(prompt.text(piece)).text);
            } else {
                volatile::find(prompt.text(piece), volatile);
                volatile::mask(prompt.text(piece), volatile, text);
            }
            let before = blocks.len();
            hash = chain_piece(hash, piece, text, blocks);
            blocks_of_pieces.push(blocks.len() - before);
        }
        let known = blocks.iter().take_while(|block| self.repaired.contains(block.hash));
        known.map(|block| u64::from(block.units)).sum()
    }

    /// Finds the reason for a difference and notes what it costs.
    fn explain(
        &mut self,
        prompt: &Prompt,
        difference: &Difference<'_>,
        parted: Option<usize>,
        loss: u64,
        scratch: &mut Scratch,
    ) {
        let least = u64::from(LEAST_LOSS_TOKENS * UNITS_PER_TOKEN);
        let text = prompt.text(difference.of);
        if difference.of.mark == Mark::Tools && loss >= least {
            let canonical = self.tools.canonical(text);
            let (cause, at) = self.cause_within_tools(&canonical, text, difference.offset, scratch);
            self.note(prompt, difference, cause, Found::exactly(at), loss);
            return;
        }
        volatile::find(text, &mut scratch.volatile);
        if loss >= least {
            let reached = difference.offset + TEXT_BLOCK_BYTES;
            let candidates = scratch.volatile.iter().filter(|found| found.end > difference.offset);
            for found in candidates.filter(|found| found.start < reached) {
                let key = SiteKey { place: difference.of.place(), cause: found.kind.into() };
                let value = extend(0, &text[found.start..found.end]);
                if self.sites.changes(key, masked_offset(found.start, &scratch.volatile), value) {
                    let at = Found::exactly((found.start, found.end));
                    self.note(prompt, difference, found.kind.into(), at, loss);
                    return;
                }
            }
        }
        let behind = sentences::known_behind(prompt, difference.piece, difference.offset, &self.sentences);
        if behind.units >= least.max(loss) {
            let cause = match (difference.of.mark, behind.difference_is_known) {
                (Mark::Message | Mark::System, true) => Cause::OtherRole,
                (_, true) => Cause::OtherOrder,
                (_, false) => Cause::OtherText,
            };
            // Of what came before elsewhere, the whole sentence is what stands in the way.
            let sentence = Found::exactly(behind.difference);
            let found = match (cause, parted) {
                (Cause::OtherText, Some(start)) => Found { start, ..sentence },
                (Cause::OtherText, None) => Found { is_exact: false, ..sentence },
                _ => sentence,
            };
            self.note(prompt, difference, cause, found, behind.units);
        }
    }

    /// Where in the piece the first block that is new parts from the earlier ones that stood there; `None` where none is
    /// known. Remembers its beginnings.
    fn parted(&mut self, prompt: &Prompt, difference: &Difference<'_>, before: u64) -> Option<usize> {
        let text = prompt.text(difference.of).get(difference.offset..).unwrap_or_default();
        let block = &text[..text.len().min(TEXT_BLOCK_BYTES)];
        let place = extend(before, &[difference.of.mark as u8]);
        let is_boundary = |at: &usize| block.get(*at).is_none_or(|byte| byte & 0b1100_0000 != 0b1000_0000);
        let mut known = None;
        for at in (0..=block.len()).filter(is_boundary) {
            if !self.beginnings.insert(extend(place, &block[..at])) {
                known = Some(difference.offset + at);
            }
        }
        known
    }

    fn cause_within_tools(
        &self,
        canonical: &Canonical,
        text: &[u8],
        offset: usize,
        scratch: &mut Scratch,
    ) -> (Cause, (usize, usize)) {
        if self.tools.came_in_other_orders(canonical) {
            return (Cause::ToolOrder, (offset, offset));
        }
        volatile::find(text, &mut scratch.volatile);
        let reached = offset + TEXT_BLOCK_BYTES;
        match scratch.volatile.iter().find(|found| found.end > offset && found.start < reached) {
            Some(found) if found.kind != volatile::VolatileKind::Number => {
                (found.kind.into(), (found.start, found.end))
            }
            _ => (Cause::ToolSpelling, (offset, offset)),
        }
    }

    fn note(&mut self, prompt: &Prompt, difference: &Difference<'_>, cause: Cause, found: Found, loss: u64) {
        let text = prompt.text(difference.of);
        let key = SiteKey { place: difference.of.place(), cause };
        let offset = prompt.characters_before(difference.piece, found.start);
        let end = found.end.min(found.start + 80).max(found.start);
        let example = self.keep_text.then(|| String::from_utf8_lossy(&text[found.start..end]).into_owned());
        self.sites.note(key, Offset { characters: offset, is_exact: found.is_exact }, loss, example);
    }

    /// Remembers the sentences of what was not known of the prompt.
    fn remember_sentences(&mut self, prompt: &Prompt, known_blocks: usize) {
        let Some(difference) = difference(prompt, known_blocks) else { return };
        for (number, piece) in prompt.pieces.iter().enumerate().skip(difference.piece) {
            let from = if number == difference.piece { difference.offset } else { 0 };
            sentences::each(prompt.text(piece), from, |sentence| {
                self.sentences.insert(sentences::hash(&prompt.text(piece)[sentence]));
            });
        }
    }
}

/// Where a prompt parts from the earlier ones of which it has so many blocks; `None` if it has them all.
fn difference(prompt: &Prompt, known_blocks: usize) -> Option<Difference<'_>> {
    let mut left = known_blocks;
    for (number, piece) in prompt.pieces.iter().enumerate() {
        let blocks = (piece.end - piece.start).div_ceil(TEXT_BLOCK_BYTES).max(1);
        if left < blocks {
            return Some(Difference { piece: number, of: piece, offset: left * TEXT_BLOCK_BYTES });
        }
        left -= blocks;
    }
    None
}

/// Where a volatile text stands once those before it are masked: the same for all lengths that they may have.
fn masked_offset(start: usize, volatile: &[Volatile]) -> usize {
    let before = volatile.iter().take_while(|found| found.end <= start);
    start - before.map(|found| found.end - found.start - 1).sum::<usize>()
}

#[cfg(test)]
mod tests;
