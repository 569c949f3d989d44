//! One generation request under way: its fields, and the ways in which all APIs read and answer it.

use std::borrow::Cow;
use std::rc::Rc;

use isotherm_engine_model::Token;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::LengthWish;
use crate::emulator::{Emulator, Order};
use crate::event_stream::{EventFormat, EventStream};
use crate::failure::Failure;
use crate::fields::Fields;
use crate::generation::Batch;
use crate::reply::{self, Reply};
use crate::tools::ToolChoice;

/// Answers to one prompt at most, as a bound of work per request.
const MOST_CHOICES: usize = 128;

/// A request with a JSON body.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) emulator: &'a Rc<Emulator>,
    pub(crate) fields: Fields<'a>,
    /// The adapter that a header names, whatever model the body does.
    pub(crate) adapter: Option<&'a str>,
    /// Fault: break the connection after that many tokens.
    pub(crate) die_after: Option<u32>,
}

/// `stream_options` of chat and completions.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamOptions {
    pub(crate) include_usage: Option<bool>,
    pub(crate) continuous_usage_stats: Option<bool>,
}

/// Which chunks of a stream carry usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageChunks {
    None,
    /// One more chunk at the end.
    AtEnd,
    /// Every chunk, and one more at the end.
    Every,
}

impl Call<'_> {
    pub(crate) fn is_streaming(&self) -> Result<bool, Failure> {
        self.fields.or_default("stream")
    }

    /// The model's name as it shall stand in the answer.
    pub(crate) fn model_name(&self) -> Result<String, Failure> {
        Ok(match self.model()? {
            Some(name) if !name.is_empty() => name.into_owned(),
            _ => self.emulator.config().model.clone(),
        })
    }

    /// The model or adapter that is asked for.
    fn model(&self) -> Result<Option<Cow<'_, str>>, Failure> {
        match self.adapter {
            Some(adapter) => Ok(Some(adapter.into())),
            None => self.fields.optional("model"),
        }
    }

    pub(crate) fn tools(&self) -> Result<Vec<Box<RawValue>>, Failure> {
        self.fields.or_default("tools")
    }

    pub(crate) fn choices(&self) -> Result<usize, Failure> {
        let choices = self.fields.optional("n")?.unwrap_or(1);
        if (1..=MOST_CHOICES).contains(&choices) {
            Ok(choices)
        } else {
            Err(Failure::Malformed(format!("n is {choices}, but must be 1 to {MOST_CHOICES}")))
        }
    }

    /// The wish about the answer's length; the first of `limit_names` that is present is the limit.
    pub(crate) fn length_wish(&self, limit_names: &[&str]) -> Result<LengthWish, Failure> {
        let mut max_tokens = None;
        for name in limit_names {
            max_tokens = max_tokens.or(self.fields.optional::<u32>(name)?);
            if max_tokens == Some(0) {
                return Err(Failure::Malformed(format!("{name} must be at least 1, got 0.")));
            }
        }
        Ok(LengthWish {
            max_tokens,
            min_tokens: self.fields.or_default("min_tokens")?,
            ignore_eos: self.fields.or_default("ignore_eos")?,
        })
    }

    pub(crate) fn usage_chunks(&self) -> Result<UsageChunks, Failure> {
        let Some(options) = self.fields.optional::<StreamOptions>("stream_options")? else {
            return Ok(UsageChunks::None);
        };
        if !self.is_streaming()? {
            return Err(Failure::Malformed("Stream options can only be defined when `stream=True`.".into()));
        }
        Ok(match (options.include_usage.unwrap_or(false), options.continuous_usage_stats.unwrap_or(false)) {
            (false, _) => UsageChunks::None,
            (true, false) => UsageChunks::AtEnd,
            (true, true) => UsageChunks::Every,
        })
    }

    /// Starts to generate `choices` answers to each prompt.
    pub(crate) fn generate(
        &self,
        prompts: Vec<Vec<Token>>,
        choices: usize,
        wish: LengthWish,
        tool: Option<&ToolChoice>,
    ) -> Result<Batch, Failure> {
        self.order(prompts, choices, Some(wish), tool)
    }

    /// Has the engine read prompts without answering them, and waits until it has.
    pub(crate) async fn read(&self, prompts: Vec<Vec<Token>>) -> Result<Batch, Failure> {
        let batch = self.order(prompts, 1, None, None)?;
        self.finish(&batch).await?;
        Ok(batch)
    }

    /// Waits for all answers of a batch.
    pub(crate) async fn finish(&self, batch: &Batch) -> Result<(), Failure> {
        if let Some(tokens) = self.die_after {
            batch.reached(tokens).await;
            return Err(Failure::Broken);
        }
        batch.finished().await;
        Ok(())
    }

    /// Streams the answers of a batch; the head of the response leaves at once.
    pub(crate) fn stream(&self, batch: Batch, format: impl EventFormat + 'static) -> Reply {
        reply::events(EventStream::new(batch, format, self.die_after))
    }

    fn order(
        &self,
        prompts: Vec<Vec<Token>>,
        choices: usize,
        wish: Option<LengthWish>,
        tool: Option<&ToolChoice>,
    ) -> Result<Batch, Failure> {
        let model = self.model()?;
        let cache_salt: Option<Cow<'_, str>> = self.fields.optional("cache_salt")?;
        self.emulator.generate(&Order {
            model: model.as_deref(),
            cache_salt: cache_salt.as_deref(),
            prompts,
            choices,
            wish,
            tool,
        })
    }
}
