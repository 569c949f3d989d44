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

/// A value that the program would read as one of its options: whoever creates a model does not choose those.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} begins with a hyphen, so the program would take it for an option; name the model otherwise")]
pub(super) struct ReadAsOption(String);

impl Program {
    /// The program for an order, listening on this port.
    pub(super) fn of(settings: &ProcessProvider, order: &InstanceOrder, port: u16) -> Result<Program, ReadAsOption> {
        let replacements = Replacements::of(order, port);
        let mut environment = order.environment.clone();
        environment.retain(|name, _| !chooses_code(name));
        // What SageMaker tells containers that can listen elsewhere than on 8080.
        environment.insert("SAGEMAKER_BIND_TO_PORT".to_owned(), port.to_string());
        let configured = settings.environment.iter();
        environment.extend(configured.map(|(name, value)| (name.clone(), replacements.put_into(value))));
        let word = |template: &String| {
            let word = replacements.put_into(template);
            let is_option = word.starts_with('-') && !template.starts_with('-');
            if is_option { Err(ReadAsOption(word)) } else { Ok(word) }
        };
        let words = settings.command.iter().map(word).collect::<Result<_, _>>()?;
        Ok(Program { words, environment })
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

/// Whether a variable decides which code a program of this machine runs: those of the loader, of shells and of
/// interpreters. In a container they would concern that alone; here, whoever may create models would run code as the
/// router's user. The entry's own `environment` may set them.
fn chooses_code(name: &str) -> bool {
    const FAMILIES: [&str; 6] = ["LD_", "DYLD_", "BASH_", "PYTHON", "PERL", "RUBY"];
    const SINGLE: [&str; 12] = [
        "PATH",
        "HOME",
        "ENV",
        "IFS",
        "SHELL",
        "GCONV_PATH",
        "GLIBC_TUNABLES",
        "NODE_OPTIONS",
        "NODE_PATH",
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "_JAVA_OPTIONS",
    ];
    const HARMLESS: [&str; 3] = ["PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"];
    let is_chosen = FAMILIES.iter().any(|family| name.starts_with(family)) || SINGLE.contains(&name);
    is_chosen && !HARMLESS.contains(&name)
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

    fn settings(command: &[&str], environment: &[(&str, &str)]) -> ProcessProvider {
        let owned = |text: &str| text.to_owned();
        ProcessProvider {
            command: command.iter().map(|word| owned(word)).collect(),
            environment: environment.iter().map(|(name, value)| (owned(name), owned(value))).collect(),
            working_directory: None,
            health_path: None,
            start_timeout: std::time::Duration::ZERO,
            stop_timeout: std::time::Duration::ZERO,
        }
    }

    #[test]
    fn whoever_creates_a_model_does_not_choose_which_code_runs() {
        let given =
            ["LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "HOME", "PYTHONPATH", "BASH_ENV", "PYTHONUNBUFFERED", "HF_TOKEN"];
        let environment = given.iter().map(|name| ((*name).to_owned(), "theirs".to_owned())).collect();
        let order = InstanceOrder { environment, ..InstanceOrder::default() };
        let program = Program::of(&settings(&["engine", "{port}"], &[("PATH", "ours")]), &order, 8_001).unwrap();
        let passed: Vec<_> = program.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let bind = ("SAGEMAKER_BIND_TO_PORT", "8001");
        assert_eq!(passed, [("HF_TOKEN", "theirs"), ("PATH", "ours"), ("PYTHONUNBUFFERED", "theirs"), bind]);
    }

    #[test]
    fn a_model_is_not_read_as_an_option() {
        let order = InstanceOrder { model: Some("--trust-remote-code".to_owned()), ..InstanceOrder::default() };
        let refused = Program::of(&settings(&["vllm", "serve", "{model}", "--port", "{port}"], &[]), &order, 1);
        assert_eq!(refused, Err(ReadAsOption("--trust-remote-code".to_owned())));
        assert!(Program::of(&settings(&["vllm", "serve", "--model={model}"], &[]), &order, 1).is_ok());
    }

    #[test]
    fn words_in_braces_are_replaced_once_and_other_braces_stay() {
        let order = InstanceOrder { model: Some("{port}".to_owned()), ..InstanceOrder::default() };
        let replacements = Replacements::of(&order, 8_001);
        assert_eq!(replacements.put_into("--port={port}"), "--port=8001");
        assert_eq!(replacements.put_into("{model}"), "{port}");
        assert_eq!(replacements.put_into(r#"{"a": {port}} {other} {"#), r#"{"a": 8001} {other} {"#);
    }
}
