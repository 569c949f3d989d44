//! What libFuzzer says while it runs and at its end.

/// What it said so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) executions: u64,
    /// Edges of the control flow that the saved inputs reached, and all inputs until now.
    pub(crate) edges_at_first: u64,
    pub(crate) edges: u64,
    /// Inputs that reached something new.
    pub(crate) new_inputs: u64,
    /// Whether it came to its end with its figures, found or not.
    pub(crate) ended: bool,
}

impl Said {
    /// Reads its log: a line such as `#8192 pulse cov: 377 ft: 1061 corp: 97/3421b …` at every turn, and
    /// `stat::number_of_executed_units: 8192` and others at the end.
    pub(crate) fn read(log: &str) -> Said {
        let mut said = Said::default();
        for line in log.lines() {
            if let Some(figure) = after(line, "stat::number_of_executed_units:") {
                said.executions = figure;
                said.ended = true;
            } else if let Some(figure) = after(line, "stat::new_units_added:") {
                said.new_inputs = figure;
            } else if let (Some(executions), Some(edges)) =
                (line.starts_with('#').then(|| after(line, "#")).flatten(), after(line, " cov:"))
            {
                said.executions = executions;
                said.edges = edges;
                if line.contains("INITED") {
                    said.edges_at_first = edges;
                }
                said.new_inputs += u64::from(line.contains("NEW"));
            }
        }
        said
    }
}

/// The number behind a word.
fn after(line: &str, word: &str) -> Option<u64> {
    let (_, rest) = line.split_once(word)?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::Said;

    const BEGUN: &str = "INFO: seed corpus: files: 9 min: 2b max: 300b total: 900b rss: 40Mb\n\
        #10\tINITED cov: 377 ft: 1061 corp: 9/900b exec/s: 0 rss: 44Mb\n\
        #52\tNEW    cov: 380 ft: 1070 corp: 10/913b lim: 4096 exec/s: 0 rss: 44Mb L: 13/300 MS: 1 CopyPart-\n\
        #8192\tpulse  cov: 391 ft: 1104 corp: 14/999b lim: 4096 exec/s: 4096 rss: 60Mb\n";

    #[test]
    fn a_run_that_goes_on_is_told_by_its_last_line() {
        let expected = Said { executions: 8192, edges_at_first: 377, edges: 391, new_inputs: 1, ended: false };
        assert_eq!(Said::read(BEGUN), expected);
    }

    #[test]
    fn at_the_end_its_own_figures_count() {
        let log = format!("{BEGUN}stat::number_of_executed_units: 9000\nstat::new_units_added:          5\n");
        let expected = Said { executions: 9000, edges_at_first: 377, edges: 391, new_inputs: 5, ended: true };
        assert_eq!(Said::read(&log), expected);
        assert_eq!(Said::read("error: no such file\n"), Said::default());
    }
}
