//! The snapshot as text, for any width.

use std::time::{Duration, SystemTime};

use isotherm_report::{Align, Table};
use serde_json::Value;

/// Below this, columns that can be spared are left out.
const NARROW: usize = 90;

/// The steps of a picture of one line, from nothing to all.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How many hot prefixes and requests are shown.
const PREFIXES: usize = 5;
const REQUESTS: usize = 8;

/// The snapshot in lines of at most `width` columns.
pub(super) fn render(overview: &Value, admin: &str, width: usize) -> String {
    let mut text = heading(overview, admin) + &alerts(overview) + &deployments(overview);
    for variant in items(overview, "variants") {
        text += &variant_lines(variant, width);
    }
    text += &fleet_change(overview);
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

/// What is being deployed, or has failed to be.
fn deployments(overview: &Value) -> String {
    let line = |one: &Value| {
        let why = one["failure"].as_str().map_or_else(String::new, |_| format!(": {}", word(&one["failure"])));
        format!("DEPLOYMENT  {} {} to {}{why}\n", word(&one["endpoint"]), word(&one["status"]), word(&one["config"]))
    };
    items(overview, "deployments").iter().map(line).collect()
}

/// What the last change of the fleet moved.
fn fleet_change(overview: &Value) -> String {
    let Some(change) = items(overview, "fleet_changes").first() else { return String::new() };
    let named = |name: &str| {
        let ids: Vec<String> = items(change, name).iter().map(|id| tail(&word(id), 20)).collect();
        if ids.is_empty() { String::new() } else { format!(" {name} {},", ids.join(", ")) }
    };
    let ago = change["time"].as_f64().map_or(0.0, |time| (now(overview) - time).max(0.0));
    format!(
        "\nlast change of the fleet, {ago:.0} s ago:{}{} {} of {} hot prefixes got another home\n",
        named("came"),
        named("went"),
        change["moved"],
        change["followed"]
    )
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
    if minute["seconds"].as_f64() == Some(0.0) {
        return title + "collecting: the first figures come after five seconds\n" + &instances(variant, width);
    }
    let series = |name: &str, all: Option<f64>| picture(items(&variant["series"], name), all, width);
    let figures = format!(
        "requests/s {}   errors {}   in flight {}   waiting {}   {}\nhit rate {} (expected {})   spills {}   {}\n",
        number(&minute["requests_per_second"], 1),
        percent(&minute["error_rate"]),
        variant["in_flight"],
        variant["waiting"],
        series("requests_per_second", None),
        percent(&minute["hit_rate"]),
        percent(&minute["expected_hit_rate"]),
        percent(&minute["spill_rate"]),
        series("hit_rate", Some(1.0)),
    );
    title
        + &figures
        + &gain(&variant["shadow"])
        + &reasons(&variant["quarter_hour"])
        + &times_to_first_token(minute)
        + &instances(variant, width)
}

/// What the strategy in force hits more than chance would, and whether another would hit more.
fn gain(shadow: &Value) -> String {
    let rate = |wanted: &dyn Fn(&Value) -> bool| {
        items(shadow, "strategies").iter().find(|one| wanted(one)).and_then(|one| one["hit_rate"].as_f64())
    };
    let Some((own, random)) = rate(&|one| one["in_force"] == true).zip(rate(&|one| one["strategy"] == "RANDOM")) else {
        return String::new();
    };
    let better = shadow["better"]["strategy"].as_str().map_or_else(String::new, |_| {
        format!(
            "; {} would hit {} more",
            word(&shadow["better"]["strategy"]),
            percent(&shadow["better"]["hit_rate_gain"])
        )
    });
    let (gained, random) = ((own - random) * 100.0, random * 100.0);
    format!("RANDOM would hit {random:.1}%: {gained:+.1} points gained{better}\n")
}

/// Why requests went where they went, the most frequent first; spills by what made the home full.
fn reasons(figures: &Value) -> String {
    let counts = |name: &str| {
        let counts = figures[name].as_object().into_iter().flatten();
        counts.filter_map(|(name, count)| Some((name.clone(), count.as_f64()?))).collect::<Vec<_>>()
    };
    let (mut reasons, spills) = (counts("reasons"), counts("spills"));
    let all: f64 = reasons.iter().map(|(_, count)| count).sum();
    if all == 0.0 {
        return String::new();
    }
    reasons.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let share = |count: f64| format!("{:.1}%", count / all * 100.0);
    let told: Vec<String> = reasons.iter().map(|(name, count)| format!("{name} {}", share(*count))).collect();
    let full: Vec<String> = spills.iter().map(|(cause, count)| format!("{cause} {}", share(*count))).collect();
    let full = if full.is_empty() { String::new() } else { format!("; home full by {}", full.join(", ")) };
    format!("reasons: {}{full}\n", told.join(", "))
}

/// Values over time as a line of bars, of all there can be or of the highest; what is unknown is a gap. Nothing where there
/// is no room.
fn picture(values: &[Value], all: Option<f64>, width: usize) -> String {
    if width < NARROW {
        return String::new();
    }
    let most = all.unwrap_or_else(|| values.iter().filter_map(Value::as_f64).fold(0.0, f64::max));
    let bar = |value: &Value| {
        value.as_f64().map_or(' ', |value| {
            let step = if most > 0.0 { (value / most * (STEPS.len() - 1) as f64).round() } else { 0.0 };
            STEPS.get(step as usize).copied().unwrap_or(' ')
        })
    };
    // Five seconds a step; two of them in one bar.
    values.chunks(2).map(|pair| bar(pair.last().unwrap_or(&Value::Null))).collect()
}

fn times_to_first_token(minute: &Value) -> String {
    let seen = |outcome: &&str| minute["ttft"][*outcome]["count"].as_u64() > Some(0);
    let outcomes: Vec<&str> = ["hit", "miss", "spill", "unknown"].into_iter().filter(seen).collect();
    if outcomes.is_empty() {
        return String::new();
    }
    let mut table = Table::new([Align::Left, Align::Right, Align::Right, Align::Right, Align::Right]);
    table.row(["TTFT ms", "P50", "P90", "P99", "requests"]);
    for outcome in outcomes {
        let of = &minute["ttft"][outcome];
        let [p50, p90, p99] = ["p50_ms", "p90_ms", "p99_ms"].map(|name| number(&of[name], 0));
        table.row([outcome, &p50, &p90, &p99, &of["count"].to_string()]);
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
    let now = now(overview);
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

/// When the router said this, in Unix time.
fn now(overview: &Value) -> f64 {
    overview["time"].as_f64().unwrap_or_else(unix_now)
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
            "deployments": [{ "endpoint": "ep", "status": "Updating", "config": "two", "failure": null }],
            "fleet_changes": [{ "time": 980.0, "came": [], "went": ["b"], "moved": 9, "followed": 40 }],
            "alerts": [{ "alert": "IsothermSpills", "state": "firing", "summary": "chat/AllTraffic spills" },
                       { "alert": "IsothermHotPrefix", "state": "pending", "summary": "not yet" }],
            "variants": [{
                "endpoint": "chat", "variant": "AllTraffic", "strategy": "PREFIX_AWARE", "prefix_length": 4096,
                "concurrency_threshold": 10, "in_flight": 3, "waiting": 0,
                "series": { "requests_per_second": [9.0, 6.0, 1.0, 12.0],
                            "hit_rate": [0.1, 0.4, 0.9, null, 0.8, 0.8] },
                "quarter_hour": { "reasons": { "home": 95, "spill": 5 }, "spills": { "threshold": 5 } },
                "shadow": { "strategies": [{ "strategy": "PREFIX_AWARE", "in_force": true, "hit_rate": 0.79 },
                                           { "strategy": "RANDOM", "in_force": false, "hit_rate": 0.27 }],
                            "better": { "strategy": "ADAPTIVE", "hit_rate_gain": 0.04 } },
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
            "requests/s 12.3   errors 0.0%   in flight 3   waiting 0 ",
            "\nhit rate 81.2% (expected –)   spills 5.0%",
            "waiting 0   ▅█\n",
            "spills 5.0%   ▄ ▇\n",
            "RANDOM would hit 27.0%: +52.0 points gained; ADAPTIVE would hit 4.0% more\n",
            "reasons: home 95.0%, spill 5.0%; home full by threshold 5.0%\n",
            "DEPLOYMENT  ep Updating to two\n",
            "last change of the fleet, 20 s ago: went b, 9 of 40 hot prefixes got another home\n",
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
    fn before_the_first_figures_it_says_that_it_collects() {
        let mut young = overview();
        young["variants"][0]["minute"] = json!({ "seconds": 0.0, "hit_rate": null });
        let text = render(&young, "http://127.0.0.1:8081", 120);
        assert!(text.contains("collecting: the first figures come after five seconds"), "{text}");
        assert!(!text.contains("hit rate –") && text.contains("3/10"), "{text}");
    }

    #[test]
    fn a_router_that_has_served_nothing_says_so() {
        let text = render(&json!({ "variants": [], "hot_prefixes": [], "requests": [] }), "x", 80);
        assert!(text.contains("NOT READY, 0 of 0 instances up") && text.contains("none yet"), "{text}");
    }
}
