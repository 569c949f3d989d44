//! A page of promises: rows of number, promise, state and tests, under a line that tells the last run.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::path::PathBuf;

use super::Results;
use crate::failure::Failure;
use crate::machine;

/// What the line begins with that tells the last run.
const LAST_RUN: &str = "Last run: ";
/// What a row says whose tests did not all pass; the next run may take it back.
const FAILED: &str = "failed";
/// The same where a test that is named did not run.
const NOT_RUN: &str = "not run";

/// What a row says whose tests all pass and show the whole of it.
const SHOWN: &str = "shown";

/// A page, line by line.
#[derive(Debug)]
pub(super) struct Page {
    file: PathBuf,
    lines: Vec<String>,
}

/// How many of the tests that are named passed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    passed: usize,
    failed: usize,
    not_run: usize,
}

impl Page {
    pub(super) fn read(name: &str) -> Result<Page, Failure> {
        let file = machine::root().join(name);
        let text = fs::read_to_string(&file).map_err(|error| Failure::file(&file, &error))?;
        Ok(Page { file, lines: text.lines().map(str::to_owned).collect() })
    }

    /// The tests that its rows name.
    pub(super) fn tests(&self) -> BTreeSet<String> {
        self.lines.iter().filter_map(|line| Row::read(line)).flat_map(|row| row.tests()).collect()
    }

    /// Sets each row's state by what came out, and the line that tells the run.
    pub(super) fn judge(&mut self, results: &Results) -> Tally {
        for line in &mut self.lines {
            let Some(row) = Row::read(line) else { continue };
            let outcomes: Vec<Option<bool>> = row.tests().iter().map(|test| results.get(test).copied()).collect();
            let trouble = if outcomes.contains(&Some(false)) {
                Some(FAILED)
            } else if outcomes.contains(&None) {
                Some(NOT_RUN)
            } else {
                None
            };
            // A row that says more than `shown`, such as `in part`, says so after the tests pass again, too.
            let own = row.cells[2].split(", ").next().filter(|own| ![FAILED, NOT_RUN].contains(own)).unwrap_or(SHOWN);
            let state = match trouble {
                None => own.to_owned(),
                Some(trouble) if own == SHOWN => trouble.to_owned(),
                Some(trouble) => format!("{own}, {trouble}"),
            };
            *line = row.with_state(&state);
        }
        let mut tally = Tally::default();
        for test in self.tests() {
            match results.get(&test) {
                Some(true) => tally.passed += 1,
                Some(false) => tally.failed += 1,
                None => tally.not_run += 1,
            }
        }
        let told = format!("{LAST_RUN}{}, {}: {tally}.", today(), commit());
        if let Some(line) = self.lines.iter_mut().find(|line| line.starts_with(LAST_RUN)) {
            *line = told;
        }
        tally
    }

    pub(super) fn write(&self) -> Result<(), Failure> {
        fs::write(&self.file, self.lines.join("\n") + "\n").map_err(|error| Failure::file(&self.file, &error))
    }
}

/// A row of a table with four columns: number, promise, state, tests.
struct Row<'l> {
    cells: [&'l str; 4],
}

impl Row<'_> {
    fn read(line: &str) -> Option<Row<'_>> {
        let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let cells: [&str; 4] = inner.split(" | ").collect::<Vec<_>>().try_into().ok()?;
        cells[0].trim_start_matches(['T', 'R']).parse::<u32>().ok().map(|_| Row { cells })
    }

    /// What stands in backquotes and can be a test's name.
    fn tests(&self) -> BTreeSet<String> {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let is_test = |word: &&str| word.matches('_').count() > 1 && word.bytes().all(letter);
        self.cells[3].split('`').skip(1).step_by(2).filter(is_test).map(str::to_owned).collect()
    }

    fn with_state(&self, state: &str) -> String {
        let [number, promise, _, tests] = self.cells;
        format!("| {number} | {promise} | {state} | {tests} |")
    }
}

impl Tally {
    pub(super) fn is_good(self) -> bool {
        self.failed + self.not_run == 0
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.not_run += other.not_run;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { passed, failed, not_run } = self;
        let named = passed + failed + not_run;
        write!(formatter, "{named} tests are named, {passed} passed, {failed} failed, {not_run} did not run")
    }
}

fn today() -> String {
    let date = machine::output(machine::command("date").args(["-u", "+%F"]));
    date.map_or_else(|_| "at an unknown date".to_owned(), |date| date.trim().to_owned())
}

fn commit() -> String {
    let git = |arguments: &[&str]| machine::output(machine::command("git").args(arguments)).unwrap_or_default();
    let commit = git(&["rev-parse", "--short", "HEAD"]);
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", "crates", "tests"]);
    let and_more = if changed.trim().is_empty() { "" } else { " with further changes" };
    format!("commit {}{and_more}", commit.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: &[&str]) -> Page {
        let lines = rows.iter().map(|row| (*row).to_owned()).collect();
        Page { file: PathBuf::new(), lines }
    }

    #[test]
    fn a_row_is_shown_only_while_all_of_its_tests_pass() {
        let mut page = page(&[
            "Last run: never",
            "| no. | what must hold | state | tests |",
            "| T1 | this | shown | `one_and_all`, `two_or_more` (with `--flag_of_it`) |",
            "| 2 | that | in part | nothing names a test |",
        ]);
        let results = |two| Results::from([("one_and_all".to_owned(), true), ("two_or_more".to_owned(), two)]);
        let tally = page.judge(&results(false));
        assert!(!tally.is_good() && page.lines[2].contains("| failed |"), "{page:?}");
        assert!(page.lines[0].ends_with("2 tests are named, 1 passed, 1 failed, 0 did not run."), "{page:?}");
        page.judge(&Results::new());
        assert!(page.lines[2].contains("| not run |"), "{page:?}");
        assert!(page.judge(&results(true)).is_good() && page.lines[2].contains("| shown |"), "{page:?}");
        assert!(page.lines[3].contains("| in part |"));
    }

    #[test]
    fn a_row_in_part_that_failed_is_in_part_again_and_not_shown() {
        let mut page = page(&["| T1 | this | in part | `one_and_all` |"]);
        page.judge(&Results::from([("one_and_all".to_owned(), false)]));
        assert!(page.lines[0].contains("| in part, failed |"), "{page:?}");
        page.judge(&Results::from([("one_and_all".to_owned(), true)]));
        assert!(page.lines[0].contains("| in part |"), "{page:?}");
    }
}
