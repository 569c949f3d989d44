//! All metrics as OTLP, from the text that a scraper would get: so the two never differ. The two that the conventions for
//! generative AI name (semantic-conventions-genai) stand under those names, too.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::{Sender, nanoseconds, text};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;

/// Metrics with a name in the conventions.
const CONVENTIONAL: [(&str, &str); 2] = [
    ("isotherm_request_duration_seconds", "gen_ai.server.request.duration"),
    ("isotherm_time_to_first_token_seconds", "gen_ai.server.time_to_first_token"),
];

/// The body of a request to `/v1/metrics`, of what was exposed in the OpenMetrics format. `since` is when counting began.
pub fn metrics(sender: &Sender, exposed: &str, since: SystemTime, now: SystemTime) -> Vec<u8> {
    let times = (nanoseconds(since), nanoseconds(now));
    let mut all: Vec<Value> = Vec::new();
    for family in families(exposed) {
        let points = family.points(&times);
        if points.is_empty() {
            continue;
        }
        let data = |points: Vec<Value>| match family.kind {
            "counter" => {
                ("sum", json!({ "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points }))
            }
            "histogram" => ("histogram", json!({ "aggregationTemporality": CUMULATIVE, "dataPoints": points })),
            _ => ("gauge", json!({ "dataPoints": points })),
        };
        if let Some((_, conventional)) = CONVENTIONAL.iter().find(|(ours, _)| *ours == family.name) {
            let required = [text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", "isotherm")];
            let mut points = points.clone();
            for attributes in points.iter_mut().filter_map(|point| point["attributes"].as_array_mut()) {
                attributes.extend(required.clone());
            }
            let (form, data) = data(points);
            all.push(json!({ "name": conventional, "description": family.help, "unit": "s", form: data }));
        }
        let (form, data) = data(points);
        let unit = if family.name.ends_with("_seconds") {
            "s"
        } else if family.name.ends_with("_bytes") {
            "By"
        } else {
            "1"
        };
        all.push(json!({ "name": family.name, "description": family.help, "unit": unit, form: data }));
    }
    let scoped = json!({ "scope": sender.scope(), "metrics": all });
    let body = json!({ "resourceMetrics": [{ "resource": sender.resource(), "scopeMetrics": [scoped] }] });
    body.to_string().into_bytes()
}

/// All series of one name.
#[derive(Default)]
struct FamilyText<'t> {
    name: &'t str,
    kind: &'t str,
    help: &'t str,
    samples: Vec<Sample<'t>>,
}

struct Sample<'t> {
    /// What stands behind the family's name: `_total`, `_bucket`, `_sum`, `_count`, or nothing.
    suffix: &'t str,
    labels: Vec<(&'t str, String)>,
    value: f64,
}

fn families(exposed: &str) -> Vec<FamilyText<'_>> {
    let mut families: Vec<FamilyText<'_>> = Vec::new();
    for line in exposed.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (Some(what), Some(name)) = (words.next(), words.next()) else { continue };
            if families.last().is_none_or(|family| family.name != name) {
                families.push(FamilyText { name, ..FamilyText::default() });
            }
            let Some(family) = families.last_mut() else { continue };
            match what {
                "TYPE" => family.kind = words.next().unwrap_or_default(),
                "HELP" => family.help = words.next().unwrap_or_default(),
                _ => {}
            }
        } else if let Some(family) = families.last_mut() {
            family.samples.extend(line.strip_prefix(family.name).and_then(Sample::read));
        }
    }
    families
}

impl<'t> Sample<'t> {
    /// Reads what follows the family's name: `suffix{label="value",…} number …`.
    fn read(rest: &'t str) -> Option<Sample<'t>> {
        let end = rest.find(['{', ' '])?;
        let (suffix, mut rest) = rest.split_at(end);
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            while !rest.starts_with('}') {
                let (name, behind) = rest.split_once("=\"")?;
                let (value, length) = unquoted(behind)?;
                labels.push((name, value));
                rest = behind[length..].trim_start_matches(',');
            }
            rest = &rest[1..];
        }
        let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
        Some(Sample { suffix, labels, value })
    }
}

/// A label's value without its escapes, and how long it is written with its closing quote.
fn unquoted(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, at + 1)),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            plain => value.push(plain),
        }
    }
    None
}

impl FamilyText<'_> {
    fn points(&self, (since, now): &(String, String)) -> Vec<Value> {
        if self.kind == "histogram" {
            return self.histograms(since, now);
        }
        let point = |sample: &Sample<'_>| {
            json!({ "attributes": attributes(&sample.labels), "startTimeUnixNano": since, "timeUnixNano": now,
                    "asDouble": sample.value })
        };
        self.samples.iter().filter(|sample| matches!(sample.suffix, "" | "_total")).map(point).collect()
    }

    fn histograms(&self, since: &str, now: &str) -> Vec<Value> {
        #[derive(Default)]
        struct Series {
            buckets: Vec<(f64, f64)>,
            sum: f64,
            count: f64,
        }
        let mut series: BTreeMap<Vec<(&str, String)>, Series> = BTreeMap::new();
        for Sample { suffix, labels, value } in &self.samples {
            let mut own = labels.clone();
            own.retain(|(name, _)| *name != "le");
            let series = series.entry(own).or_default();
            match *suffix {
                "_sum" => series.sum = *value,
                "_count" => series.count = *value,
                _ => {
                    let bound = labels.iter().find(|(name, _)| *name == "le").and_then(|(_, bound)| bound.parse().ok());
                    series.buckets.push((bound.unwrap_or(f64::INFINITY), *value));
                }
            }
        }
        let point = |(labels, Series { buckets, sum, count }): (Vec<(&str, String)>, Series)| {
            let bounds: Vec<f64> = buckets.iter().map(|(bound, _)| *bound).filter(|bound| bound.is_finite()).collect();
            // Text counts up to each bound, OTLP between them.
            let below = std::iter::once(0.0).chain(buckets.iter().map(|(_, upto)| *upto));
            let counts: Vec<String> =
                buckets.iter().zip(below).map(|((_, upto), below)| format!("{:.0}", upto - below)).collect();
            json!({ "attributes": attributes(&labels), "startTimeUnixNano": since, "timeUnixNano": now,
                    "count": format!("{count:.0}"), "sum": sum, "explicitBounds": bounds, "bucketCounts": counts })
        };
        series.into_iter().map(point).collect()
    }
}

fn attributes(labels: &[(&str, String)]) -> Vec<Value> {
    labels.iter().map(|(name, value)| text(name, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;

    fn sender() -> Sender {
        Sender { service: "isotherm".into(), instance: "one".into(), version: "1" }
    }

    fn told(exposed: &str) -> Value {
        let body = metrics(&sender(), exposed, SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH);
        let body: Value = serde_json::from_slice(&body).unwrap();
        body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].clone()
    }

    #[test]
    fn counters_gauges_and_histograms_come_as_they_are_exposed() {
        let told = told(
            "# HELP hits Hits.\n# TYPE hits counter\nhits_total{a=\"x,y=\\\"\\n\"} 3\n# TYPE level gauge\nlevel 1.5\n\
             # TYPE wait_seconds histogram\nwait_seconds_sum{v=\"q\"} 2.5\nwait_seconds_count{v=\"q\"} 4\n\
             wait_seconds_bucket{v=\"q\",le=\"0.1\"} 1\nwait_seconds_bucket{v=\"q\",le=\"1.0\"} 3\n\
             wait_seconds_bucket{v=\"q\",le=\"+Inf\"} 4\n# EOF\n",
        );
        let hits = &told[0]["sum"]["dataPoints"][0];
        assert_eq!(
            (&hits["asDouble"], &hits["attributes"][0]["value"]["stringValue"]),
            (&3.0.into(), &"x,y=\"\n".into())
        );
        assert_eq!((&told[1]["gauge"]["dataPoints"][0]["asDouble"], &told[1]["unit"]), (&1.5.into(), &"1".into()));
        let wait = &told[2]["histogram"]["dataPoints"][0];
        assert_eq!((&wait["count"], &wait["sum"]), (&"4".into(), &2.5.into()));
        assert_eq!((&wait["explicitBounds"], &wait["bucketCounts"]), (&json!([0.1, 1.0]), &json!(["1", "2", "1"])));
    }

    #[test]
    fn everything_that_is_exposed_is_told() {
        let exposed = Metrics::new("1").expose(Some("application/openmetrics-text")).body;
        let told = told(&exposed);
        let names: Vec<&str> = told.as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
        assert!(names.contains(&"isotherm_build") || names.contains(&"isotherm_build_info"), "{names:?}");
        assert!(names.contains(&"process_start_time_seconds"), "{names:?}");
    }
}
