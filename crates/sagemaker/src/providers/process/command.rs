//! The command of an instance: the template with what the instance is for put in.

use std::collections::BTreeMap;

use isotherm_config::ProcessProvider;
use tokio::process::Command;

use crate::providers::InstanceOrder;

/// A program with its arguments and what is added to its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) words: Vec<String>,
    environment: BTreeMap<String, String>,
}

impl Program {
    /// The program for an order, listening on this port.
    pub(super) fn of(settings: &ProcessProvider, order: &InstanceOrder, port: u16) -> Program {
        let replacements = Replacements::of(order, port);
        let mut environment = order.environment.clone();
        // What SageMaker tells containers that can listen elsewhere than on 8080.
        environment.insert("SAGEMAKER_BIND_TO_PORT".to_owned(), port.to_string());
        let configured = settings.environment.iter();
        environment.extend(configured.map(|(name, value)| (name.clone(), replacements.put_into(value))));
        let words = settings.command.iter().map(|word| replacements.put_into(word)).collect();
        Program { words, environment }
    }

    /// The command that starts it, in a process group of its own.
    pub(super) fn command(&self, settings: &ProcessProvider) -> Command {
        let (program, arguments) = match self.words.split_first() {
            Some((program, arguments)) => (program.as_str(), arguments),
            None => ("", Default::default()),
        };
        let mut command = Command::new(program);
        command.args(arguments).envs(&self.environment).process_group(0).kill_on_drop(true);
        if let Some(directory) = &settings.working_directory {
            command.current_dir(directory);
        }
        command
    }
}

/// What stands for the words in braces.
struct Replacements(Vec<(&'static str, String)>);

impl Replacements {
    fn of(order: &InstanceOrder, port: u16) -> Replacements {
        let optional = |text: &Option<String>| text.clone().unwrap_or_default();
        Replacements(vec![
            ("{port}", port.to_string()),
            ("{model}", optional(&order.model)),
            ("{image}", optional(&order.image)),
            ("{endpoint}", order.endpoint.clone()),
            ("{variant}", order.variant.clone()),
            ("{instance}", order.instance.clone()),
        ])
    }

    /// One pass, so that a value that looks like a word in braces stays as it is.
    fn put_into(&self, template: &str) -> String {
        let mut text = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(brace) = rest.find('{') {
            text.push_str(&rest[..brace]);
            rest = &rest[brace..];
            match self.0.iter().find(|(word, _)| rest.starts_with(word)) {
                Some((word, value)) => {
                    text.push_str(value);
                    rest = &rest[word.len()..];
                }
                None => {
                    text.push('{');
                    rest = &rest[1..];
                }
            }
        }
        text + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_braces_are_replaced_once_and_other_braces_stay() {
        let order = InstanceOrder { model: Some("{port}".to_owned()), ..InstanceOrder::default() };
        let replacements = Replacements::of(&order, 8_001);
        assert_eq!(replacements.put_into("--port={port}"), "--port=8001");
        assert_eq!(replacements.put_into("{model}"), "{port}");
        assert_eq!(replacements.put_into(r#"{"a": {port}} {other} {"#), r#"{"a": 8001} {other} {"#);
    }
}
