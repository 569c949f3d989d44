//! Takes the requests of logs one by one and sums up what they have in common.

use isotherm_wire::api::Api;
use isotherm_wire::request::Described;

use crate::Analysis;
use crate::breaks::{Breaks, Shared};
use crate::calibration::Beliefs;
use crate::chain::{Block, TEXT_BLOCK_BYTES, extend, tokens, units};
use crate::clients::Clients;
use crate::entry::{Content, Entry, Microseconds};
use crate::findings::{Break, Findings, KeyFindings, Sharing, TokenSource};
use crate::kept::Kept;
use crate::known::Known;
use crate::lengths::Lengths;
use crate::logs::LogCounts;
use crate::note::Note;
use crate::prefixes::{Prefixes, of_chain, of_text};
use crate::prompt::{PlaceKind, Prompt, Role};
use crate::reuse::Reuse;

/// Blocks of which the reuse is kept track of: about 100 MB.
const TRACKED_BLOCKS: usize = 1 << 20;

/// Hashes that are remembered, at least.
const REMEMBERED: usize = 1 << 20;

/// How many breaks and how many hot prefixes are told.
const TOLD: usize = 10;

/// A break that costs less is not told: requests, and share of all prompt tokens.
const LEAST_BREAK: (u64, f64) = (2, 0.001);

/// What is known so far.
#[derive(Debug)]
pub(crate) struct Analyst {
    requests: u64,
    times: Times,
    prompt_lengths: Lengths,
    shared_lengths: Lengths,
    reuse: Reuse,
    prefixes: Prefixes,
    kept: Kept,
    /// Blocks of prompts that came as chains.
    known: Known,
    /// The ends of prompts: what a later prompt has behind one is the answer.
    ends: Known,
    most_simulated: usize,
    text: Option<Text>,
    keys: Option<Keys>,
    beliefs: Beliefs,
    counted: Counted,
    keep_text: bool,
    prompt: Prompt,
    blocks: Vec<Block>,
    scratch: Vec<u8>,
    wrong_bodies: u64,
}

/// What only text tells.
#[derive(Debug)]
struct Text {
    requests: u64,
    breaks: Breaks,
    clients: Clients,
    repaired_units: u64,
    /// The repaired prompts, for the simulator, and their ends.
    repaired: Kept,
    repaired_ends: Known,
    native: u64,
}

/// What keys tell.
#[derive(Debug)]
struct Keys {
    requests: u64,
    distinct: Prefixes,
    reuse: Reuse,
}

#[derive(Debug, Default)]
struct Times {
    first: Option<Microseconds>,
    last: Option<Microseconds>,
    without: u64,
}

/// Sums of what engines counted, beside what was estimated.
#[derive(Debug, Default)]
struct Counted {
    /// Requests whose prompts are known as chains of blocks.
    chains: u64,
    /// Units of all prompts, and of those whose length was estimated.
    units: u64,
    estimated_units: u64,
    /// Of the estimated ones with a count beside them.
    compared_units: u64,
    compared_tokens: u64,
    /// Of the requests with a report of both.
    reported_prompt: u64,
    reported_cached: u64,
    outputs: u64,
}

impl Analyst {
    /// Keeps so many requests for the simulator, and examples of text if asked to.
    pub(crate) fn new(most_simulated: usize, keep_text: bool) -> Analyst {
        Analyst {
            requests: 0,
            times: Times::default(),
            prompt_lengths: Lengths::new(),
            shared_lengths: Lengths::new(),
            reuse: Reuse::new(TRACKED_BLOCKS),
            prefixes: Prefixes::new(),
            kept: Kept::new(most_simulated),
            known: Known::new(REMEMBERED),
            ends: Known::new(REMEMBERED),
            most_simulated,
            text: None,
            keys: None,
            beliefs: Beliefs::default(),
            counted: Counted::default(),
            keep_text,
            prompt: Prompt::default(),
            blocks: Vec::new(),
            scratch: Vec::new(),
            wrong_bodies: 0,
        }
    }

    /// Takes the next request.
    pub(crate) fn take(&mut self, entry: Entry) {
        match &entry.content {
            Content::Body { api, bytes } => {
                if self.take_body(&entry, *api, bytes).is_none() {
                    self.wrong_bodies += 1;
                    return;
                }
            }
            Content::Chain(blocks) => self.take_chain(&entry, blocks, None),
            Content::KeyedChain(blocks, key) => self.take_chain(&entry, blocks, Some(*key)),
            Content::Key(key) => self.take_key(&entry, *key),
        }
        self.requests += 1;
        self.times.take(entry.at);
        self.counted.outputs += u64::from(entry.output_tokens.is_some());
        if let (Some(prompt), Some(cached)) = (entry.prompt_tokens, entry.cached_tokens) {
            self.counted.reported_prompt += prompt;
            self.counted.reported_cached += cached.min(prompt);
            if let Some(believed) = entry.believed_tokens {
                self.beliefs.take(prompt, believed, cached);
            }
        }
    }

    fn take_body(&mut self, entry: &Entry, api: Api, body: &[u8]) -> Option<()> {
        let described = self.prompt.fill(body, api).ok()?;
        let scope = scope(&described);
        self.prompt.chain(scope, &mut self.blocks);
        let native = (api == Api::Invocations).then_some(body);
        let prefixes = of_text(&self.prompt, native, scope, &mut self.scratch);
        self.prefixes.take(&prefixes, None);
        let (keep_text, most_simulated) = (self.keep_text, self.most_simulated);
        let text = self.text.get_or_insert_with(|| Text {
            requests: 0,
            breaks: Breaks::new(keep_text),
            clients: Clients::default(),
            repaired_units: 0,
            repaired: Kept::new(most_simulated),
            repaired_ends: Known::new(REMEMBERED),
            native: 0,
        });
        text.requests += 1;
        text.native += u64::from(native.is_some());
        text.clients.take(api, body, &described, &self.prompt);
        let Shared { units, repaired_units } = text.breaks.take(&self.prompt, &self.blocks, scope);
        text.repaired_units += repaired_units;
        let (blocks, blocks_of_pieces) = text.breaks.last_repaired();
        mark_answers(&self.prompt, blocks, |piece| blocks_of_pieces[piece], &mut text.repaired_ends);
        text.repaired.take(blocks, entry.at, entry.output_tokens, entry.session);
        self.shared_lengths.add(units);
        let blocks_of = |piece: usize| {
            let piece = &self.prompt.pieces[piece];
            piece.end.saturating_sub(piece.start).div_ceil(TEXT_BLOCK_BYTES).max(1)
        };
        mark_answers(&self.prompt, &mut self.blocks, blocks_of, &mut self.ends);
        let length: u64 = self.blocks.iter().map(|block| u64::from(block.units)).sum();
        self.counted.estimated_units += length;
        if let Some(tokens) = entry.prompt_tokens {
            self.counted.compared_units += length;
            self.counted.compared_tokens += tokens;
        }
        let blocks = std::mem::take(&mut self.blocks);
        self.take_blocks(entry, &blocks);
        self.blocks = blocks;
        Some(())
    }

    fn take_chain(&mut self, entry: &Entry, blocks: &[Block], key: Option<u64>) {
        let mut blocks = blocks.to_vec();
        if entry.session.is_none() {
            keep_answers(&mut blocks, &mut self.ends);
        }
        let blocks = blocks.as_slice();
        self.prefixes.take(&of_chain(blocks), key);
        let shared = blocks.iter().take_while(|block| self.known.contains(block.hash) || block.generated);
        self.shared_lengths.add(shared.map(|block| u64::from(block.units)).sum());
        blocks.iter().for_each(|block| _ = self.known.insert(block.hash));
        self.take_blocks(entry, blocks);
    }

    fn take_blocks(&mut self, entry: &Entry, blocks: &[Block]) {
        let length = blocks.iter().map(|block| u64::from(block.units)).sum();
        self.counted.chains += 1;
        self.counted.units += length;
        self.prompt_lengths.add(length);
        self.reuse.take(blocks, entry.at);
        self.kept.take(blocks, entry.at, entry.output_tokens, entry.session);
    }

    fn take_key(&mut self, entry: &Entry, key: u64) {
        let keys = self.keys.get_or_insert_with(|| Keys {
            requests: 0,
            distinct: Prefixes::new(),
            reuse: Reuse::new(TRACKED_BLOCKS / 4),
        });
        keys.requests += 1;
        let hash = extend(0, &key.to_le_bytes());
        let block = Block { hash, units: units(1), characters: u32::MAX, generated: false };
        keys.distinct.take(&of_chain(&[block]), None);
        keys.reuse.take(&[block], entry.at);
        let length =
            entry.prompt_tokens.map_or(0, |tokens| u64::from(units(u32::try_from(tokens).unwrap_or(u32::MAX))));
        self.counted.units += length;
        self.prompt_lengths.add(length);
    }

    /// What was found, and what a simulator can replay.
    pub(crate) fn finish(self, logs: Vec<LogCounts>, out_of_order: u64) -> Analysis {
        let factor = self.counted.factor();
        let total = tokens(self.counted.units) * factor;
        let has_chains = self.counted.chains > 0;
        let mut notes = self.notes(out_of_order);
        if let Some(keys) = &self.keys {
            notes.push(Note::KeysOnly { all: keys.requests == self.requests });
        }
        let breaks = self.text.as_ref().map(|text| self.breaks_of(text, factor, total));
        let sharing = has_chains.then(|| Sharing {
            infinite_hit_rate: self.reuse.hit_rate(f64::INFINITY),
            repaired_hit_rate: self.text.as_ref().filter(|text| text.requests == self.requests).map(|text| {
                let repaired = text.repaired_units as f64 / self.counted.units.max(1) as f64;
                repaired.max(self.reuse.hit_rate(f64::INFINITY).value)
            }),
            shared_lengths: self.shared_lengths.distribution(factor),
            reuse_seconds: self.reuse.seconds(),
            curve: self.reuse.curve(factor),
            sampled_share: self.reuse.sampled_share(),
        });
        let reported = self.counted.reported_cached as f64 / self.counted.reported_prompt.max(1) as f64;
        let findings = Findings {
            logs,
            requests: self.requests,
            span_seconds: self.times.span(),
            prompt_tokens: total,
            tokens_are: self.counted.source(),
            prompt_lengths: self.prompt_lengths.distribution(factor),
            sharing,
            prefixes: if has_chains { self.prefixes.by_length() } else { Vec::new() },
            hot_prefixes: self.prefixes.hottest(TOLD / 2),
            breaks,
            clients: self.text.as_ref().map(|text| text.clients.found()),
            keys: self.keys.as_ref().map(Keys::found),
            reported_hit_rate: (self.counted.reported_prompt > 0).then_some(reported),
            calibration: self.beliefs.found(),
            notes,
        };
        let repaired = self.text.filter(|text| text.requests == self.requests).map(|text| text.repaired);
        Analysis { findings, kept: self.kept, repaired, token_factor: factor }
    }

    fn breaks_of(&self, text: &Text, factor: f64, total: f64) -> Vec<Break> {
        let told = |site: &crate::breaks::Site| {
            let lost = tokens(site.lost_units) * factor;
            Break {
                cause: site.cause,
                place: site.place.to_string(),
                characters: site.offsets,
                requests: site.requests,
                share: site.requests as f64 / text.requests.max(1) as f64,
                lost_tokens_each: lost / site.requests.max(1) as f64,
                lost_hit_rate: lost / total.max(1.0),
                advice: site.cause.advice(),
                example: site.example.clone(),
            }
        };
        let mut breaks: Vec<Break> = text.breaks.worst(TOLD).iter().map(told).collect();
        breaks.retain(|found| found.requests >= LEAST_BREAK.0 && found.lost_hit_rate >= LEAST_BREAK.1);
        breaks
    }

    fn notes(&self, out_of_order: u64) -> Vec<Note> {
        let mut notes = Vec::new();
        if self.wrong_bodies > 0 {
            notes.push(Note::WrongBodies { bodies: self.wrong_bodies });
        }
        if out_of_order > 0 {
            notes.push(Note::OutOfOrder { requests: out_of_order });
        }
        if self.known.forgot() || self.text.as_ref().is_some_and(|text| text.breaks.forgot()) {
            notes.push(Note::Forgot);
        }
        let text = self.text.as_ref().map_or(0, |text| text.requests);
        if text == 0 && self.counted.chains > 0 {
            notes.push(Note::NoText);
        }
        if self.text.as_ref().is_some_and(|text| text.native > 0) {
            notes.push(Note::NativeBodies);
        }
        notes
    }
}

impl Keys {
    fn found(&self) -> KeyFindings {
        KeyFindings {
            requests: self.requests,
            distinct: self.distinct.by_length().first().map_or(0, |count| count.distinct),
            repeated: self.reuse.hit_rate(f64::INFINITY),
            reuse_seconds: self.reuse.seconds(),
        }
    }
}

impl Times {
    fn take(&mut self, at: Option<Microseconds>) {
        let Some(at) = at else {
            self.without += 1;
            return;
        };
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = self.last.max(Some(at));
    }

    fn span(&self) -> Option<f64> {
        let (first, last) = self.first.zip(self.last)?;
        (self.without == 0).then_some((last - first) as f64 / 1e6)
    }
}

impl Counted {
    /// By what estimated lengths are multiplied.
    fn factor(&self) -> f64 {
        let estimated = tokens(self.compared_units);
        if estimated > 0.0 && self.compared_tokens > 0 { self.compared_tokens as f64 / estimated } else { 1.0 }
    }

    fn source(&self) -> TokenSource {
        match () {
            () if self.estimated_units == 0 => TokenSource::Recorded,
            () if self.compared_units > 0 => TokenSource::Scaled,
            () => TokenSource::Estimated,
        }
    }
}

/// What separates caches: the model, the adapter and the salts.
fn scope(described: &Described<'_>) -> u64 {
    let fields = [&described.model, &described.adapter, &described.cache_salt, &described.extra_key];
    fields.into_iter().fold(0, |scope, field| {
        let field = field.as_deref().unwrap_or_default();
        extend(extend(scope, &(field.len() as u64).to_le_bytes()), field.as_bytes())
    })
}

/// Of the blocks that may be answers, keeps those for it that stand where an earlier prompt ended, and remembers the end
/// of this one.
fn keep_answers(blocks: &mut [Block], ends: &mut Known) {
    let mut before = None;
    let (mut in_answer, mut follows) = (false, false);
    for block in blocks.iter_mut() {
        if block.generated && !in_answer {
            follows = before.is_some_and(|before| ends.contains(before));
        }
        in_answer = block.generated;
        block.generated &= follows;
        before = Some(block.hash);
    }
    if let Some(last) = blocks.last() {
        ends.insert(last.hash);
    }
}

/// Marks the messages of the assistant that stand where an earlier prompt ended, and remembers the end of this one.
/// `blocks_of` tells how many blocks a piece has, by its number.
fn mark_answers(prompt: &Prompt, blocks: &mut [Block], blocks_of: impl Fn(usize) -> usize, ends: &mut Known) {
    let mut at = 0_usize;
    let mut answer = None;
    for (number, piece) in prompt.pieces.iter().enumerate() {
        let count = blocks_of(number);
        let place = piece.place();
        let is_assistant = place.kind == PlaceKind::Message && place.role == Role::Assistant;
        if is_assistant && answer != place.message {
            let follows = at.checked_sub(1).and_then(|last| blocks.get(last));
            answer = follows.filter(|last| ends.contains(last.hash)).and(place.message);
        }
        if is_assistant && answer == place.message {
            blocks[at..at + count].iter_mut().for_each(|block| block.generated = true);
        }
        at += count;
    }
    if let Some(last) = blocks.last() {
        ends.insert(last.hash);
    }
}
