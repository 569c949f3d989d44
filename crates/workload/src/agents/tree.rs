//! Finds out from the hashes of blocks which pieces prompts are made of: the tree of what they have in common.
//!
//! A prompt is a path of blocks. Two things must not fall inside a piece: the place where two prompts part, and the end
//! of a prompt that a later one continues, since the answer begins there. The few tokens behind a prompt's last full
//! block, and its answer, have no hash of their own: if a later prompt continues it, they are the same tokens there.

use std::collections::{BTreeSet, HashMap, HashSet};

/// A prompt as it was recorded.
pub(crate) struct Prompt<'a> {
    /// The hashes of its full blocks.
    pub(crate) blocks: &'a [u64],
    /// Its length, at least 1.
    pub(crate) tokens: u32,
    /// Its answer's length, at least 1.
    pub(crate) output_tokens: u32,
}

/// All pieces of a session, each continuing another.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tree {
    pub(crate) branches: Vec<Branch>,
    pub(crate) requests: Vec<Request>,
}

/// One piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Branch {
    /// The piece that it continues; `None` at the beginning of a prompt.
    before: Option<usize>,
    pub(crate) tokens: u32,
}

/// Where one request is in the tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Request {
    /// The last piece of the prompt.
    pub(crate) prompt_end: usize,
    /// The piece that is the answer.
    pub(crate) output: usize,
}

impl Tree {
    /// The tree of a session's prompts, which are in the order of their times. `opening` is where in a prompt tool
    /// definitions and system prompt end; there pieces end too.
    pub(crate) fn of(prompts: &[Prompt<'_>], block_tokens: u32, opening: [u32; 2]) -> Tree {
        let paths = Paths::of(prompts, block_tokens);
        let cuts = paths.cuts(opening);
        let places: BTreeSet<u32> = cuts.iter().map(|(_, place)| *place).collect();
        let (mut tree, mut known) = (Tree::default(), HashMap::new());
        for (number, prompt) in prompts.iter().enumerate() {
            let mut before = None;
            let mut begin = 0;
            for &end in places.range(..=prompt.tokens) {
                let cut = (paths.block_at(number, end - 1), end);
                if cuts.contains(&cut) {
                    let branch = Branch { before, tokens: end - begin };
                    before = Some(*known.entry(cut).or_insert_with(|| tree.grow(branch)));
                    begin = end;
                }
            }
            let end = prompt.tokens + prompt.output_tokens;
            let answer = Branch { before, tokens: prompt.output_tokens };
            let whole = places.range(prompt.tokens + 1..end).all(|&place| {
                let inside = (paths.block_at(number, place - 1), place);
                !cuts.contains(&inside)
            });
            let output = if paths.is_answer_repeated(number) && whole {
                *known.entry((paths.block_at(number, end - 1), end)).or_insert_with(|| tree.grow(answer))
            } else {
                tree.grow(answer)
            };
            // A prompt has at least one token, and every prompt's end is a cut.
            tree.requests.push(Request { prompt_end: before.unwrap_or(output), output });
        }
        tree
    }

    fn grow(&mut self, branch: Branch) -> usize {
        self.branches.push(branch);
        self.branches.len() - 1
    }

    /// The pieces that end with this one and their lengths, the last first.
    pub(crate) fn path(&self, end: usize) -> impl Iterator<Item = (usize, u32)> {
        let before = |&number: &usize| self.branches[number].before;
        std::iter::successors(Some(end), before).map(|number| (number, self.branches[number].tokens))
    }
}

/// Names a block together with all that is before it.
type Block = usize;

/// A place at which a piece ends: the block that it ends in, and how many tokens are before the place.
type Cut = (Block, u32);

/// The prompts as paths of blocks.
struct Paths<'a> {
    prompts: &'a [Prompt<'a>],
    block_tokens: u32,
    /// For each prompt its full blocks.
    blocks: Vec<Vec<Block>>,
    /// For each prompt the first later one that begins with all its full blocks and is no shorter.
    continued_by: Vec<Option<usize>>,
    /// How many different full blocks there are; higher names are what follows the full blocks of a prompt that
    /// nothing continues.
    full_blocks: usize,
}

impl<'a> Paths<'a> {
    fn of(prompts: &'a [Prompt<'a>], block_tokens: u32) -> Paths<'a> {
        let mut names = HashMap::new();
        let mut name = |before: Option<Block>, hash| {
            let next = names.len();
            *names.entry((before, hash)).or_insert(next)
        };
        let mut blocks = Vec::with_capacity(prompts.len());
        for prompt in prompts {
            let mut before = None;
            let path = prompt.blocks.iter().map(|&hash| {
                let block = name(before, hash);
                before = Some(block);
                block
            });
            blocks.push(path.collect());
        }
        let continued_by = (0..prompts.len()).map(|number| continuation(prompts, &blocks, number)).collect();
        Paths { prompts, block_tokens, blocks, continued_by, full_blocks: names.len() }
    }

    /// The block of a prompt, or of what follows it, that holds the token at a place.
    fn block_at(&self, prompt: usize, place: u32) -> Block {
        let index = (place / self.block_tokens) as usize;
        let mut prompt = prompt;
        loop {
            if let Some(block) = self.blocks[prompt].get(index) {
                return *block;
            }
            match self.continued_by[prompt] {
                Some(next) => prompt = next,
                None => return self.full_blocks + prompt,
            }
        }
    }

    /// Whether the prompt that continues this one is long enough to hold its answer.
    fn is_answer_repeated(&self, number: usize) -> bool {
        let Prompt { tokens, output_tokens, .. } = self.prompts[number];
        self.continued_by[number].is_some_and(|next| self.prompts[next].tokens >= tokens + output_tokens)
    }

    /// Where pieces end: behind tool definitions and system prompt, where prompts part, and around answers.
    fn cuts(&self, opening: [u32; 2]) -> HashSet<Cut> {
        let (mut cuts, mut followers) = (HashSet::new(), HashMap::new());
        for (number, prompt) in self.prompts.iter().enumerate() {
            let mut cut = |place| cuts.insert((self.block_at(number, place - 1), place));
            opening.into_iter().filter(|place| (1..=prompt.tokens).contains(place)).for_each(|place| {
                cut(place);
            });
            cut(prompt.tokens);
            if self.is_answer_repeated(number) {
                cut(prompt.tokens + prompt.output_tokens);
            }
            for place in (self.block_tokens..prompt.tokens).step_by(self.block_tokens as usize) {
                let (block, next) = (self.block_at(number, place - 1), self.block_at(number, place));
                if *followers.entry(block).or_insert(next) != next {
                    cut(place);
                }
            }
        }
        cuts
    }
}

/// The first later prompt that begins with all full blocks of this one and is no shorter.
fn continuation(prompts: &[Prompt<'_>], blocks: &[Vec<Block>], number: usize) -> Option<usize> {
    let own = &blocks[number];
    (number + 1..prompts.len())
        .find(|&later| prompts[later].tokens >= prompts[number].tokens && blocks[later].starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::{Prompt, Tree};

    const PROMPT: Prompt<'static> = Prompt { blocks: &[], tokens: 1, output_tokens: 1 };

    /// The pieces of every prompt, each as number and length, and the number of its answer.
    fn pieces(prompts: &[Prompt<'_>], opening: [u32; 2]) -> Vec<(Vec<(usize, u32)>, usize)> {
        let tree = Tree::of(prompts, 10, opening);
        let pieces = tree.requests.iter().map(|request| {
            let mut path: Vec<(usize, u32)> = tree.path(request.prompt_end).collect();
            path.reverse();
            (path, request.output)
        });
        pieces.collect()
    }

    #[test]
    fn an_answer_is_found_in_the_prompt_that_continues() {
        let found = pieces(
            &[
                Prompt { blocks: &[1, 2], tokens: 24, output_tokens: 13 },
                Prompt { blocks: &[1, 2, 3, 4, 5], tokens: 55, output_tokens: 5 },
            ],
            [0, 0],
        );
        assert_eq!(found[0], (vec![(0, 24)], 1));
        assert_eq!(found[1].0, [(0, 24), (1, 13), (2, 18)]);
    }

    #[test]
    fn an_answer_that_does_not_fit_into_the_next_prompt_is_in_none() {
        let found = pieces(
            &[
                Prompt { blocks: &[1, 2], tokens: 24, output_tokens: 90 },
                Prompt { blocks: &[1, 2, 3], tokens: 33, output_tokens: 5 },
            ],
            [0, 0],
        );
        assert_eq!(found[0], (vec![(0, 24)], 1));
        assert_eq!(found[1], (vec![(0, 24), (2, 9)], 3));
    }

    #[test]
    fn prompts_part_where_their_blocks_do() {
        let found = pieces(
            &[
                Prompt { blocks: &[1, 2, 3], tokens: 35, output_tokens: 1 },
                Prompt { blocks: &[1, 2, 4], tokens: 30, output_tokens: 1 },
                Prompt { blocks: &[1, 2], tokens: 20, output_tokens: 1 },
                Prompt { blocks: &[9], tokens: 12, output_tokens: 1 },
            ],
            [0, 0],
        );
        let prompts: Vec<&[(usize, u32)]> = found.iter().map(|(prompt, _)| prompt.as_slice()).collect();
        assert_eq!(prompts, [&[(0, 20), (1, 15)][..], &[(0, 20), (3, 10)], &[(0, 20)], &[(6, 12)]]);
    }

    #[test]
    fn tools_and_system_prompt_are_pieces_of_their_own() {
        let found = pieces(&[Prompt { blocks: &[1, 2, 3], tokens: 35, output_tokens: 1 }], [7, 19]);
        assert_eq!(found[0].0, [(0, 7), (1, 12), (2, 16)]);
    }

    #[test]
    fn equal_hashes_behind_different_blocks_are_different_text() {
        let found = pieces(
            &[Prompt { blocks: &[1, 7], tokens: 20, ..PROMPT }, Prompt { blocks: &[2, 7], tokens: 20, ..PROMPT }],
            [0, 0],
        );
        assert_ne!(found[0].0, found[1].0);
    }
}
