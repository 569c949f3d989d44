//! A Prometheus histogram with the buckets of vLLM's metrics.

use std::fmt::Write;

/// Counts observations below fixed bounds.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// `bounds` rise; an observation equal to a bound counts below it.
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    pub(crate) fn observe(&mut self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket] += 1;
        self.sum += value;
    }

    /// Appends the samples of one series, as the Python client orders and spells them. `labels` as `a="1",b="2"`,
    /// sorted around `le`.
    pub(crate) fn render(&self, name: &str, labels_before_le: &str, labels_after_le: &str, text: &mut String) {
        let mut total = 0;
        let bounds = self.bounds.iter().map(|bound| format!("{bound:?}")).chain(["+Inf".to_owned()]);
        for (count, bound) in self.counts.iter().zip(bounds) {
            total += count;
            let _ = writeln!(text, "{name}_bucket{{{labels_before_le},le=\"{bound}\",{labels_after_le}}} {total}.0");
        }
        let _ = writeln!(text, "{name}_count{{{labels_before_le},{labels_after_le}}} {total}.0");
        let _ = writeln!(text, "{name}_sum{{{labels_before_le},{labels_after_le}}} {:?}", self.sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_bounds_inclusive() {
        let mut histogram = Histogram::new(&[0.5, 1.0]);
        for value in [0.5, 0.75, 3.0] {
            histogram.observe(value);
        }
        let mut text = String::new();
        histogram.render("h", "a=\"1\"", "z=\"2\"", &mut text);
        let expected = "h_bucket{a=\"1\",le=\"0.5\",z=\"2\"} 1.0\nh_bucket{a=\"1\",le=\"1.0\",z=\"2\"} 2.0\n\
                        h_bucket{a=\"1\",le=\"+Inf\",z=\"2\"} 3.0\nh_count{a=\"1\",z=\"2\"} 3.0\n\
                        h_sum{a=\"1\",z=\"2\"} 4.25\n";
        assert_eq!(text, expected);
    }
}
