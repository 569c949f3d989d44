//! The snapshot as text, for any width.

use std::time::{Duration, SystemTime};

use isotherm_report::{Align, Table};
use serde_json::Value;

/// Below this, columns that can be spared are left out.
const NARROW: usize = 90;

/// How many hot prefixes and requests are shown.
const PREFIXES: usize = 5;
const REQUESTS: usize = 8;

/// The snapshot in lines of at most `width` columns.
pub(super) fn render(overview: &Value, admin: &str, width: usize) -> String {
    let mut text = heading(overview, admin) + &alerts(overview);
    for variant in items(overview, "variants") {
        text += &variant_lines(variant, width);
    }
    text += &hot_prefixes(overview, width);
    text += &last_requests(overview, width);
    cut(&text, width)
}

fn heading(overview: &Value, admin: &str) -> String {
    let instances = || items(overview, "variants").iter().flat_map(|variant| items(variant, "instances"));
    let up = instances().filter(|instance| instance["availability"] == "up").count();
    let state = match (overview["draining"].as_bool(), overview["ready"].as_bool()) {
        (Some(true), _) => "DRAINING",
        (_, Some(true)) => "ready",
        _ => "NOT READY",
    };
    format!("{state}, {up} of {} instances up   isotherm at {admin}\n", instances().count())
}

/// What fires: the rest is for whoever looks closer.
fn alerts(overview: &Value) -> String {
    let firing = items(overview, "alerts").iter().filter(|alert| alert["state"] == "firing");
    firing.map(|alert| format!("ALERT  {}\n", word(&alert["summary"]))).collect()
}

fn variant_lines(variant: &Value, width: usize) -> String {
    let minute = &variant["minute"];
    let routing = ["prefix_length", "concurrency_threshold"].into_iter().filter_map(|name| {
        let number = variant[name].as_u64()?;
        Some(format!(", {} {number}", name.replace('_', " ")))
    });
    let title = format!(
        "\n{}/{}  {}{}\n",
        word(&variant["endpoint"]),
        word(&variant["variant"]),
        word(&variant["strategy"]),
        routing.collect::<String>()
    );
    let figures = format!(
        "requests/s {}   errors {}   in flight {}   waiting {}\nhit rate {} (expected {})   spills {}\n",
        number(&minute["requests_per_second"], 1),
        percent(&minute["error_rate"]),
        variant["in_flight"],
        variant["waiting"],
        percent(&minute["hit_rate"]),
        percent(&minute["expected_hit_rate"]),
        percent(&minute["spill_rate"]),
    );
    title + &figures + &times_to_first_token(minute) + &instances(variant, width)
}

fn times_to_first_token(minute: &Value) -> String {
    let mut table = Table::new([Align::Left, Align::Right, Align::Right, Align::Right, Align::Right]);
    table.row(["TTFT ms", "P50", "P90", "P99", "requests"]);
    for outcome in ["hit", "miss", "spill", "unknown"] {
        let of = &minute["ttft"][outcome];
        if of["count"].as_u64() > Some(0) {
            let [p50, p90, p99] = ["p50_ms", "p90_ms", "p99_ms"].map(|name| number(&of[name], 0));
            table.row([outcome, &p50, &p90, &p99, &of["count"].to_string()]);
        }
    }
    format!("\n{table}")
}

fn instances(variant: &Value, width: usize) -> String {
    let threshold = variant["concurrency_threshold"].as_u64();
    let mut table = Table::new([
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
    ]);
    let spare = |text: &str| if width < NARROW { String::new() } else { text.to_owned() };
    let (queue, cache) = (spare("queue"), spare("KV cache"));
    let heading = ["instance", "state", "in flight", "share", &spare("by weight"), "hit rate", &queue, &cache];
    table.row(heading.into_iter().chain([&*spare("errors")]));
    for instance in items(variant, "instances") {
        let bound = threshold.map_or_else(String::new, |threshold| format!("/{threshold}"));
        table.row([
            &tail(&word(&instance["id"]), if width < NARROW { 20 } else { 40 }),
            &word(&instance["availability"]),
            &format!("{}{bound}", instance["in_flight"]),
            &percent(&instance["share"]),
            &spare(&percent(&instance["fair_share"])),
            &percent(&instance["hit_rate"]),
            &spare(&number(&instance["engine"]["waiting"], 0)),
            &spare(&percent(&instance["engine"]["kv_cache_usage"])),
            &spare(&instance["upstream_errors"].to_string()),
        ]);
    }
    format!("\n{table}")
}

fn hot_prefixes(overview: &Value, width: usize) -> String {
    let prefixes = items(overview, "hot_prefixes");
    if prefixes.is_empty() {
        return "\nhot prefixes: none yet\n".to_owned();
    }
    let mut table = Table::new([Align::Left, Align::Right, Align::Right, Align::Right, Align::Left]);
    table.row(["hot prefix", "share", "hit rate", "tokens", "held by"]);
    for prefix in prefixes.iter().take(PREFIXES) {
        let holders: Vec<String> = items(prefix, "holders")
            .iter()
            .take(3)
            .map(|holder| format!("{} {}", tail(&word(&holder["instance"]), 20), percent(&holder["share"])))
            .collect();
        table.row([
            &key(&prefix["key"], width),
            &percent(&prefix["share"]),
            &percent(&prefix["hit_rate"]),
            &number(&prefix["prompt_tokens"], 0),
            &holders.join(", "),
        ]);
    }
    format!("\n{table}")
}

fn last_requests(overview: &Value, width: usize) -> String {
    let requests = items(overview, "requests");
    if requests.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new([Align::Right, Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Left]);
    table.row(["seconds ago", "reason", "instance", "TTFT ms", "tokens", "cached", "prefix"]);
    let now = overview["time"].as_f64().unwrap_or_else(unix_now);
    for request in requests.iter().take(REQUESTS) {
        let reason = match request["cause"].as_str() {
            Some(cause) => format!("{} ({cause})", word(&request["reason"])),
            None => word(&request["reason"]),
        };
        table.row([
            &request["time"].as_f64().map_or_else(unknown, |time| format!("{:.0}", (now - time).max(0.0))),
            &reason,
            &tail(&word(&request["instance"]), 20),
            &number(&request["ttft_ms"], 0),
            &number(&request["prompt_tokens"], 0),
            &number(&request["cached_tokens"], 0),
            &key(&request["key"], width),
        ]);
    }
    format!("\n{table}")
}

fn items<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> String {
    // What others chose (names, ids) must not steer the terminal.
    value.as_str().map_or_else(unknown, |text| text.chars().filter(|c| !c.is_control()).collect())
}

fn number(value: &Value, decimals: usize) -> String {
    value.as_f64().map_or_else(unknown, |number| format!("{number:.decimals$}"))
}

fn percent(value: &Value) -> String {
    value.as_f64().map_or_else(unknown, |share| format!("{:.1}%", share * 100.0))
}

fn key(value: &Value, width: usize) -> String {
    let key = word(value);
    if width < NARROW { key.chars().take(8).collect() } else { key.chars().take(16).collect() }
}

fn unknown() -> String {
    "–".to_owned()
}

/// The end of a text: what differs between URLs stands there.
fn tail(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        text.to_owned()
    } else {
        format!("…{}", text.chars().skip(length + 1 - most).collect::<String>())
    }
}

fn cut(text: &str, width: usize) -> String {
    text.lines().map(|line| line.chars().take(width).collect::<String>().trim_end().to_owned() + "\n").collect()
}

fn unix_now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).as_ref().map(Duration::as_secs_f64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn overview() -> Value {
        json!({
            "time": 1_000.0, "ready": true, "draining": false,
            "alerts": [{ "alert": "IsothermSpills", "state": "firing", "summary": "chat/AllTraffic spills" },
                       { "alert": "IsothermHotPrefix", "state": "pending", "summary": "not yet" }],
            "variants": [{
                "endpoint": "chat", "variant": "AllTraffic", "strategy": "PREFIX_AWARE", "prefix_length": 4096,
                "concurrency_threshold": 10, "in_flight": 3, "waiting": 0,
                "minute": { "requests_per_second": 12.34, "error_rate": 0.0, "spill_rate": 0.05, "hit_rate": 0.812,
                            "expected_hit_rate": null,
                            "ttft": { "hit": { "count": 9, "p50_ms": 64.2, "p90_ms": 80.0, "p99_ms": 99.9 },
                                      "miss": { "count": 0 } } },
                "instances": [{ "id": "http://10.0.0.1:8000", "availability": "up", "in_flight": 3, "share": 0.5,
                                "fair_share": 0.25, "hit_rate": 0.8, "upstream_errors": 0 }],
            }],
            "hot_prefixes": [{ "key": "dcecc7806d1582cf14b78122ecb5c9b6", "share": 0.3, "hit_rate": null,
                               "prompt_tokens": 8000.0,
                               "holders": [{ "instance": "http://10.0.0.1:8000", "share": 1.0 }] }],
            "requests": [{ "time": 998.0, "reason": "spill", "cause": "threshold", "instance": "a\u{1b}[2J",
                           "ttft_ms": 64.0, "prompt_tokens": 8000, "cached_tokens": null, "key": "dcecc780" }],
        })
    }

    #[test]
    fn a_snapshot_is_told_in_words_and_unknown_is_no_zero() {
        let text = render(&overview(), "http://127.0.0.1:8081", 120);
        for part in [
            "ready, 1 of 1 instances up",
            "chat/AllTraffic  PREFIX_AWARE, prefix length 4096, concurrency threshold 10",
            "requests/s 12.3   errors 0.0%   in flight 3   waiting 0\nhit rate 81.2% (expected –)   spills 5.0%",
            "3/10",
            "ALERT  chat/AllTraffic spills\n",
            "dcecc7806d1582cf",
            "spill (threshold)",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(!text.contains("miss") && !text.contains("not yet") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [40, 60, 80] {
            let text = render(&overview(), "http://127.0.0.1:8081", width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            assert!(text.contains("3/10"), "{width}:\n{text}");
        }
    }

    #[test]
    fn a_router_that_has_served_nothing_says_so() {
        let text = render(&json!({ "variants": [], "hot_prefixes": [], "requests": [] }), "x", 80);
        assert!(text.contains("NOT READY, 0 of 0 instances up") && text.contains("none yet"), "{text}");
    }
}
