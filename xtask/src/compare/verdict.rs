//! Whether `ADAPTIVE` is better or worse than another rule in a figure, by the interval of their difference.

use std::fmt;

use serde_json::Value;

/// A scenario: what `ADAPTIVE` reaches, and how it stands against each other rule.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) scenario: String,
    /// The parameters of `PREFIX_AWARE`.
    pub(crate) best: String,
    /// In the order of [`FIGURES`].
    pub(crate) own: [f64; 5],
    pub(crate) against: Vec<Against>,
}

#[derive(Debug)]
pub(crate) struct Against {
    /// With its parameters.
    strategy: String,
    /// Without them.
    pub(crate) rule: String,
    /// How `ADAPTIVE` differs: points of hit rate, percent of the others.
    pub(crate) differs: [f64; 5],
    pub(crate) verdicts: [Verdict; 5],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Better,
    Same,
    Worse,
}

/// A figure: where it stands, and whether more is better.
struct Figure {
    name: &'static str,
    path: &'static [&'static str],
    more_is_better: bool,
    is_rate: bool,
}

const FIGURES: [Figure; 5] = [
    Figure { name: "hit rate", path: &["hit_rate"], more_is_better: true, is_rate: true },
    Figure { name: "P50", path: &["ttft_ms", "p50"], more_is_better: false, is_rate: false },
    Figure { name: "P90", path: &["ttft_ms", "p90"], more_is_better: false, is_rate: false },
    Figure { name: "P99", path: &["ttft_ms", "p99"], more_is_better: false, is_rate: false },
    Figure { name: "throughput", path: &["requests_per_second"], more_is_better: true, is_rate: false },
];

/// A figure is worse only where its whole interval lies beyond these: points of hit rate, percent of the others.
const MARGIN_POINTS: f64 = 1.0;
const MARGIN_PERCENT: f64 = 2.0;

impl Row {
    /// Reads a study whose baseline is `ADAPTIVE`. `None` where a figure is missing.
    pub(crate) fn of(scenario: &str, best: &str, study: &Value) -> Option<Row> {
        let (own, others) = study["strategies"].as_array()?.split_first()?;
        let own = figures(|figure| at(own, figure)?.as_f64())?;
        let against = others.iter().map(Against::of).collect::<Option<_>>()?;
        Some(Row { scenario: scenario.to_owned(), best: best.to_owned(), own, against })
    }
}

impl Against {
    fn of(other: &Value) -> Option<Against> {
        let change = &other["change"];
        let differs = figures(|figure| Some(figure.turned(at(change, figure)?.as_f64()?)))?;
        let verdicts = figures(|figure| {
            let ends = at(&change["ci"], figure)?.as_array()?;
            let [one, other] = ends.as_slice() else { return None };
            Some(figure.verdict(figure.turned(other.as_f64()?), figure.turned(one.as_f64()?)))
        })?;
        let strategy = other["strategy"].as_str()?.to_owned();
        let rule = strategy.split('@').next()?.to_owned();
        Some(Against { strategy, rule, differs, verdicts })
    }
}

impl Figure {
    /// How `ADAPTIVE` differs from a rule that differs from it by so much: in points or percent.
    fn turned(&self, change: f64) -> f64 {
        if self.is_rate { -100.0 * change } else { 100.0 * (1.0 / (1.0 + change) - 1.0) }
    }

    fn verdict(&self, low: f64, high: f64) -> Verdict {
        let margin = if self.is_rate { MARGIN_POINTS } else { MARGIN_PERCENT };
        let (worst, best) = if self.more_is_better { (-high, -low) } else { (low, high) };
        if worst > margin {
            Verdict::Worse
        } else if best < 0.0 {
            Verdict::Better
        } else {
            Verdict::Same
        }
    }
}

fn at<'a>(value: &'a Value, figure: &Figure) -> Option<&'a Value> {
    figure.path.iter().try_fold(value, |value, key| value.get(key))
}

fn figures<T: fmt::Debug>(of: impl Fn(&Figure) -> Option<T>) -> Option<[T; 5]> {
    let found: Vec<T> = FIGURES.iter().map(of).collect::<Option<_>>()?;
    found.try_into().ok()
}

/// How many figures are what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) better: usize,
    pub(crate) same: usize,
    pub(crate) worse: usize,
}

impl Count {
    pub(crate) fn of(rows: &[Row]) -> Count {
        let verdicts = || rows.iter().flat_map(|row| &row.against).flat_map(|against| against.verdicts);
        let count = |wanted| verdicts().filter(|verdict| *verdict == wanted).count();
        Count { better: count(Verdict::Better), same: count(Verdict::Same), worse: count(Verdict::Worse) }
    }

    pub(crate) fn all(self) -> usize {
        self.better + self.same + self.worse
    }
}

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count { better, same, worse } = self;
        write!(formatter, "Of {} figures {better} are better, {same} no different, {worse} worse.", self.all())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let worse = self.worse();
        let worse = if worse.is_empty() { "nowhere worse".to_owned() } else { format!("worse: {}", worse.join(", ")) };
        write!(formatter, "{:17} {worse}", self.scenario)
    }
}

impl Row {
    /// The rules that are better in a figure, as `--strategies` takes them; `None` where there are none.
    pub(crate) fn worse_than(&self) -> Option<String> {
        let better = self.against.iter().filter(|against| against.verdicts.contains(&Verdict::Worse));
        let better: Vec<String> = better.map(|against| super::as_flag(&against.strategy)).collect();
        (!better.is_empty()).then(|| better.join(","))
    }

    /// Lets a study with other seeds decide about the figures that are worse. `None` where it lacks one of them.
    pub(crate) fn decide(&mut self, fresh: &Value) -> Option<()> {
        let fresh = Row::of(&self.scenario, &self.best, fresh)?.against;
        for against in self.against.iter_mut().filter(|against| against.verdicts.contains(&Verdict::Worse)) {
            let decisive = fresh.iter().find(|fresh| fresh.strategy == against.strategy)?;
            for (place, verdict) in against.verdicts.iter_mut().enumerate() {
                if *verdict == Verdict::Worse {
                    *verdict = decisive.verdicts[place];
                    against.differs[place] = decisive.differs[place];
                }
            }
        }
        Some(())
    }

    /// The figures in which `ADAPTIVE` is worse, and than whom.
    pub(crate) fn worse(&self) -> Vec<String> {
        let each = self.against.iter().flat_map(|against| {
            let figures = FIGURES.iter().zip(against.differs).zip(against.verdicts);
            let worse = figures.filter(|(_, verdict)| *verdict == Verdict::Worse);
            worse.map(|((figure, differs), _)| {
                let unit = if figure.is_rate { "points" } else { "%" };
                format!("{} than {} ({differs:+.1} {unit})", figure.name, against.rule)
            })
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn study(change: f64, low: f64, high: f64) -> Value {
        let all = |value: Value| {
            json!({ "hit_rate": value, "requests_per_second": value,
                "ttft_ms": { "p50": value, "p90": value, "p99": value } })
        };
        let mut changes = all(json!(change));
        changes["ci"] = all(json!([low, high]));
        let mut other = all(json!(1.0));
        other["strategy"] = json!("PREFIX_AWARE@1/2");
        other["change"] = changes;
        json!({ "strategies": [all(json!(1.0)), other] })
    }

    fn verdicts(change: f64, low: f64, high: f64) -> [Verdict; 5] {
        Row::of("s", "1/2", &study(change, low, high)).unwrap().against[0].verdicts
    }

    #[test]
    fn who_takes_longer_than_adaptive_makes_it_better_and_who_hits_more_makes_it_worse() {
        use Verdict::{Better, Worse};
        assert_eq!(verdicts(0.10, 0.05, 0.15), [Worse, Better, Better, Better, Worse]);
        assert_eq!(verdicts(-0.10, -0.15, -0.05), [Better, Worse, Worse, Worse, Better]);
    }

    #[test]
    fn within_the_margin_or_with_zero_in_the_interval_nothing_is_worse() {
        assert_eq!(verdicts(0.009, 0.005, 0.012)[0], Verdict::Same);
        assert_eq!(verdicts(0.10, -0.01, 0.21), [Verdict::Same; 5]);
        let row = Row::of("s", "1/2", &study(0.25, 0.2, 0.3)).unwrap();
        assert!((row.against[0].differs[1] + 20.0).abs() < 1e-9 && row.against[0].rule == "PREFIX_AWARE");
        assert_eq!(Count::of(&[row]), Count { better: 3, same: 0, worse: 2 });
    }

    #[test]
    fn fresh_seeds_decide_about_what_is_worse_and_about_nothing_else() {
        use Verdict::{Better, Same, Worse};
        let row = || Row::of("s", "1/2", &study(0.10, 0.05, 0.15)).unwrap();
        assert_eq!(row().worse_than().unwrap(), "prefix-aware@1/2");
        let mut acquitted = row();
        acquitted.decide(&study(-0.10, -0.15, -0.05)).unwrap();
        assert_eq!(acquitted.against[0].verdicts, [Better; 5]);
        assert_eq!(acquitted.worse_than(), None);
        let mut same = row();
        same.decide(&study(0.10, -0.01, 0.2)).unwrap();
        assert_eq!(same.against[0].verdicts, [Same, Better, Better, Better, Same]);
        let mut condemned = row();
        condemned.decide(&study(0.2, 0.19, 0.21)).unwrap();
        assert_eq!(condemned.against[0].verdicts, [Worse, Better, Better, Better, Worse]);
        assert!((condemned.against[0].differs[0] + 20.0).abs() < 1e-9);
        let mut stranger = study(0.1, 0.05, 0.15);
        stranger["strategies"][1]["strategy"] = json!("STICKY");
        assert!(row().decide(&stranger).is_none());
    }

    #[test]
    fn a_missing_figure_is_no_row() {
        let mut study = study(0.0, 0.0, 0.0);
        study["strategies"][1]["change"]["hit_rate"] = Value::Null;
        assert!(Row::of("s", "1/2", &study).is_none());
    }
}
