//! What was found and recommended, for people: sections with a table and sentences each, as text and as a page.

mod html;
mod numbers;
mod recommended;
mod sections;
mod text;

use serde::Serialize;

use crate::findings::Findings;
use crate::recommend::Recommendation;

pub use self::html::page;
pub use self::text::text;

/// Everything there is to tell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Told {
    /// What was found.
    pub findings: Findings,
    /// What to configure; `None` where that cannot be told.
    pub recommendation: Option<Recommendation>,
    /// What an instance's cache holds, in tokens, and how many instances there are.
    pub cache: CacheSize,
}

/// The caches that curves are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CacheSize {
    /// Of one instance.
    pub tokens: u64,
    /// How many there are.
    pub instances: u32,
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq)]
struct Section {
    title: &'static str,
    /// The first row is the heading; empty where there is no table.
    table: Vec<Vec<String>>,
    /// How many columns, from the left, are words.
    words: usize,
    sentences: Vec<String>,
}

impl Told {
    fn sections(&self) -> Vec<Section> {
        let found = sections::of(&self.findings, self.cache);
        let recommended = recommended::of(self.recommendation.as_ref(), &self.findings);
        found.into_iter().chain(recommended).chain(sections::notes(&self.findings)).collect()
    }

    /// What the log is, in a line.
    fn lead(&self) -> String {
        let logs: Vec<&str> = self.findings.logs.iter().map(|log| log.log.as_str()).collect();
        match logs.as_slice() {
            [] => "no log".to_owned(),
            [one] => (*one).to_owned(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        }
    }
}

#[cfg(test)]
mod tests;
