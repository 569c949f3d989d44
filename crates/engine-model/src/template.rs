//! Renders a conversation to tokens the way a model's chat template does: control tokens, role names, tools first.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::tokenizer::{Token, tokenize};

/// A prompt under construction, in the form of Llama 3's chat template. Call [`tools`](Self::tools) first (if there are
/// any), then for each message [`open_message`](Self::open_message), its contents and
/// [`close_message`](Self::close_message), and at the end [`into_prompt`](Self::into_prompt).
///
/// ```
/// use isotherm_engine_model::{ChatTemplate, tokenizer};
///
/// let mut first_turn = ChatTemplate::new();
/// first_turn.open_message("user");
/// first_turn.text("Where is it warm?");
/// first_turn.close_message();
/// let mut second_turn = first_turn.clone();
///
/// // What the engine holds after the first turn …
/// let mut computed = first_turn.into_prompt();
/// tokenizer::tokenize("In the south.", &mut computed);
/// computed.push(ChatTemplate::END_OF_TURN);
///
/// // … begins the second turn's prompt.
/// second_turn.open_message("assistant");
/// second_turn.text("In the south.");
/// second_turn.close_message();
/// assert!(second_turn.into_prompt().starts_with(&computed));
/// ```
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    tokens: Vec<Token>,
}

impl ChatTemplate {
    /// Begins every prompt (the number is that of Llama 3's vocabulary, as for the other control tokens).
    pub const BEGIN_OF_TEXT: Token = 128_000;
    /// Stands before the name of a role.
    pub const START_OF_HEADER: Token = 128_006;
    /// Stands behind the name of a role.
    pub const END_OF_HEADER: Token = 128_007;
    /// Ends a message. An answer that ends by itself, not by its length, has it as its last token.
    pub const END_OF_TURN: Token = 128_009;

    /// Tokens that an image or other medium takes: the 24 × 24 patches of a vision encoder for 336 × 336 pixels.
    pub const MEDIUM_TOKENS: usize = 576;

    /// A prompt that holds only the token that begins every text.
    pub fn new() -> Self {
        Self { tokens: vec![Self::BEGIN_OF_TEXT] }
    }

    /// Renders tool definitions, each given as JSON text, as a system message of their own. Without definitions it does
    /// nothing.
    pub fn tools<'t>(&mut self, definitions: impl IntoIterator<Item = &'t str>) {
        let mut definitions = definitions.into_iter().peekable();
        if definitions.peek().is_none() {
            return;
        }
        self.open_message("system");
        self.text("These functions can be called. To call one, answer with its name and arguments as JSON.\n\n");
        for definition in definitions {
            self.text(definition);
            self.text("\n\n");
        }
        self.close_message();
    }

    /// Begins a message: control tokens around the role's name, which takes tokens like any text.
    pub fn open_message(&mut self, role: &str) {
        self.tokens.push(Self::START_OF_HEADER);
        self.text(role);
        self.tokens.push(Self::END_OF_HEADER);
        self.text("\n\n");
    }

    /// Appends text to the open message: content, the name of a tool, tool calls as JSON. Two texts in a row are cut each
    /// for itself.
    pub fn text(&mut self, text: &str) {
        tokenize(text, &mut self.tokens);
    }

    /// Appends an image or other medium, known by its bytes or URL. Equal contents give equal tokens.
    pub fn medium(&mut self, content: &[u8]) {
        let patches = 0..Self::MEDIUM_TOKENS as u64;
        self.tokens.extend(patches.map(|patch| xxh3_64_with_seed(content, patch) as Token));
    }

    /// Ends the open message.
    pub fn close_message(&mut self) {
        self.tokens.push(Self::END_OF_TURN);
    }

    /// Opens the assistant's answer, and gives the prompt.
    pub fn into_prompt(mut self) -> Vec<Token> {
        self.open_message("assistant");
        self.tokens
    }
}

impl Default for ChatTemplate {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::count;

    fn message(template: &mut ChatTemplate, role: &str, text: &str) {
        template.open_message(role);
        template.text(text);
        template.close_message();
    }

    #[test]
    fn roles_and_control_tokens_take_tokens() {
        let mut template = ChatTemplate::new();
        message(&mut template, "user", "Where?");
        let frame = |role| count(role) + 3;
        let expected = 1 + frame("user") + count("Where?") + 1 + frame("assistant");
        assert_eq!(template.into_prompt().len(), expected);
    }

    #[test]
    fn the_same_text_in_another_role_is_another_prompt() {
        let prompt = |role| {
            let mut template = ChatTemplate::new();
            message(&mut template, role, "Where?");
            template.into_prompt()
        };
        assert_ne!(prompt("user"), prompt("system"));
    }

    #[test]
    fn tools_come_before_all_messages() {
        let prompt = |tools: &[&str], text| {
            let mut template = ChatTemplate::new();
            template.tools(tools.iter().copied());
            message(&mut template, "system", text);
            template.into_prompt()
        };
        let (here, there) = (prompt(&[r#"{"name":"warm"}"#], "Here"), prompt(&[r#"{"name":"warm"}"#], "There"));
        let tools_end = here.iter().position(|&token| token == ChatTemplate::END_OF_TURN).unwrap();
        assert_eq!(here[..tools_end], there[..tools_end]);
        assert!(tools_end > 20);

        let other = prompt(&[r#"{"name":"cold"}"#], "Here");
        let shared = here.iter().zip(&other).take_while(|(left, right)| left == right).count();
        assert!(shared < tools_end, "another tool parts the prompts before the first message");
        assert_eq!(prompt(&[], "Here")[1..5], {
            let mut plain = ChatTemplate::new();
            message(&mut plain, "system", "Here");
            plain.into_prompt()[1..5].to_vec()
        });
    }

    #[test]
    fn a_medium_is_known_by_its_content() {
        let prompt = |content: &[u8]| {
            let mut template = ChatTemplate::new();
            template.medium(content);
            template.into_prompt()
        };
        assert_eq!(prompt(b"warm"), prompt(b"warm"));
        assert!(prompt(b"warm")[1..577].iter().zip(&prompt(b"cold")[1..577]).all(|(warm, cold)| warm != cold));
    }
}
