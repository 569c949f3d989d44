//! Server-sent events of one response, made from the engine's progress as the client takes them.
//!
//! Nothing is queued: the engine only counts tokens, and the events are written when the connection asks for more. A
//! client that does not read costs no memory; tokens that became ready together leave in one write.

use std::fmt;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};

use crate::answer::Answer;
use crate::generation::Batch;
use crate::reply::Broken;
use crate::usage::Usage;

/// Tokens in one frame at most, so that a late client does not get a huge one.
const TOKENS_PER_FRAME: u32 = 64;

/// How an API spells the events of a stream. `choice` counts the answers; each hook appends whole events.
pub(crate) trait EventFormat: fmt::Debug {
    /// Before prefill.
    fn open(&mut self, _out: &mut BytesMut) {}
    /// The first token of an answer is there.
    fn begin(&mut self, choice: usize, answer: &Answer, usage: Usage, out: &mut BytesMut);
    /// One token; `usage` counts up to and with it.
    fn piece(&mut self, choice: usize, piece: &str, usage: Usage, out: &mut BytesMut);
    /// An answer is complete.
    fn finish(&mut self, choice: usize, answer: &Answer, usage: Usage, out: &mut BytesMut);
    /// All answers are complete.
    fn close(&mut self, usage: Usage, out: &mut BytesMut);
}

/// The stream of a batch in some format.
#[derive(Debug)]
pub(crate) struct EventStream {
    batch: Batch,
    format: Box<dyn EventFormat>,
    /// For each answer, what has been sent of it.
    sent: Vec<Sent>,
    stage: Stage,
    /// Breaks the connection after that many tokens.
    die_after: Option<u32>,
    buffer: BytesMut,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    tokens: u32,
    finished: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Running,
    Dying,
    Done,
}

impl EventStream {
    pub(crate) fn new(batch: Batch, format: impl EventFormat + 'static, die_after: Option<u32>) -> Self {
        let sent = vec![Sent::default(); batch.generations().len()];
        Self { batch, format: Box::new(format), sent, stage: Stage::New, die_after, buffer: BytesMut::new() }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    pub(crate) fn usage(&self) -> Usage {
        self.batch.usage()
    }

    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        match self.stage {
            Stage::Done => return Poll::Ready(None),
            Stage::Dying => return Poll::Ready(Some(Err(Broken))),
            Stage::New => {
                self.format.open(&mut self.buffer);
                self.stage = Stage::Running;
            }
            Stage::Running => {}
        }
        if self.write_progress() {
            self.format.close(self.batch.usage(), &mut self.buffer);
            self.stage = Stage::Done;
        }
        if !self.buffer.is_empty() {
            return Poll::Ready(Some(Ok(self.buffer.split().freeze())));
        }
        if self.tokens_left_to_live() == Some(0) {
            // What was written so far is flushed before the connection breaks: hyper flushes when a body is pending.
            self.stage = Stage::Dying;
            context.waker().wake_by_ref();
        } else {
            self.batch.register(context);
        }
        Poll::Pending
    }

    /// Writes what has become ready; true when all answers are written to their end.
    fn write_progress(&mut self) -> bool {
        let mut budget = self.tokens_left_to_live().unwrap_or(u32::MAX).min(TOKENS_PER_FRAME);
        let mut all_finished = true;
        for (choice, (generation, sent)) in self.batch.generations().iter().zip(&mut self.sent).enumerate() {
            let answer = generation.answer();
            let ready = generation.progress().tokens();
            while sent.tokens < ready && budget > 0 {
                if sent.tokens == 0 {
                    self.format.begin(choice, answer, generation.usage_after(0), &mut self.buffer);
                }
                let usage = generation.usage_after(sent.tokens + 1);
                self.format.piece(choice, answer.piece(sent.tokens), usage, &mut self.buffer);
                sent.tokens += 1;
                budget -= 1;
            }
            if !sent.finished && sent.tokens == ready && generation.progress().is_finished() {
                self.format.finish(choice, answer, generation.usage_after(ready), &mut self.buffer);
                sent.finished = true;
            }
            all_finished &= sent.finished;
        }
        all_finished && self.tokens_left_to_live() != Some(0)
    }

    fn tokens_left_to_live(&self) -> Option<u32> {
        let sent: u32 = self.sent.iter().map(|sent| sent.tokens).sum();
        self.die_after.map(|tokens| tokens.saturating_sub(sent))
    }
}
