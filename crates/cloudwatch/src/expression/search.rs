//! Which metrics a `SEARCH` finds.

use super::{ExpressionError, error};
use crate::{Metric, Statistic};

/// What is searched for, and which statistic of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Search {
    /// The namespace, and the names of the dimensions, exactly these.
    schema: Option<(String, Vec<String>)>,
    /// All must be met.
    terms: Vec<Term>,
    pub(crate) statistic: Statistic,
    /// The length of periods in seconds.
    pub(crate) period: Option<u32>,
}

/// One condition.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    /// `MetricName`, `Namespace` or a dimension; `None` for a word that may stand anywhere.
    key: Option<String>,
    value: String,
    /// Whether the value was in quotes: then it must be all there is, else it may be a part.
    exact: bool,
}

impl Search {
    /// Reads `{Namespace,Dimension,…} Key="value" word …`.
    pub(super) fn parse(words: &str, statistic: Statistic, period: Option<u32>) -> Result<Search, ExpressionError> {
        let mut rest = words.trim();
        let mut schema = None;
        if let Some(inside) = rest.strip_prefix('{') {
            let Some((names, after)) = inside.split_once('}') else { return error("'}' is missing in the SEARCH") };
            let mut names = names.split(',').map(|name| name.trim().trim_matches('"').to_owned());
            let namespace = names.next().unwrap_or_default();
            let mut dimensions: Vec<String> = names.collect();
            dimensions.sort();
            schema = Some((namespace, dimensions));
            rest = after.trim_start();
        }
        let mut terms = Vec::new();
        while !rest.is_empty() {
            let (term, after) = Term::parse(rest)?;
            terms.extend(term);
            rest = after.trim_start();
        }
        if schema.is_none() && terms.is_empty() {
            return error("the SEARCH is empty");
        }
        Ok(Search { schema, terms, statistic, period })
    }

    /// Whether it finds this metric.
    pub(crate) fn finds(&self, metric: &Metric) -> bool {
        let of_schema = self.schema.as_ref().is_none_or(|(namespace, dimensions)| {
            *namespace == *metric.namespace
                && metric.dimensions().iter().map(|dimension| &*dimension.name).eq(dimensions.iter())
        });
        of_schema && self.terms.iter().all(|term| term.is_met_by(metric))
    }
}

impl Term {
    /// Reads one term, or the word `AND`, which says nothing.
    fn parse(words: &str) -> Result<(Option<Term>, &str), ExpressionError> {
        let (first, was_quoted, rest) = piece(words)?;
        match first {
            "AND" if !was_quoted => return Ok((None, rest)),
            "OR" | "NOT" if !was_quoted => {
                return error(format!("{first} in a SEARCH is not known: terms must all be met"));
            }
            _ if first.starts_with(['(', ')']) && !was_quoted => return error("parentheses in a SEARCH are not known"),
            _ => {}
        }
        match rest.strip_prefix('=') {
            Some(rest) => {
                let (value, exact, rest) = piece(rest.trim_start())?;
                Ok((Some(Term { key: Some(first.to_owned()), value: value.to_owned(), exact }), rest))
            }
            None => Ok((Some(Term { key: None, value: first.to_owned(), exact: false }), rest)),
        }
    }

    fn is_met_by(&self, metric: &Metric) -> bool {
        let fits = |text: &str| {
            if self.exact { *text == self.value } else { contains_ignoring_case(text, &self.value) }
        };
        match self.key.as_deref() {
            Some("MetricName") => fits(&metric.name),
            Some("Namespace") => fits(&metric.namespace),
            Some(dimension) => metric.dimension(dimension).is_some_and(|value| fits(value)),
            None => {
                let dimensions = metric.dimensions().iter().flat_map(|dimension| [&dimension.name, &dimension.value]);
                [&metric.namespace, &metric.name].into_iter().chain(dimensions).any(|text| fits(text))
            }
        }
    }
}

/// The next word, or what stands in the next quotes; whether it was quoted; and what follows.
fn piece(words: &str) -> Result<(&str, bool, &str), ExpressionError> {
    if let Some(inside) = words.strip_prefix('"') {
        return match inside.split_once('"') {
            Some((quoted, rest)) => Ok((quoted, true, rest)),
            None => error("a '\"' in the SEARCH is not closed"),
        };
    }
    let end = words.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(words.len());
    match words.split_at(end) {
        ("", rest) => error(format!("a name is missing before '{rest:.60}' in the SEARCH")),
        (word, rest) => Ok((word, false, rest)),
    }
}

fn contains_ignoring_case(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}
