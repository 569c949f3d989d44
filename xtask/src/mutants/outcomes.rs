//! What became of each change: the table, and whether one survived that may not.

use std::collections::BTreeMap;
use std::path::Path;

use isotherm_report::{Align, Table};
use serde_json::Value;

use super::accepted::Accepted;
use crate::failure::Failure;

/// The changes that were tried, by file.
#[derive(Debug, Default)]
pub(crate) struct Outcomes(BTreeMap<String, Vec<Change>>);

#[derive(Debug)]
struct Change {
    /// What was changed and in which function, such as `replace < with <= in pick`.
    what: String,
    /// Its line and column.
    place: String,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Caught,
    Missed,
    TimedOut,
    /// It did not build.
    Unviable,
}

impl Outcomes {
    pub(crate) fn read(path: &Path) -> Result<Outcomes, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
        Outcomes::parse(&text).ok_or_else(|| Failure::Failed(format!("{}: not as expected", path.display())))
    }

    /// Reads cargo-mutants' `outcomes.json`; `None` where it is none.
    fn parse(text: &str) -> Option<Outcomes> {
        let document: Value = serde_json::from_str(text).ok()?;
        let mut outcomes = Outcomes::default();
        for outcome in document["outcomes"].as_array()? {
            // The first outcome is that of the code as it is, which is no change.
            let Some(name) = outcome["scenario"]["Mutant"]["name"].as_str() else { continue };
            let (path, rest) = name.split_once(".rs:")?;
            let (place, what) = rest.split_once(": ")?;
            let fate = match outcome["summary"].as_str()? {
                "CaughtMutant" => Fate::Caught,
                "MissedMutant" => Fate::Missed,
                "Timeout" => Fate::TimedOut,
                "Unviable" => Fate::Unviable,
                _ => return None,
            };
            let file = format!("{}.rs", path.strip_prefix(&format!("{}/", super::SOURCES)).unwrap_or(path));
            let change = Change { what: what.to_owned(), place: place.to_owned(), fate };
            outcomes.0.entry(file).or_default().push(change);
        }
        Some(outcomes)
    }

    /// A line for each file and one for all.
    pub(crate) fn table(&self, accepted: &[Accepted]) -> Table {
        let columns = ["file", "changes", "caught", "timed out", "accepted", "missed", "unviable"];
        let mut table = Table::new(std::iter::once(Align::Left).chain([Align::Right; 6]));
        table.row(columns);
        let mut sums = [0; 6];
        for (file, changes) in &self.0 {
            let count = |fate| changes.iter().filter(|change| change.fate == fate).count();
            let missed = missed(file, changes, accepted).len();
            let counts = [
                changes.len(),
                count(Fate::Caught),
                count(Fate::TimedOut),
                count(Fate::Missed) - missed,
                missed,
                count(Fate::Unviable),
            ];
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            table.row(std::iter::once(file.clone()).chain(counts.map(|count| count.to_string())));
        }
        table.row(std::iter::once("all".to_owned()).chain(sums.map(|sum| sum.to_string())));
        table
    }

    /// A failure names every survivor that is not accepted.
    pub(crate) fn judge(&self, accepted: &[Accepted]) -> Result<(), Failure> {
        let survivors: Vec<String> = self
            .0
            .iter()
            .flat_map(|(file, changes)| {
                let missed = missed(file, changes, accepted);
                missed.into_iter().map(move |change| format!("  {file}:{}: {}", change.place, change.what))
            })
            .collect();
        if self.0.is_empty() {
            return Err(Failure::Failed("nothing was changed".to_owned()));
        }
        if survivors.is_empty() {
            return Ok(());
        }
        Err(Failure::Failed(format!("no test notices\n{}", survivors.join("\n"))))
    }
}

/// The survivors that no entry of `accepted` covers. An entry covers as many as it says: when the same change survives in
/// one place more of its function, that one is missed.
fn missed<'c>(file: &str, changes: &'c [Change], accepted: &[Accepted]) -> Vec<&'c Change> {
    let mut covered: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in accepted.iter().filter(|entry| entry.file == file) {
        *covered.entry(entry.what).or_default() += entry.times;
    }
    let survivors = changes.iter().filter(|change| change.fate == Fate::Missed);
    survivors
        .filter(|change| match covered.get_mut(change.what.as_str()) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTCOMES: &str = r#"{"outcomes": [
        {"scenario": "Baseline", "summary": "Success"},
        {"scenario": {"Mutant": {"name": "crates/core/src/a.rs:1:2: replace < with <= in f"}}, "summary": "CaughtMutant"},
        {"scenario": {"Mutant": {"name": "crates/core/src/a.rs:3:4: replace + with - in f"}}, "summary": "MissedMutant"},
        {"scenario": {"Mutant": {"name": "crates/core/src/a.rs:5:6: replace + with - in f"}}, "summary": "MissedMutant"},
        {"scenario": {"Mutant": {"name": "crates/core/src/b/c.rs:7:8: replace g -> u64 with 0"}}, "summary": "Timeout"},
        {"scenario": {"Mutant": {"name": "crates/core/src/b/c.rs:9:8: replace g -> u64 with 1"}}, "summary": "Unviable"}
    ]}"#;

    fn accepted(times: usize) -> [Accepted; 1] {
        [Accepted { file: "a.rs", what: "replace + with - in f", times, reason: "" }]
    }

    #[test]
    fn a_survivor_that_is_not_accepted_is_a_failure_and_named() {
        let outcomes = Outcomes::parse(OUTCOMES).unwrap();
        assert!(outcomes.judge(&accepted(2)).is_ok());
        let failure = outcomes.judge(&accepted(1)).unwrap_err().to_string();
        assert!(failure.contains("a.rs:5:6: replace + with - in f") && !failure.contains("3:4"), "{failure}");
        assert!(outcomes.judge(&[]).unwrap_err().to_string().contains("3:4"));
        assert!(Outcomes::default().judge(&[]).is_err(), "a run that changed nothing shows nothing");
    }

    #[test]
    fn the_table_counts_by_file() {
        let table = Outcomes::parse(OUTCOMES).unwrap().table(&accepted(1)).to_string();
        let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["a.rs", "3", "1", "0", "1", "1", "0"]);
        assert_eq!(rows[1], ["b/c.rs", "2", "0", "1", "0", "0", "1"]);
        assert_eq!(rows[2], ["all", "5", "1", "1", "1", "1", "1"]);
    }

    #[test]
    fn what_is_no_report_is_refused() {
        assert!(Outcomes::parse("{}").is_none());
        assert!(Outcomes::parse(&OUTCOMES.replace("Timeout", "Nonsense")).is_none());
    }
}
