//! Reads expressions.

use super::{ExpressionError, Fold, Operand, Search, error};
use crate::Statistic;

/// Reads an expression whole.
pub(super) fn parse(text: &str) -> Result<(Option<Fold>, Operand), ExpressionError> {
    let mut reader = Reader { rest: text.trim_start() };
    let name = reader.name();
    let parsed = match (Fold::named(name), name) {
        (Some(fold), _) => {
            reader.expect('(')?;
            let operand = reader.operand()?;
            reader.expect(')')?;
            (Some(fold), operand)
        }
        (None, "SEARCH" | "METRICS") => (None, reader.function(name)?),
        (None, "") => return error(format!("'{text:.60}' begins with no function")),
        (None, _) => return error(format!("'{name}' is not known")),
    };
    match reader.rest {
        "" => Ok(parsed),
        rest => error(format!("'{rest:.60}' follows the end of the expression")),
    }
}

/// What is left to read; never begins with a space.
struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn operand(&mut self) -> Result<Operand, ExpressionError> {
        if self.rest.starts_with('[') {
            return self.ids();
        }
        match self.name() {
            name @ ("SEARCH" | "METRICS") => self.function(name),
            "" => error(format!("'{:.60}' is neither a SEARCH, nor METRICS(), nor ids in brackets", self.rest)),
            name => error(format!("'{name}' is neither a SEARCH, nor METRICS(), nor ids in brackets")),
        }
    }

    fn function(&mut self, name: &str) -> Result<Operand, ExpressionError> {
        self.expect('(')?;
        let operand = if name == "METRICS" {
            Operand::Metrics(self.quoted()?)
        } else {
            Operand::Search(Box::new(self.search()?))
        };
        self.expect(')')?;
        Ok(operand)
    }

    fn search(&mut self) -> Result<Search, ExpressionError> {
        let Some(words) = self.quoted()? else { return error("SEARCH needs what to search for, in quotes") };
        self.expect(',')?;
        let Some(statistic) = self.quoted()? else { return error("SEARCH needs a statistic in quotes") };
        let Some(statistic) = Statistic::named(&statistic) else {
            return error(format!("'{statistic}' is no statistic; there are {}", Statistic::WORDS));
        };
        let mut period = None;
        if self.rest.starts_with(',') {
            self.expect(',')?;
            let digits = self.taken(|c| c.is_ascii_digit());
            period = digits.parse().ok().filter(|period| crate::operation::is_period(*period));
            if period.is_none() {
                return error(format!("'{digits}' is no period: 10, 20, 30 or a multiple of 60 seconds"));
            }
        }
        Search::parse(&words, statistic, period)
    }

    fn ids(&mut self) -> Result<Operand, ExpressionError> {
        self.expect('[')?;
        let mut ids = Vec::new();
        loop {
            match self.name() {
                "" => return error("an id is missing in the brackets"),
                id => ids.push(id.to_owned()),
            }
            if !self.rest.starts_with(',') {
                break;
            }
            self.expect(',')?;
        }
        self.expect(']')?;
        Ok(Operand::Ids(ids))
    }

    /// A text in single or double quotes, with the quotes taken off; `None` when what follows is no quote.
    fn quoted(&mut self) -> Result<Option<String>, ExpressionError> {
        let Some(quote) = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"')) else { return Ok(None) };
        let inner = &self.rest[1..];
        let mut text = String::new();
        let mut letters = inner.char_indices();
        while let Some((place, letter)) = letters.next() {
            match letter {
                '\\' => text.extend(letters.next().map(|(_, letter)| letter)),
                _ if letter == quote => {
                    self.rest = inner[place + 1..].trim_start();
                    return Ok(Some(text));
                }
                _ => text.push(letter),
            }
        }
        error(format!("the quote {quote} is not closed"))
    }

    fn name(&mut self) -> &'t str {
        self.taken(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    fn taken(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        taken
    }

    fn expect(&mut self, sign: char) -> Result<(), ExpressionError> {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest.trim_start();
                Ok(())
            }
            None if self.rest.is_empty() => error(format!("'{sign}' is missing at the end")),
            None => error(format!("'{sign}' is missing before '{:.60}'", self.rest)),
        }
    }
}
