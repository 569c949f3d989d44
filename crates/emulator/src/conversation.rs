//! Conversations of `/v1/responses`: input items, and what was said before by reference.

use std::rc::Rc;

use isotherm_engine_model::{ChatTemplate, Token};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::Answer;
use crate::content::Content;
use crate::failure::Failure;
use crate::fields::Fields;

/// Who said what. Turns are shared between the responses that build on each other.
#[derive(Debug)]
pub(crate) struct Turn {
    role: String,
    content: Content,
}

/// All turns so far, without instructions, which hold for one response only.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conversation(Vec<Rc<Turn>>);

/// `input` of a request.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a string or a list of items")]
enum Input {
    Text(String),
    Items(Vec<Item>),
}

/// A message, a function call or its output; other kinds of items pass as empty turns.
#[derive(Debug, Deserialize)]
struct Item {
    role: Option<String>,
    content: Option<Content>,
    name: Option<String>,
    arguments: Option<String>,
    output: Option<Content>,
}

impl Conversation {
    /// Appends `input`.
    pub(crate) fn extend(&mut self, fields: &Fields<'_>) -> Result<(), Failure> {
        match fields.required("input")? {
            Input::Text(text) => self.push("user", Content::text(text)),
            Input::Items(items) => {
                for item in items {
                    self.push_item(item);
                }
            }
        }
        Ok(())
    }

    /// Appends what the model answered.
    pub(crate) fn push_answer(&mut self, answer: &Answer) {
        let text = match answer.tool() {
            Some(name) => format!("{name}{}", answer.text()),
            None => answer.text().to_owned(),
        };
        self.push("assistant", Content::text(text));
    }

    /// The prompt that continues it.
    pub(crate) fn prompt(&self, instructions: Option<&str>, tools: &[Box<RawValue>]) -> Vec<Token> {
        let mut template = ChatTemplate::new();
        template.tools(tools.iter().map(|tool| tool.get()));
        if let Some(instructions) = instructions {
            template.open_message("system");
            template.text(instructions);
            template.close_message();
        }
        for turn in &self.0 {
            template.open_message(&turn.role);
            turn.content.render(&mut template);
            template.close_message();
        }
        template.into_prompt()
    }

    /// Bytes that it keeps in memory, shared turns included.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|turn| turn.role.len() + turn.content.bytes()).sum()
    }

    fn push_item(&mut self, item: Item) {
        if let Some(output) = item.output {
            self.push("tool", output);
        } else if let Some(arguments) = item.arguments {
            self.push("assistant", Content::text(item.name.unwrap_or_default() + &arguments));
        } else {
            self.push(item.role.as_deref().unwrap_or("user"), item.content.unwrap_or_default());
        }
    }

    fn push(&mut self, role: &str, content: Content) {
        self.0.push(Rc::new(Turn { role: role.to_owned(), content }));
    }
}
