//! The command line, taken apart option by option.

use std::str::FromStr;

use crate::failure::Failure;

/// What was typed and not yet taken.
#[derive(Debug)]
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    pub(crate) fn new(typed: impl Iterator<Item = String>) -> Arguments {
        Arguments(typed.collect())
    }

    /// Takes the first argument.
    pub(crate) fn command(&mut self) -> Option<String> {
        if self.0.is_empty() { None } else { Some(self.0.remove(0)) }
    }

    /// Takes `--help` or `-h`.
    pub(crate) fn help(&mut self) -> bool {
        self.flag("--help") || self.flag("-h")
    }

    /// Takes a flag without a value; whether it was there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|argument| argument != name);
        self.0.len() < before
    }

    /// Takes `name VALUE` or `name=VALUE`, once.
    pub(crate) fn value<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, Failure> {
        match self.text_value(name)? {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(Failure::Usage(format!("`{text}` is no value for {name}"))),
            },
        }
    }

    /// Takes every `name VALUE`.
    pub(crate) fn values(&mut self, name: &str) -> Result<Vec<String>, Failure> {
        let mut values = Vec::new();
        while let Some(value) = self.text_value(name)? {
            values.push(value);
        }
        Ok(values)
    }

    /// Takes what is left, none of which may be an option.
    pub(crate) fn rest(self) -> Result<Vec<String>, Failure> {
        match self.0.iter().find(|argument| argument.starts_with('-')) {
            None => Ok(self.0),
            Some(option) => Err(Failure::Usage(format!("unexpected option `{option}`; see --help"))),
        }
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.0.first() {
            None => Ok(()),
            Some(argument) => Err(Failure::Usage(format!("unexpected argument `{argument}`; see --help"))),
        }
    }

    fn text_value(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let with_equals = format!("{name}=");
        let Some(at) = self.0.iter().position(|argument| argument == name || argument.starts_with(&with_equals)) else {
            return Ok(None);
        };
        let argument = self.0.remove(at);
        if let Some(value) = argument.strip_prefix(&with_equals) {
            return Ok(Some(value.to_owned()));
        }
        if at == self.0.len() {
            return Err(Failure::Usage(format!("{name} needs a value")));
        }
        Ok(Some(self.0.remove(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;

    fn typed(line: &str) -> Arguments {
        Arguments::new(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn takes_values_in_both_spellings_and_refuses_the_rest() {
        let mut arguments = typed("soak --minutes 10 --only=a --only b --bogus");
        assert_eq!(arguments.command().as_deref(), Some("soak"));
        assert_eq!(arguments.value::<u64>("--minutes").unwrap(), Some(10));
        assert_eq!(arguments.values("--only").unwrap(), ["a", "b"]);
        assert!(arguments.finish().unwrap_err().to_string().contains("--bogus"));
    }

    #[test]
    fn names_are_what_is_left_and_no_options() {
        assert_eq!(typed("config trace").rest().unwrap(), ["config", "trace"]);
        assert!(typed("config --minute 3").rest().unwrap_err().to_string().contains("--minute"));
    }

    #[test]
    fn a_missing_or_malformed_value_names_its_option() {
        assert!(typed("--minutes").value::<u64>("--minutes").unwrap_err().to_string().contains("--minutes"));
        assert!(typed("--minutes x").value::<u64>("--minutes").unwrap_err().to_string().contains("`x`"));
    }
}
