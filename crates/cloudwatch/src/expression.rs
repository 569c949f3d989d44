//! The expressions that are computed: `SEARCH`, and `SUM`, `AVG`, `MIN`, `MAX` over a search, over `METRICS()` or over
//! queries by their ids.

mod parse;
mod search;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub(crate) use self::search::Search;

/// An expression, kept as it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Expression {
    text: String,
    /// How the operand's series become one; `None` leaves them as they are.
    pub(crate) fold: Option<Fold>,
    pub(crate) operand: Operand,
}

/// What a fold is over.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    /// Every metric that a search finds.
    Search(Box<Search>),
    /// Every query of one metric whose id holds this text, or every one.
    Metrics(Option<String>),
    /// The queries of these ids.
    Ids(Vec<String>),
}

/// How several values become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fold {
    Sum,
    Average,
    Minimum,
    Maximum,
}

/// Why an expression can't be computed, and what can be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what}. Isotherm computes SEARCH('{{Namespace,Dimension,…}} MetricName=\"…\"', 'Statistic', period) and SUM, AVG, MIN \
     or MAX over a SEARCH, over METRICS() or over [id, id]"
)]
pub(crate) struct ExpressionError {
    what: String,
}

impl Expression {
    /// The ids that it refers to.
    pub(crate) fn ids(&self) -> &[String] {
        match &self.operand {
            Operand::Ids(ids) => ids,
            Operand::Search(_) | Operand::Metrics(_) => &[],
        }
    }
}

impl Fold {
    /// The function of this name.
    fn named(name: &str) -> Option<Fold> {
        Some(match name {
            "SUM" => Fold::Sum,
            "AVG" => Fold::Average,
            "MIN" => Fold::Minimum,
            "MAX" => Fold::Maximum,
            _ => return None,
        })
    }

    /// The value of several, at least one.
    pub(crate) fn of(self, values: &[f64]) -> f64 {
        let sum: f64 = values.iter().sum();
        match self {
            Fold::Sum => sum,
            Fold::Average => sum / values.len() as f64,
            Fold::Minimum => values.iter().copied().fold(f64::INFINITY, f64::min),
            Fold::Maximum => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

impl TryFrom<String> for Expression {
    type Error = ExpressionError;

    fn try_from(text: String) -> Result<Expression, ExpressionError> {
        let (fold, operand) = parse::parse(&text)?;
        Ok(Expression { text, fold, operand })
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> String {
        expression.text
    }
}

fn error<T>(what: impl Into<String>) -> Result<T, ExpressionError> {
    Err(ExpressionError { what: what.into() })
}
