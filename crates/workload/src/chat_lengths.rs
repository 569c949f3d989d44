//! How long real conversations are: who spoke, how many characters; no text.

use std::borrow::Cow;
use std::fmt;

use crate::{TraceError, TraceSource};

/// The lengths of 17,671 conversations of the ShareGPT collection.
const SHARE_GPT: TraceSource =
    TraceSource::shipped("the ShareGPT lengths", include_bytes!("../../../data/sharegpt-lengths.jsonl.gz"));

/// Conversations as the lengths of their turns.
#[derive(Clone, PartialEq, Eq)]
pub struct ChatLengths {
    turns: Vec<Turn>,
    /// Where in `turns` each conversation ends; it begins where the one before ends.
    ends: Vec<usize>,
}

/// A question and its answer, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) question: u32,
    pub(crate) answer: u32,
}

impl ChatLengths {
    /// The lengths that come with Isotherm: of 17,671 conversations between people and ChatGPT.
    ///
    /// # Errors
    /// Never, as long as what was shipped is whole.
    pub fn share_gpt() -> Result<ChatLengths, TraceError> {
        ChatLengths::read(&SHARE_GPT)
    }

    /// Reads one conversation a line: `[["human", 190], ["gpt", 1298], …]`, who spoke and how many characters.
    /// Questions are what `human` or `user` says, answers what follows from anyone but these and `system`; the rest is
    /// left out.
    ///
    /// # Errors
    /// When the source cannot be read or a line is something else.
    pub fn read(source: &TraceSource) -> Result<ChatLengths, TraceError> {
        let mut lengths = ChatLengths { turns: Vec::new(), ends: Vec::new() };
        for conversation in source.records(parse) {
            lengths.turns.extend(conversation?);
            lengths.ends.push(lengths.turns.len());
        }
        Ok(lengths)
    }

    /// How many conversations there are.
    pub(crate) fn conversations(&self) -> usize {
        self.ends.len()
    }

    /// The turns of one conversation; none beyond the last.
    pub(crate) fn turns(&self, conversation: usize) -> &[Turn] {
        let begin = conversation.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(conversation).copied().unwrap_or(begin);
        &self.turns[begin..end]
    }
}

impl fmt::Debug for ChatLengths {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ChatLengths({} conversations, {} turns)", self.ends.len(), self.turns.len())
    }
}

fn parse(line: &str) -> Result<Option<Vec<Turn>>, String> {
    let said: Vec<(Cow<'_, str>, u32)> = serde_json::from_str(line)
        .map_err(|error| format!("{error}; a conversation is [[\"human\", characters], [\"gpt\", characters], …]"))?;
    let asks = |speaker: &str| matches!(speaker, "human" | "user");
    let turns = said.array_windows().filter_map(|[(speaker, question), (other, answer)]| {
        let is_turn = asks(speaker) && !asks(other) && other != "system";
        is_turn.then_some(Turn { question: *question, answer: *answer })
    });
    Ok(Some(turns.collect()))
}

#[cfg(test)]
mod tests {
    use super::{ChatLengths, Turn, parse};

    #[test]
    fn the_shipped_lengths_are_whole() {
        let lengths = ChatLengths::share_gpt().unwrap();
        assert_eq!(lengths.conversations(), 17_671);
        assert_eq!(lengths.turns(0)[0], Turn { question: 190, answer: 1_298 });
        assert_eq!(lengths.turns(0).len(), 6);
        assert_eq!(lengths.turns(17_671), &[]);
        let turns: usize = (0..17_671).map(|conversation| lengths.turns(conversation).len()).sum();
        assert_eq!(turns, 61_239);
    }

    #[test]
    fn only_questions_with_answers_are_turns() {
        let turns = parse(r#"[["gpt",9],["system",8],["human",1],["human",2],["gpt",3],["user",4],["bard",5]]"#);
        let expected = vec![Turn { question: 2, answer: 3 }, Turn { question: 4, answer: 5 }];
        assert_eq!(turns.unwrap().unwrap(), expected);
        assert_eq!(parse("[]").unwrap().unwrap(), []);
        let error = parse(r#"{"human":1}"#).unwrap_err();
        assert!(error.contains("a conversation is"), "{error}");
    }
}
