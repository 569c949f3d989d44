//! Renders a conversation to tokens the way a model's chat template does: control tokens, role names, tools first.

use crate::tokenizer::Token;

/// A prompt under construction. Call [`tools`](Self::tools) first (if there are any), then for each message
/// [`open_message`](Self::open_message), its contents and [`close_message`](Self::close_message), and at the end
/// [`into_prompt`](Self::into_prompt).
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    tokens: Vec<Token>,
}

impl Default for ChatTemplate {
    fn default() -> Self {
        Self::new()
    }
}

impl ChatTemplate {
    /// A prompt that holds only the token that begins every text.
    pub fn new() -> Self {
        todo!()
    }

    /// Renders the tool definitions, given as JSON text, one per tool, as a system message of their own before all messages.
    pub fn tools<'t>(&mut self, _definitions: impl IntoIterator<Item = &'t str>) {
        todo!()
    }

    /// Begins a message: header tokens around the role's name, which takes tokens like any text.
    pub fn open_message(&mut self, _role: &str) {
        todo!()
    }

    /// Appends text to the open message (content, tool calls as JSON, …).
    pub fn text(&mut self, _text: &str) {
        todo!()
    }

    /// Appends an image or other medium, known by its bytes or URL. It takes a fixed number of tokens.
    pub fn media(&mut self, _content: &[u8]) {
        todo!()
    }

    /// Ends the open message.
    pub fn close_message(&mut self) {
        todo!()
    }

    /// Opens the assistant's answer, and gives the prompt.
    pub fn into_prompt(self) -> Vec<Token> {
        self.tokens
    }
}
