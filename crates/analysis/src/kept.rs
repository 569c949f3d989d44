//! The part of a log that the simulator replays: what its prompts have in common as a tree of blocks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use isotherm_workload::{Piece, PieceId, PlannedRequest, Recorded, RecordedRequest, SessionId, TenantId};

use crate::chain::{Block, UNITS_PER_TOKEN};
use crate::entry::{Microseconds, Session};
use crate::known::AlreadyHashed;

/// How many different blocks are kept at most, at some 50 bytes each.
const MOST_BLOCKS: usize = 2 << 20;

/// What an answer is taken to have where nobody knows, in tokens.
pub(crate) const ASSUMED_OUTPUT_TOKENS: u32 = 200;

/// The first requests of a log.
#[derive(Debug)]
pub(crate) struct Kept {
    nodes: Vec<Node>,
    by_hash: HashMap<u64, u32, AlreadyHashed>,
    requests: Vec<Request>,
    most_requests: usize,
    /// Requests that came when there was no room any more.
    left_out: u64,
}

/// A block and the one before it.
#[derive(Clone, Copy, Debug)]
struct Node {
    hash: u64,
    parent: u32,
    units: u32,
    characters: u32,
    /// How many blocks continue it: none, one, or more.
    children: u8,
    /// A prompt ends here.
    is_end: bool,
    /// Generated as an answer by an engine.
    generated: bool,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    at: Option<Microseconds>,
    /// The last block of its prompt.
    end: u32,
    output_tokens: Option<u32>,
    session: Option<Session>,
}

/// No block: a prompt begins.
const ROOT: u32 = u32::MAX;

impl Kept {
    pub(crate) fn new(most_requests: usize) -> Kept {
        Kept { nodes: Vec::new(), by_hash: HashMap::default(), requests: Vec::new(), most_requests, left_out: 0 }
    }

    /// Keeps a request while there is room.
    pub(crate) fn take(
        &mut self,
        blocks: &[Block],
        at: Option<Microseconds>,
        output_tokens: Option<u32>,
        session: Option<Session>,
    ) {
        let is_full = self.requests.len() >= self.most_requests || self.nodes.len() + blocks.len() > MOST_BLOCKS;
        if blocks.is_empty() || self.left_out > 0 || is_full {
            self.left_out += u64::from(!blocks.is_empty());
            return;
        }
        let mut end = ROOT;
        for block in blocks {
            end = self.node(block, end);
        }
        self.nodes[end as usize].is_end = true;
        self.requests.push(Request { at, end, output_tokens, session });
    }

    fn node(&mut self, block: &Block, parent: u32) -> u32 {
        if let Some(known) = self.by_hash.get(&block.hash) {
            return *known;
        }
        let number = self.nodes.len() as u32;
        let Block { hash, units, characters, generated } = *block;
        self.nodes.push(Node { hash, parent, units, characters, children: 0, is_end: false, generated });
        self.by_hash.insert(hash, number);
        if let Some(parent) = self.nodes.get_mut(parent as usize) {
            parent.children = parent.children.saturating_add(1);
        }
        number
    }

    /// Requests that are not among those kept.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Not every answer's length is known.
    pub(crate) fn some_outputs_unknown(&self) -> bool {
        self.requests.iter().any(|request| request.output_tokens.is_none())
    }

    /// From the first to the last of the requests; `None` unless each has a time.
    pub(crate) fn span(&self) -> Option<Duration> {
        let times: Option<Vec<Microseconds>> = self.requests.iter().map(|request| request.at).collect();
        let times = times?;
        let (first, last) = (times.iter().min()?, times.iter().max()?);
        Some(Duration::from_micros(last.saturating_sub(*first) as u64))
    }

    /// As what a simulation can replay. Estimated tokens are multiplied by `factor`; `users` and their pause count only
    /// where requests have no times.
    pub(crate) fn workload(&self, factor: f64, users: u32, think: Duration) -> Recorded {
        let first = self.requests.iter().filter_map(|request| request.at).min().unwrap_or_default();
        let answers = self.answers(factor);
        let is_timed = self.requests.iter().all(|request| request.at.is_some());
        let mut requests: Vec<RecordedRequest> = (0..)
            .zip(&self.requests)
            .map(|(number, request): (u64, &Request)| {
                let answer = answers.get(&request.end).copied();
                let session = request.session.map_or(number, |session| session.number);
                RecordedRequest {
                    at: request.at.filter(|_| is_timed).map(|at| Duration::from_micros((at - first).max(0) as u64)),
                    request: PlannedRequest {
                        session: SessionId(session),
                        tenant: TenantId::default(),
                        think: Duration::from_micros(request.session.map_or(0, |session| session.think)),
                        prompt: self.pieces(request.end, factor),
                        output: answer.map_or(PieceId(number | 1 << 63), |(id, _)| id),
                        output_tokens: answer
                            .map(|(_, tokens)| tokens)
                            .or(request.output_tokens)
                            .unwrap_or(ASSUMED_OUTPUT_TOKENS)
                            .max(1),
                    },
                }
            })
            .collect();
        requests.sort_by_key(|recorded| recorded.at);
        Recorded { requests: Arc::from(requests), users, think }
    }

    /// The blocks of a prompt in runs that no other prompt leaves or ends within.
    fn pieces(&self, end: u32, factor: f64) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut place = end;
        while place != ROOT {
            let (piece, before) = self.run(place, factor);
            pieces.push(piece);
            place = before;
        }
        pieces.reverse();
        pieces
    }

    /// The run that ends with a block, and the block before it.
    fn run(&self, end: u32, factor: f64) -> (Piece, u32) {
        let last = &self.nodes[end as usize];
        let (mut units, mut characters) = (u64::from(last.units), last.characters);
        let (mut generated, mut place) = (last.generated, last.parent);
        while let Some(node) = self.nodes.get(place as usize)
            && node.children == 1
            && !node.is_end
            && node.generated == generated
        {
            units += u64::from(node.units);
            characters = characters.saturating_add(node.characters);
            generated = node.generated;
            place = node.parent;
        }
        let tokens = (units as f64 * factor / f64::from(UNITS_PER_TOKEN)).round().max(1.0) as u32;
        (Piece { id: PieceId(last.hash >> 1), tokens, characters }, place)
    }

    /// For each block with which a prompt ends: the run of generated blocks that continues it, which is its answer.
    fn answers(&self, factor: f64) -> HashMap<u32, (PieceId, u32)> {
        let is_boundary = |node: &Node| node.children != 1 || node.is_end;
        let mut answers = HashMap::new();
        let mut has_generated_child = vec![false; self.nodes.len()];
        for node in self.nodes.iter().filter(|node| node.generated) {
            if let Some(parent) = has_generated_child.get_mut(node.parent as usize) {
                *parent = true;
            }
        }
        for (number, node) in (0..).zip(&self.nodes).filter(|(_, node)| node.generated) {
            let ends = is_boundary(node) || !has_generated_child[number as usize];
            if ends {
                let (piece, before) = self.run(number, factor);
                let parent_is_generated = self.nodes.get(before as usize).is_some_and(|parent| parent.generated);
                if before != ROOT && !parent_is_generated {
                    answers.entry(before).or_insert((piece.id, piece.tokens));
                }
            }
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::{extend_by_id, units};

    fn chain(ids: &[u64]) -> Vec<Block> {
        let mut hash = 0;
        ids.iter()
            .map(|id| {
                hash = extend_by_id(hash, *id);
                Block { hash, units: units(16), characters: 64, generated: *id >= 1_000 }
            })
            .collect()
    }

    fn kept(prompts: &[&[u64]]) -> Vec<RecordedRequest> {
        let mut kept = Kept::new(100);
        for (number, prompt) in (0..).zip(prompts) {
            kept.take(&chain(prompt), Some(1_000_000 * (10 - number)), Some(7), None);
        }
        kept.workload(1.0, 1, Duration::ZERO).requests.to_vec()
    }

    fn tokens(request: &RecordedRequest) -> Vec<u32> {
        request.request.prompt.iter().map(|piece| piece.tokens).collect()
    }

    #[test]
    fn prompts_are_cut_where_they_part_and_where_one_ends() {
        let mut requests = kept(&[&[1, 2, 3, 4], &[1, 2, 5, 6, 7], &[1, 2, 5]]);
        requests.reverse();
        assert_eq!(requests.iter().map(tokens).collect::<Vec<_>>(), [vec![32, 32], vec![32, 16, 32], vec![32, 16]]);
        let id = |request: usize, piece: usize| requests[request].request.prompt[piece].id;
        assert!(id(0, 0) == id(1, 0) && id(1, 1) == id(2, 1) && id(0, 1) != id(1, 1));
        assert_eq!(requests[2].at, Some(Duration::ZERO), "times count from the first");
    }

    #[test]
    fn an_answer_is_the_piece_that_a_later_prompt_has_of_it() {
        let mut requests = kept(&[&[1, 2], &[1, 2, 1_003, 1_004, 5], &[9]]);
        requests.reverse();
        let (first, second) = (&requests[0].request, &requests[1].request);
        assert_eq!(tokens(&requests[1]), [32, 32, 16]);
        assert_eq!((first.output, first.output_tokens), (second.prompt[1].id, second.prompt[1].tokens));
        assert_eq!(requests[2].request.output_tokens, 7, "what the log says, where no later prompt has it");
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let mut kept = Kept::new(1);
        (0..3).for_each(|number| kept.take(&chain(&[number]), None, None, None));
        assert_eq!((kept.requests.len(), kept.left_out(), kept.span()), (1, 2, None));
    }
}
