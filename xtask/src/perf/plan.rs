//! What is measured, and for how long.

use crate::arguments::Arguments;
use crate::failure::Failure;

/// Tokens of streamed answers.
const STREAMS: [u32; 2] = [1, 200];

/// How long cases are measured at least in which a single request may take a second.
pub(crate) const LONG_SECONDS: f64 = 4.0;

/// One size of prompt, kind of answer and concurrency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) prompt_bytes: u32,
    /// 0: the answer is not streamed.
    pub(crate) tokens: u32,
    pub(crate) connections: u32,
}

/// A run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) cases: Vec<Case>,
    pub(crate) rounds: usize,
    /// Of one measurement, its beginning that does not count included.
    pub(crate) seconds: f64,
    pub(crate) with_litellm: bool,
    only: Vec<String>,
}

impl Plan {
    /// Takes the options that belong to it.
    pub(crate) fn take(arguments: &mut Arguments) -> Result<Plan, Failure> {
        let (quick, full) = (arguments.flag("--quick"), arguments.flag("--full"));
        let (rounds, seconds) = if quick { (3, 0.6) } else { (5, 2.0) };
        let with_litellm = arguments.flag("--litellm");
        let only = arguments.values("--only")?;
        let rounds = arguments.value("--rounds")?.unwrap_or(rounds);
        let seconds = arguments.value("--seconds")?.unwrap_or(seconds);
        if rounds == 0 || !(0.05..=600.0).contains(&seconds) {
            return Err(Failure::Usage("--rounds must be at least 1, --seconds 0.05 to 600".to_owned()));
        }
        let cases = cases(full || quick).into_iter().filter(|case| full || !case.is_huge()).collect();
        Ok(Plan { cases, rounds, seconds, with_litellm, only })
    }

    /// Whether a subject is asked for.
    pub(crate) fn wants(&self, name: &str) -> bool {
        if self.only.is_empty() {
            name != "litellm" || self.with_litellm
        } else {
            self.only.iter().any(|only| only == name)
        }
    }

    /// Whether everything is asked for that there is.
    pub(crate) fn wants_all(&self) -> bool {
        self.only.is_empty()
    }

    /// In how many rounds a case is measured: those without targets in every third.
    pub(crate) fn rounds_of(&self, case: Case) -> usize {
        if case.has_targets() { self.rounds } else { self.rounds.div_ceil(3) }
    }

    /// How long a measurement of a case takes: so long that many requests end within it.
    pub(crate) fn seconds_of(&self, case: Case) -> f64 {
        if case.takes_long() { self.seconds.max(LONG_SECONDS) } else { self.seconds }
    }

    /// How much it is, in words.
    pub(crate) fn about(&self, subjects: usize) -> String {
        let minutes = self.seconds_in_all(subjects) / 60.0;
        let cases = self.cases.len();
        format!("{} rounds, {cases} cases, with {subjects}: {minutes:.1} min, and what starting takes", self.rounds)
    }

    fn seconds_in_all(&self, subjects: usize) -> f64 {
        self.cases.iter().map(|case| (self.rounds_of(*case) * subjects) as f64 * self.seconds_of(*case)).sum()
    }
}

impl Case {
    /// What is asked, without the concurrency.
    pub(crate) fn shape(self) -> String {
        let Case { prompt_bytes, tokens, .. } = self;
        let size = if prompt_bytes < 1 << 20 { prompt_bytes >> 10 } else { prompt_bytes >> 20 };
        let unit = if prompt_bytes < 1 << 20 { "KB" } else { "MB" };
        match tokens {
            0 => format!("{size} {unit}, not streamed"),
            1 => format!("{size} {unit}, stream of 1 token"),
            _ => format!("{size} {unit}, stream of {tokens} tokens"),
        }
    }

    /// Half a gigabyte at once, which takes minutes with some routers.
    fn is_huge(self) -> bool {
        self.prompt_bytes >= 1 << 20 && self.connections > 64
    }

    /// Whether one wave of its requests takes slow routers a good part of a second.
    fn takes_long(self) -> bool {
        self.prompt_bytes >= 1 << 20 && self.connections >= 64 || self.tokens > 1 && self.connections > 64
    }

    /// Whether the targets hold for it: larger and more are told only.
    pub(crate) fn has_targets(self) -> bool {
        self.prompt_bytes <= 32 << 10 && self.connections <= 64
    }
}

fn cases(full: bool) -> Vec<Case> {
    let sizes: &[u32] = if full { &[1 << 10, 32 << 10, 1 << 20] } else { &[1 << 10, 32 << 10] };
    let concurrencies: &[u32] = if full { &[1, 64, 512] } else { &[1, 64] };
    let answers = [0].into_iter().chain(STREAMS);
    let mut cases = Vec::new();
    for &connections in concurrencies {
        for &prompt_bytes in sizes {
            cases.extend(answers.clone().map(|tokens| Case { prompt_bytes, tokens, connections }));
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::Plan;
    use crate::arguments::Arguments;

    fn plan(line: &str) -> Plan {
        Plan::take(&mut Arguments::new(line.split_whitespace().map(str::to_owned))).unwrap()
    }

    #[test]
    fn quick_has_all_cases_in_some_minutes() {
        let quick = plan("--quick");
        assert!(quick.seconds_in_all(8) < 420.0, "{}", quick.seconds_in_all(8));
        let longer: Vec<_> = quick.cases.iter().filter(|case| quick.seconds_of(**case) > quick.seconds).collect();
        assert!(longer.len() == 5 && longer.iter().all(|case| !case.has_targets()), "{longer:?}");
        assert_eq!((quick.cases.len(), plan("").cases.len(), plan("--full").cases.len()), (24, 12, 27));
        let gated = quick.cases.iter().filter(|case| quick.rounds_of(**case) == quick.rounds).count();
        assert_eq!(gated, 12);
        assert!(plan("").wants("smg") && !plan("").wants("litellm") && plan("--litellm").wants("litellm"));
        assert!(!plan("--only nginx").wants("smg"));
    }
}
