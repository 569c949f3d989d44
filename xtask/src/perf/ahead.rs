//! Isotherm beside the best router for language models, at every size: added time, throughput of a core, memory.

use isotherm_report::{Align, Table};

use super::figures::{Figures, Results};
use super::plan::Plan;
use super::targets::ROUTERS;

/// Case by case, and memory last; `None` without Isotherm, or with no such router beside it.
pub(crate) fn table(results: &Results, plan: &Plan) -> Option<Table> {
    let own = results.find("isotherm")?;
    let routers: Vec<usize> = ROUTERS.iter().filter_map(|name| results.find(name)).collect();
    if routers.is_empty() {
        return None;
    }
    let mut table = Table::new([
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Left,
        Align::Left,
    ]);
    table.row(["case", "added p50, µs", "best", "of", "requests/s a core", "best", "of", ""]);
    for &case in &plan.cases {
        let [added, rate] = [added as fn(&Figures) -> f64, rate].map(|figure| Beside {
            own: figure(&results.of(own, case)),
            others: routers.iter().map(|&router| (router, figure(&results.of(router, case)))).collect(),
        });
        let is_ahead = added.is_lower() && rate.is_higher();
        let mut row = vec![format!("{}, {} at once", case.shape(), case.connections)];
        row.extend(added.cells(results, Beside::lowest));
        row.extend(rate.cells(results, Beside::highest));
        row.push(if is_ahead { "ahead" } else { "NOT ahead" }.to_owned());
        table.row(row);
    }
    let after = |index: usize| results.names[index].memory.map_or(f64::NAN, |memory| memory.after);
    let memory = Beside { own: after(own), others: routers.iter().map(|&router| (router, after(router))).collect() };
    let mut row = vec!["memory after all of it, MiB".to_owned()];
    row.extend(memory.cells(results, Beside::lowest));
    row.extend([String::new(), String::new(), String::new()]);
    row.push(if memory.is_lower() { "ahead" } else { "NOT ahead" }.to_owned());
    table.row(row);
    Some(table)
}

fn added(figures: &Figures) -> f64 {
    figures.added_p50
}

/// What one core would serve if it did nothing else.
fn rate(figures: &Figures) -> f64 {
    1e6 / figures.sample.cpu_us
}

/// Isotherm's figure and those of the others; not finite where nothing was measured.
struct Beside {
    own: f64,
    others: Vec<(usize, f64)>,
}

impl Beside {
    fn measured(&self) -> impl Iterator<Item = (usize, f64)> {
        self.others.iter().copied().filter(|(_, value)| value.is_finite())
    }

    fn lowest(&self) -> Option<(usize, f64)> {
        self.measured().min_by(|left, right| left.1.total_cmp(&right.1))
    }

    fn highest(&self) -> Option<(usize, f64)> {
        self.measured().max_by(|left, right| left.1.total_cmp(&right.1))
    }

    fn is_lower(&self) -> bool {
        self.own.is_finite() && self.lowest().is_none_or(|(_, best)| self.own < best)
    }

    fn is_higher(&self) -> bool {
        self.own.is_finite() && self.highest().is_none_or(|(_, best)| self.own > best)
    }

    fn cells(&self, results: &Results, best: fn(&Beside) -> Option<(usize, f64)>) -> [String; 3] {
        let own = if self.own.is_finite() { format!("{:.0}", self.own) } else { "–".to_owned() };
        match best(self) {
            Some((index, value)) => [own, format!("{value:.0}"), results.names[index].name.clone()],
            None => [own, "–".to_owned(), String::new()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::table;
    use crate::arguments::Arguments;
    use crate::perf::figures::{Memory, Named, Results};
    use crate::perf::measure::Sample;
    use crate::perf::plan::Plan;

    /// Direct, Isotherm and two others, which take so many microseconds to the first byte and of processor time.
    fn page(isotherm: (f64, f64), smg: (f64, f64)) -> String {
        let plan = Plan::take(&mut Arguments::new(std::iter::empty())).unwrap();
        let mut results = Results::new(&[]);
        results.names.extend(["isotherm", "smg", "vllm-router"].map(|name| Named {
            name: name.to_owned(),
            memory: Some(Memory { after: if name == "isotherm" { 20.0 } else { 100.0 }, ..Memory::default() }),
            ..Named::default()
        }));
        for &case in &plan.cases {
            let measured = [(50.0, f64::INFINITY), isotherm, smg, (f64::NAN, f64::INFINITY)];
            for (index, (first_byte_p50, cpu_us)) in measured.into_iter().enumerate() {
                let sample = Sample { first_byte_p50, cpu_us, ..Sample::default() };
                results.add(index.checked_sub(1), case, sample);
            }
        }
        table(&results, &plan).unwrap().to_string()
    }

    #[test]
    fn ahead_is_who_adds_less_and_serves_more_with_a_core() {
        let ahead = page((100.0, 20.0), (200.0, 100.0));
        assert_eq!(ahead.matches(" ahead").count(), 13, "{ahead}");
        assert!(!ahead.contains("NOT ahead") && ahead.contains("50000") && ahead.contains("smg"), "{ahead}");
        assert_eq!(page((300.0, 20.0), (200.0, 100.0)).matches("NOT ahead").count(), 12);
        assert_eq!(page((100.0, 200.0), (200.0, 100.0)).matches("NOT ahead").count(), 12);
    }
}
