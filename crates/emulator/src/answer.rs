//! What the emulated model answers to a prompt: decided before the first step, token by token.

use isotherm_engine_model::{Token, tokenizer};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::tools::ToolChoice;
use crate::vocabulary;

/// How long the model speaks when nothing else ends it, in tokens.
const NATURAL_LENGTH: std::ops::RangeInclusive<u32> = 100..=160;

/// What a request says about the answer's length.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LengthWish {
    /// The most tokens allowed, at least 1.
    pub(crate) max_tokens: Option<u32>,
    /// The fewest tokens.
    pub(crate) min_tokens: u32,
    /// Speak until `max_tokens`.
    pub(crate) ignore_eos: bool,
}

/// Why the answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The model had said all.
    Stop,
    /// The token limit was reached.
    Length,
    /// The model calls a tool.
    ToolCall,
}

/// A text cut into tokens.
#[derive(Debug)]
pub(crate) struct Answer {
    text: String,
    /// End of each token in the text, in bytes.
    ends: Vec<u32>,
    tokens: Vec<Token>,
    finish: Finish,
    tool: Option<String>,
}

impl Answer {
    /// The answer that this seed gives to this prompt. `room` is how many tokens the context leaves for it (at least
    /// 1). `choice` counts the answers to one prompt.
    pub(crate) fn to_prompt(
        seed: u64,
        prompt: &[Token],
        choice: usize,
        wish: LengthWish,
        room: u32,
        tool: Option<&ToolChoice>,
    ) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(fold(seed ^ choice as u64, prompt));
        let limit = wish.max_tokens.unwrap_or(room).min(room);
        if let Some(tool) = tool {
            return Self::calling(tool, limit, &mut random);
        }
        let natural = random.random_range(NATURAL_LENGTH).max(wish.min_tokens);
        let (length, finish) =
            if wish.ignore_eos || natural > limit { (limit, Finish::Length) } else { (natural, Finish::Stop) };
        Self::speaking(length, finish, &mut random)
    }

    /// An answer without any token, for requests that only read their prompt.
    pub(crate) fn none() -> Self {
        Self { text: String::new(), ends: Vec::new(), tokens: Vec::new(), finish: Finish::Stop, tool: None }
    }

    fn speaking(length: u32, finish: Finish, random: &mut Pcg64Mcg) -> Self {
        let mut text = String::new();
        let mut characters = 0;
        loop {
            // A piece has four characters or so; the rest is margin, and a second round the exception.
            characters += length as usize * 5 + 64;
            vocabulary::speak(random, characters, &mut text);
            let answer = Self::cut(&text, length, finish, None);
            if answer.len() == length {
                return answer;
            }
        }
    }

    fn calling(tool: &ToolChoice, limit: u32, random: &mut Pcg64Mcg) -> Self {
        let arguments = tool.arguments(random);
        let mut answer = Self::cut(&arguments, limit, Finish::ToolCall, Some(tool.name().to_owned()));
        if answer.text.len() < arguments.len() {
            answer.finish = Finish::Length;
        }
        answer
    }

    /// The first `limit` tokens of a text.
    fn cut(text: &str, limit: u32, finish: Finish, tool: Option<String>) -> Self {
        let mut end = 0;
        let (ends, tokens): (Vec<u32>, Vec<Token>) = tokenizer::pieces(text)
            .take(limit as usize)
            .map(|piece| {
                end += piece.text.len();
                (end as u32, piece.token)
            })
            .unzip();
        Self { text: text[..end].to_owned(), ends, tokens, finish, tool }
    }

    /// Length in tokens.
    pub(crate) fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The text of one token.
    pub(crate) fn piece(&self, index: u32) -> &str {
        let index = index as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.text[start..self.ends[index] as usize]
    }

    /// The whole text: words, or the JSON arguments of a tool call.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    pub(crate) fn finish(&self) -> Finish {
        self.finish
    }

    /// Name of the tool that it calls.
    pub(crate) fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }
}

/// A number that stands for the prompt: multiply and rotate, enough to tell prompts apart.
pub(crate) fn fold(seed: u64, tokens: &[Token]) -> u64 {
    tokens.iter().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |hash, &token| {
        (hash ^ u64::from(token)).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(prompt: &[Token], wish: LengthWish) -> Answer {
        Answer::to_prompt(7, prompt, 0, wish, 100_000, None)
    }

    #[test]
    fn without_a_limit_it_stops_by_itself() {
        let answer = answer(&[1, 2, 3], LengthWish::default());
        assert!(NATURAL_LENGTH.contains(&answer.len()));
        assert_eq!(answer.finish(), Finish::Stop);
    }

    #[test]
    fn a_limit_cuts_it_and_ignore_eos_reaches_it() {
        let short = answer(&[1], LengthWish { max_tokens: Some(7), ..LengthWish::default() });
        assert_eq!((short.len(), short.finish()), (7, Finish::Length));
        let long = LengthWish { max_tokens: Some(2_000), ignore_eos: true, ..LengthWish::default() };
        assert_eq!((answer(&[1], long).len(), answer(&[1], long).finish()), (2_000, Finish::Length));
        let patient = LengthWish { max_tokens: Some(2_000), min_tokens: 500, ..LengthWish::default() };
        assert_eq!((answer(&[1], patient).len(), answer(&[1], patient).finish()), (500, Finish::Stop));
    }

    #[test]
    fn equal_prompts_get_equal_answers_and_choices_differ() {
        let wish = LengthWish::default();
        assert_eq!(answer(&[1, 2], wish).text(), answer(&[1, 2], wish).text());
        assert_ne!(answer(&[1, 2], wish).text(), answer(&[2, 1], wish).text());
        let second = Answer::to_prompt(7, &[1, 2], 1, wish, 100_000, None);
        assert_ne!(answer(&[1, 2], wish).text(), second.text());
    }

    #[test]
    fn pieces_join_to_the_text_and_are_its_tokens() {
        let answer = answer(&[5], LengthWish::default());
        let joined: String = (0..answer.len()).map(|index| answer.piece(index)).collect();
        assert_eq!(joined, answer.text());
        assert_eq!(answer.tokens().len(), answer.len() as usize);
    }
}
