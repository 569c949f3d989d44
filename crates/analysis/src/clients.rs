//! What differs between clients that want the same: models, salts, templates, roles, the spelling of bodies.

use std::collections::HashMap;

use isotherm_wire::api::Api;
use isotherm_wire::request::{Described, Mark};
use serde::Serialize;

use crate::chain::extend;
use crate::known::AlreadyHashed;
use crate::prompt::{PlaceKind, Prompt, Role};

/// How many different things of one kind are told apart; the rest counts as one.
const MOST: usize = 1_000;

/// The longest name that is kept, in characters.
const LONGEST_NAME: usize = 128;

/// Counts how clients write their requests.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    models: Tally<String>,
    salts: Tally<u64>,
    templates: Tally<u64>,
    spellings: Tally<String>,
    /// By the hash of a system prompt: as what it came.
    systems: HashMap<u64, Tally<SystemForm>, AlreadyHashed>,
}

/// Where a system prompt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemForm {
    /// A message of the role `system`.
    SystemMessage,
    /// A message of the role `developer`.
    DeveloperMessage,
    /// `system` or `instructions` beside the messages.
    BesideMessages,
    /// The beginning of the first message of a user.
    UserMessage,
}

impl Clients {
    pub(crate) fn take(&mut self, api: Api, body: &[u8], described: &Described<'_>, prompt: &Prompt) {
        let model = described.model.as_deref().filter(|model| !model.is_empty()).unwrap_or("(none)");
        self.models.add(model.chars().take(LONGEST_NAME).collect());
        for salt in [&described.cache_salt, &described.extra_key].into_iter().flatten() {
            self.salts.add(extend(0, salt.as_bytes()));
        }
        let mut template = 0;
        for piece in &prompt.pieces {
            if matches!(piece.mark, Mark::Template | Mark::TemplateArguments | Mark::ReasoningEffort) {
                template = extend(extend(template, &[piece.mark as u8]), prompt.text(piece));
            }
        }
        self.templates.add(template);
        if api == Api::Invocations
            && let Some(spelling) = spelling(body)
        {
            self.spellings.add(spelling);
        }
        self.take_system(prompt);
    }

    fn take_system(&mut self, prompt: &Prompt) {
        let Some(first) = prompt.pieces.iter().find(|piece| piece.is_text()) else { return };
        let form = match (first.place().kind, first.role) {
            (PlaceKind::System, _) => SystemForm::BesideMessages,
            (_, Role::System) => SystemForm::SystemMessage,
            (_, Role::Developer) => SystemForm::DeveloperMessage,
            (_, Role::User) => SystemForm::UserMessage,
            _ => return,
        };
        let hash = extend(0, prompt.text(first).trim_ascii());
        if self.systems.len() < MOST || self.systems.contains_key(&hash) {
            self.systems.entry(hash).or_default().add(form);
        }
    }

    /// What was found, as shares of the requests.
    pub(crate) fn found(&self) -> ClientFindings {
        let mut forms: Tally<SystemForm> = Tally::default();
        let several = self.systems.values().filter(|tally| tally.counts.len() > 1);
        several.for_each(|tally| tally.counts.iter().for_each(|(form, count)| forms.add_many(*form, *count)));
        ClientFindings {
            models: self.models.shares(),
            salts: self.salts.counts.len(),
            templates: self.templates.counts.len(),
            body_spellings: self.spellings.shares(),
            system_forms: forms.shares(),
        }
    }
}

/// What differs between clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientFindings {
    /// The models by their share of the requests. Prompts share nothing across models.
    pub models: Vec<(String, f64)>,
    /// How many different `cache_salt` and `extra_key` there are. Prompts share nothing across them.
    pub salts: usize,
    /// How many different templates and template arguments there are.
    pub templates: usize,
    /// How native JSON bodies are spelled: their keys in order, and the white space behind a colon and a comma. Routers
    /// tell native bodies apart by their bytes.
    pub body_spellings: Vec<(String, f64)>,
    /// As what the same system prompt comes, among those that come in several ways; engines share nothing across them.
    pub system_forms: Vec<(SystemForm, f64)>,
}

/// Counts of things, at most [`MOST`] different ones.
#[derive(Clone, Debug)]
struct Tally<T> {
    counts: HashMap<T, u64>,
    total: u64,
}

impl<T> Default for Tally<T> {
    fn default() -> Tally<T> {
        Tally { counts: HashMap::new(), total: 0 }
    }
}

impl<T: Eq + std::hash::Hash + Ord + Clone> Tally<T> {
    fn add(&mut self, thing: T) {
        self.add_many(thing, 1);
    }

    fn add_many(&mut self, thing: T, count: u64) {
        self.total += count;
        if self.counts.len() < MOST || self.counts.contains_key(&thing) {
            *self.counts.entry(thing).or_default() += count;
        }
    }

    /// The most frequent first.
    fn shares(&self) -> Vec<(T, f64)> {
        let mut shares: Vec<(T, f64)> = self
            .counts
            .iter()
            .map(|(thing, count)| (thing.clone(), *count as f64 / self.total.max(1) as f64))
            .collect();
        shares.sort_by(|left, right| right.1.total_cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        shares
    }
}

/// The keys of a JSON object in their order with the white space around them; `None` for what is no object.
fn spelling(body: &[u8]) -> Option<String> {
    let (mut keys, mut depth, mut in_string, mut escaped) = (Vec::new(), 0_u32, false, false);
    let (mut begin, mut after_colon, mut after_comma) = (0, "", "");
    let gap = |at: usize| match body.get(at + 1) {
        Some(b' ') => " ",
        Some(b'\n' | b'\r' | b'\t') => "\\n",
        _ => "",
    };
    for (at, byte) in body.iter().enumerate() {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_string = false,
            (true, _) => {}
            (false, b'"') => (in_string, begin) = (true, at + 1),
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            (false, b':') if depth == 1 => {
                let key = body[begin..at].split(|byte| *byte == b'"').next().unwrap_or_default();
                keys.push(String::from_utf8_lossy(key).chars().take(LONGEST_NAME).collect::<String>());
                after_colon = gap(at);
            }
            (false, b',') if depth == 1 => after_comma = gap(at),
            _ => {}
        }
    }
    let is_object = body.trim_ascii_start().starts_with(b"{") && !keys.is_empty();
    is_object
        .then(|| format!("{{{}}}", keys.join(&format!(":{after_colon}…,{after_comma}")) + &format!(":{after_colon}…")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_tell_key_order_and_white_space_apart() {
        let of = |body: &str| spelling(body.as_bytes());
        let expected = |text: &str| Some(text.to_owned());
        assert_eq!(of(r#"{"inputs":"a:b,\"c\"","parameters":{"x":[1,2]}}"#), expected("{inputs:…,parameters:…}"));
        assert_eq!(of(r#"{"parameters": {"x": 1}, "inputs": "a"}"#), expected("{parameters: …, inputs: …}"));
        assert_eq!(of("plain text"), None);
    }

    #[test]
    fn one_system_prompt_in_two_roles_is_found() {
        let mut clients = Clients::default();
        let mut prompt = Prompt::default();
        for (role, model) in [("system", "a"), ("developer", "a"), ("system", "b"), ("system", "a")] {
            let body = format!(r#"{{"model":"{model}","messages":[{{"role":"{role}","content":"be brief"}}]}}"#);
            let described = prompt.fill(body.as_bytes(), Api::ChatCompletions).unwrap();
            clients.take(Api::ChatCompletions, body.as_bytes(), &described, &prompt);
        }
        let found = clients.found();
        assert_eq!(found.system_forms, [(SystemForm::SystemMessage, 0.75), (SystemForm::DeveloperMessage, 0.25)]);
        assert_eq!(found.models, [("a".to_owned(), 0.75), ("b".to_owned(), 0.25)]);
        assert_eq!((found.templates, found.salts), (1, 0));
    }
}
