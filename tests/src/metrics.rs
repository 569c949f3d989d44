//! The router's metrics, read as Prometheus reads them.

use crate::Client;

/// One reading of `/metrics`.
#[derive(Debug)]
pub struct Metrics(Vec<Sample>);

#[derive(Debug)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl Metrics {
    /// Reads the admin plane's metrics.
    pub async fn read(admin: &str) -> Metrics {
        Metrics::parse(Client::new(admin).get("/metrics").await.ok().text())
    }

    /// The sum over all series of this name that have all of these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |sample: &Sample, name: &str, value: &str| {
            sample.labels.iter().any(|(own_name, own_value)| own_name == name && own_value == value)
        };
        let named = self.0.iter().filter(|sample| sample.name == name);
        let matching = named.filter(|sample| labels.iter().all(|(name, value)| has(sample, name, value)));
        matching.map(|sample| sample.value).sum()
    }

    /// Requests in flight on all instances.
    pub fn in_flight(&self) -> f64 {
        self.sum("isotherm_in_flight", &[])
    }

    fn parse(text: &str) -> Metrics {
        let samples = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        Metrics(samples.map(|line| parse_sample(line).unwrap_or_else(|| panic!("no sample: {line}"))).collect())
    }
}

/// `name{label="value",…} 1`; the values that we look at hold no escapes.
fn parse_sample(line: &str) -> Option<Sample> {
    let (series, value) = match line.rfind('}') {
        Some(brace) => (&line[..brace], line[brace + 1..].split_whitespace().next()?),
        None => line.split_once(' ')?,
    };
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    let labels = labels.split("\",").filter(|label| !label.is_empty()).filter_map(|label| {
        let (name, value) = label.split_once("=\"")?;
        Some((name.to_owned(), value.trim_end_matches('"').to_owned()))
    });
    Some(Sample { name: name.to_owned(), labels: labels.collect(), value: value.trim().parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::Metrics;

    #[test]
    fn reads_samples_with_and_without_labels() {
        let metrics = Metrics::parse(
            "# TYPE a counter\na_total{reason=\"home\",instance=\"http://127.0.0.1:1\"} 3\na_total{reason=\"spill\"} 4\nb 0.5\n",
        );
        assert_eq!(metrics.sum("a_total", &[]), 7.0);
        assert_eq!(metrics.sum("a_total", &[("reason", "home")]), 3.0);
        assert_eq!(metrics.sum("a_total", &[("instance", "http://127.0.0.1:1")]), 3.0);
        assert_eq!(metrics.sum("b", &[]), 0.5);
        assert_eq!(metrics.sum("a", &[]), 0.0);
    }
}
