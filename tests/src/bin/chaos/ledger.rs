//! What clients asked for, what they were told, and what engines did for it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// How a request ended, as its client saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// 200, and whole.
    Whole,
    /// 200, and an error event within the stream.
    ErrorEvent,
    /// The connection broke within the answer.
    Broken,
    /// Another status.
    Status(u16),
    /// The client left.
    Left,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    endings: HashMap<String, Ending>,
    /// The generations that came to their end, by request.
    completed: HashMap<String, HashSet<(usize, String)>>,
    wrong: Vec<String>,
}

impl Ledger {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client's request has ended.
    pub(crate) fn ended(&self, request: &str, ending: Ending) {
        let mut entries = self.entries();
        if let Some(before) = entries.endings.insert(request.to_owned(), ending) {
            entries.wrong.push(format!("{request} ended twice: {before:?}, {ending:?}"));
        }
        if let Ending::Status(status) = ending
            && !matches!(status, 429 | 500 | 502 | 503 | 504)
        {
            entries.wrong.push(format!("{request} was answered with {status}"));
        }
    }

    /// A client saw something that must not be.
    pub(crate) fn is_wrong(&self, what: String) {
        self.entries().wrong.push(what);
    }

    /// An engine's record of a request; the same may be told again.
    pub(crate) fn generated(&self, engine: usize, record: &Value) {
        let header = |name: &str| {
            let headers = record["headers"].as_array()?;
            headers.iter().find(|pair| pair[0] == name)?[1].as_str().map(str::to_owned)
        };
        // What a fault put in the place of an answer has no tokens.
        let tokens = record["output_tokens"].as_u64().unwrap_or_default();
        let whole = record["method"] == "POST" && record["status"] == 200 && tokens > 0;
        if !whole || record["aborted"] == true || record["in_flight"] == true {
            return;
        }
        if let Some(request) = header("x-request-id").filter(|id| id.starts_with("chaos-")) {
            let generation = format!("{}:{}", record["number"], record["arrived_ms"]);
            self.entries().completed.entry(request).or_default().insert((engine, generation));
        }
    }

    pub(crate) fn answered(&self) -> usize {
        self.entries().endings.values().filter(|ending| **ending == Ending::Whole).count()
    }

    /// What must not be: a second completed generation for one request, or a request that was told it failed at its end.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let entries = self.entries();
        let twice = entries.completed.iter().filter(|(_, generations)| generations.len() > 1);
        let twice = twice.map(|(request, generations)| format!("{request} was generated {} times", generations.len()));
        entries.wrong.iter().cloned().chain(twice).collect()
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries();
        let mut counts: BTreeMap<Ending, usize> = BTreeMap::new();
        for ending in entries.endings.values() {
            *counts.entry(*ending).or_default() += 1;
        }
        writeln!(f, "requests                      {:>8}", entries.endings.len())?;
        for (ending, count) in counts {
            writeln!(f, "  {:<28}{count:>8}", format!("{ending:?}"))?;
        }
        write!(f, "generations known complete    {:>8}", entries.completed.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(number: u64, aborted: bool) -> Value {
        json!({
            "method": "POST", "status": 200, "number": number, "arrived_ms": 1.0, "aborted": aborted,
            "in_flight": false, "output_tokens": 8, "headers": [["x-request-id", "chaos-7"]],
        })
    }

    #[test]
    fn a_second_generation_is_wrong_and_the_same_told_twice_is_not() {
        let ledger = Ledger::default();
        ledger.generated(0, &record(1, false));
        ledger.generated(0, &record(1, false));
        ledger.generated(1, &record(1, true));
        assert!(ledger.wrong().is_empty());
        ledger.generated(1, &record(2, false));
        assert_eq!(ledger.wrong(), ["chaos-7 was generated 2 times"]);
    }

    #[test]
    fn a_request_ends_once_and_in_an_answer_that_may_be() {
        let ledger = Ledger::default();
        ledger.ended("chaos-1", Ending::Whole);
        ledger.ended("chaos-2", Ending::Status(404));
        ledger.ended("chaos-1", Ending::Left);
        assert_eq!(ledger.wrong().len(), 2);
        assert_eq!(ledger.answered(), 0);
    }
}
