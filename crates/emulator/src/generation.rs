//! Answers in the making: what the engine generates for one HTTP request.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use isotherm_engine_model::RequestId;

use crate::answer::Answer;
use crate::driver::Progress;
use crate::emulator::Emulator;
use crate::usage::Usage;

/// One answer to one prompt. Dropped before its end, it is aborted in the engine at once.
#[derive(Debug)]
pub(crate) struct Generation {
    emulator: Rc<Emulator>,
    id: RequestId,
    progress: Rc<Progress>,
    answer: Answer,
    prompt_tokens: u32,
}

impl Generation {
    pub(crate) fn new(
        emulator: Rc<Emulator>,
        (id, progress): (RequestId, Rc<Progress>),
        answer: Answer,
        prompt_tokens: u32,
    ) -> Self {
        Self { emulator, id, progress, answer, prompt_tokens }
    }

    pub(crate) fn answer(&self) -> &Answer {
        &self.answer
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Counts as if `output` tokens had been generated.
    pub(crate) fn usage_after(&self, output: u32) -> Usage {
        let hides_cached = self.emulator.faults().get().no_cached_tokens;
        Usage { prompt: self.prompt_tokens, cached: self.progress.cached_tokens(), output, hides_cached }
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        if !self.progress.is_finished() {
            self.emulator.abort(self.id);
        }
    }
}

/// All answers that one HTTP request asked for: `choices` to each of its prompts, in the order of the prompts.
#[derive(Debug)]
pub(crate) struct Batch {
    generations: Vec<Generation>,
    choices: usize,
}

impl Batch {
    pub(crate) fn new(generations: Vec<Generation>, choices: usize) -> Self {
        Self { generations, choices }
    }

    pub(crate) fn generations(&self) -> &[Generation] {
        &self.generations
    }

    pub(crate) fn answers(&self) -> impl Iterator<Item = &Answer> {
        self.generations.iter().map(Generation::answer)
    }

    /// The answer to the first prompt; every order has one.
    pub(crate) fn first(&self) -> &Answer {
        self.generations[0].answer()
    }

    /// Prompts count once, however many answers each gets.
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for (index, generation) in self.generations.iter().enumerate() {
            let own = generation.usage_after(generation.progress.tokens());
            usage.output += own.output;
            usage.hides_cached |= own.hides_cached;
            if index % self.choices == 0 {
                usage.prompt += own.prompt;
                usage.cached += own.cached;
            }
        }
        usage
    }

    /// Waits for the last token of all answers.
    pub(crate) async fn finished(&self) {
        poll_fn(|context| self.poll_until(context, Progress::is_finished)).await;
    }

    /// Waits until `tokens` tokens are there in all, or no more come.
    pub(crate) async fn reached(&self, tokens: u32) {
        poll_fn(|context| {
            let generated: u32 = self.generations.iter().map(|generation| generation.progress.tokens()).sum();
            if generated >= tokens { Poll::Ready(()) } else { self.poll_until(context, Progress::is_finished) }
        })
        .await;
    }

    /// Has the task woken when any answer comes further.
    pub(crate) fn register(&self, context: &Context<'_>) {
        for generation in &self.generations {
            generation.progress.register(context);
        }
    }

    fn poll_until(&self, context: &Context<'_>, condition: impl Fn(&Progress) -> bool) -> Poll<()> {
        if self.generations.iter().all(|generation| condition(&generation.progress)) {
            return Poll::Ready(());
        }
        self.register(context);
        Poll::Pending
    }
}
