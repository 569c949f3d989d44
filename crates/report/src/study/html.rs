//! A study as one HTML page that needs nothing else: tables, pictures, and each picture again in words and numbers.

use std::fmt::Write as _;

use super::Study;
use super::picture::{Axis, COLOURS, Lines, Rows, escape, percent};
use super::text::{CHANGES, Column, FIGURES, WORK, bound_values, change_cell, known, notes};
use crate::{Detail, Moment, StrategySummary};

/// The page.
pub fn page(study: &Study) -> String {
    let mut content = figures(study);
    content.push_str(&pictures(study));
    content.push_str("<h2>How this came about</h2>");
    for note in notes(study).iter().skip(1) {
        let _ = write!(content, "<p>{}</p>", escape(note));
    }
    document(&study.report.scenario, &study.title, &content)
}

/// A page in the style of all reports. `content` is HTML, the others are text.
pub fn document(heading: &str, lead: &str, content: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{0}: {1}</title><style>{STYLE}{2}</style></head><body><main><h1>{0}</h1><p class=\"lead\">{1}</p>{content}</main></body></html>\n",
        escape(heading),
        escape(lead),
        colours(),
    )
}

const STYLE: &str = "\
:root{color-scheme:light dark;--paper:#fff;--ink:#1a1d21;--faint:#5c6470;--rule:#d9dde3}\
@media(prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e8eaed;--faint:#9aa3af;--rule:#333a43}}\
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}\
main{max-width:980px;margin:0 auto;padding:24px 16px 64px}h1{font-size:26px;margin:0}h2{font-size:18px;margin:36px 0 8px}\
.lead{color:var(--faint);margin:4px 0 16px}p{margin:4px 0}.wide{overflow-x:auto}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px;margin:8px 0;white-space:nowrap}\
th,td{padding:4px 10px;text-align:right;border-bottom:1px solid var(--rule)}th{font-weight:600;color:var(--faint)}\
th:first-child,td:first-child{text-align:left;padding-left:0}tr.bound td{color:var(--faint);font-style:italic}\
svg{width:100%;height:auto;display:block}.grid{stroke:var(--rule)}.mark{stroke:var(--faint);stroke-dasharray:4 4}\
.tick,.label{fill:var(--faint);font:11px system-ui,sans-serif}.label{fill:var(--ink);font-size:12px}\
.line{fill:none;stroke-width:2;stroke-linejoin:round}.key{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:13px;list-style:none;padding:0;margin:8px 0}\
.key svg{width:26px;height:10px;display:inline-block;vertical-align:middle;margin-right:6px}details{margin:6px 0;color:var(--faint)}";

/// Hue, and lightness on light and on dark paper; from the ninth on, lines are dashed besides.
const SERIES: [(u16, u8, u8); COLOURS] = [
    (215, 45, 68),
    (20, 48, 64),
    (155, 32, 55),
    (280, 50, 74),
    (45, 38, 58),
    (340, 48, 70),
    (190, 36, 58),
    (90, 34, 58),
    (0, 0, 72),
    (245, 60, 78),
];

fn colours() -> String {
    let mut light = String::new();
    let mut dark = String::new();
    for (place, (hue, on_light, on_dark)) in SERIES.into_iter().enumerate() {
        let saturation = if on_light == 0 { 0 } else { 75 };
        let on_light = if on_light == 0 { 40 } else { on_light };
        let dash = if place % 2 == 1 { ";stroke-dasharray:7 3" } else { "" };
        let _ = write!(light, ".line.c{place}{{stroke:hsl({hue} {saturation}% {on_light}%){dash}}}");
        let _ = write!(light, ".bar.c{place}{{fill:hsl({hue} {saturation}% {on_light}%)}}");
        let _ = write!(dark, ".line.c{place}{{stroke:hsl({hue} {saturation}% {on_dark}%)}}");
        let _ = write!(dark, ".bar.c{place}{{fill:hsl({hue} {saturation}% {on_dark}%)}}");
    }
    format!("{light}@media(prefers-color-scheme:dark){{{dark}}}")
}

fn figures(study: &Study) -> String {
    let strategies = &study.report.strategies;
    let mut html = "<h2>Figures</h2>".to_owned();
    html.push_str(&table(&FIGURES, strategies, bound_values(study)));
    html.push_str(&table(&WORK, strategies, None));
    let changed: Vec<_> = strategies.iter().filter_map(|summary| Some((summary, summary.change.as_ref()?))).collect();
    if changed.is_empty() {
        return html;
    }
    let _ = write!(
        html,
        "<h2>Change against {}</h2><p>± half the width of the 95 % interval; the same seeds under both.</p><div class=\"wide\"><table><tr><th></th>",
        escape(&study.report.baseline)
    );
    CHANGES.iter().for_each(|(_, heading)| html.push_str(&format!("<th>{heading}</th>")));
    html.push_str("</tr>");
    for (summary, change) in changed {
        let cells = CHANGES.map(|(column, _)| change_cell(change, &FIGURES[column]).unwrap_or_else(|| "-".to_owned()));
        html.push_str(&row(&summary.strategy, &cells, ""));
    }
    html.push_str("</table></div>");
    html
}

fn table(columns: &[Column], strategies: &[StrategySummary], bound: Option<Vec<Option<f64>>>) -> String {
    let known = known(columns, strategies);
    let mut html = "<div class=\"wide\"><table><tr><th></th>".to_owned();
    known.iter().for_each(|column| html.push_str(&format!("<th>{}</th>", column.heading)));
    html.push_str("</tr>");
    for summary in strategies {
        let cells: Vec<String> =
            known.iter().map(|column| column.unit.show((column.value)(&summary.measures))).collect();
        html.push_str(&row(&summary.strategy, &cells, ""));
    }
    if let Some(values) = bound {
        let show = |(column, value): (&&Column, Option<f64>)| {
            value.map_or_else(String::new, |value| column.unit.show(Some(value)))
        };
        let cells: Vec<String> = known.iter().zip(values).map(show).collect();
        html.push_str(&row("clairvoyant bound: all cached, all idle", &cells, " class=\"bound\""));
    }
    html.push_str("</table></div>");
    html
}

fn row(name: &str, cells: &[String], attributes: &str) -> String {
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
    format!("<tr{attributes}><td>{}</td>{cells}</tr>", escape(name))
}

fn pictures(study: &Study) -> String {
    let strategies = &study.report.strategies;
    let details: Vec<(&str, &Detail)> =
        strategies.iter().filter_map(|summary| Some((summary.strategy.as_str(), summary.detail.as_ref()?))).collect();
    if details.is_empty() {
        return String::new();
    }
    let mut html = format!("<h2>Pictures</h2>{}", key(details.iter().map(|(name, _)| *name)));
    html.push_str(&distribution(&details));
    let hit_rate = |moment: &Moment| moment.hit_rate;
    html.push_str(&course(study, &details, ("hits", "Hit rate over time", "Hit rate"), hit_rate, percent));
    let ttft = |moment: &Moment| moment.ttft_p90_ms;
    let milliseconds = |value: f64| format!("{value:.0} ms");
    html.push_str(&course(
        study,
        &details,
        ("ttft", "TTFT over time: 90 % of the requests are faster", "TTFT P90 (ms)"),
        ttft,
        milliseconds,
    ));
    html.push_str(&shares(&details));
    html
}

/// Which line is which, for the series of a picture in their order.
pub fn key<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let entry = |(place, name): (usize, &str)| {
        format!(
            "<li><svg viewBox=\"0 0 26 10\" aria-hidden=\"true\"><line class=\"line c{}\" x1=\"0\" x2=\"26\" y1=\"5\" y2=\"5\"/></svg>{}</li>",
            place % COLOURS,
            escape(name)
        )
    };
    format!("<ul class=\"key\">{}</ul>", names.enumerate().map(entry).collect::<String>())
}

fn distribution(details: &[(&str, &Detail)]) -> String {
    let at = |detail: &Detail, percent: usize| detail.ttft_quantiles_ms.get(percent).copied().unwrap_or_default();
    let words: Vec<String> = details
        .iter()
        .map(|(name, detail)| {
            format!("{name}: half within {:.0} ms, 90 % within {:.0} ms", at(detail, 50), at(detail, 90))
        })
        .collect();
    let series = details.iter().map(|(name, detail)| {
        let points = detail.ttft_quantiles_ms.iter().take(100).enumerate();
        (*name, points.map(|(percent, &ms)| (ms, percent as f64 / 100.0)).collect())
    });
    let title = "Time to first token: which share of the requests within which time";
    let lines = Lines {
        id: "cdf",
        title,
        description: words.join("; "),
        x: ("TTFT (ms)", Axis::Logarithmic),
        y: ("Share of requests", Axis::Linear),
        y_range: Some((0.0, 1.0)),
        series: series.collect(),
        marks: Vec::new(),
    };
    figure(title, &lines.svg(), &words)
}

/// A value over the run's time.
fn course(
    study: &Study,
    details: &[(&str, &Detail)],
    (id, title, label): (&'static str, &str, &'static str),
    value: fn(&Moment) -> Option<f64>,
    show: fn(f64) -> String,
) -> String {
    let series: Vec<(&str, Vec<(f64, f64)>)> = details
        .iter()
        .map(|(name, detail)| {
            let points = detail.timeline.iter().filter_map(|moment| Some((moment.seconds / 60.0, value(moment)?)));
            (*name, points.collect())
        })
        .collect();
    let words: Vec<String> = series.iter().map(|(name, points)| in_words(name, points, show)).collect();
    let marks = study.changes.iter().map(|note| (note.seconds / 60.0, note.what.as_str())).collect();
    let happened: Vec<String> =
        study.changes.iter().map(|note| format!("At {:.1} min: {}", note.seconds / 60.0, note.what)).collect();
    let words: Vec<String> = words.into_iter().chain(happened).collect();
    let top = series.iter().flat_map(|(_, points)| points).map(|point| point.1).fold(0.0, f64::max);
    let lines = Lines {
        id,
        title,
        description: words.join("; "),
        x: ("Minutes since the start", Axis::Linear),
        y: (label, Axis::Linear),
        y_range: Some((0.0, if id == "hits" { 1.0 } else { top * 1.05 })),
        series,
        marks,
    };
    figure(title, &lines.svg(), &words)
}

/// A course at five moments.
fn in_words(name: &str, points: &[(f64, f64)], show: fn(f64) -> String) -> String {
    let Some(last) = points.len().checked_sub(1) else { return format!("{name}: nothing measured") };
    let at: Vec<String> = (0..5)
        .map(|fifth| {
            let (minutes, value) = points[last * fifth / 4];
            format!("{} at {minutes:.0} min", show(value))
        })
        .collect();
    format!("{name}: {}", at.join(", "))
}

fn shares(details: &[(&str, &Detail)]) -> String {
    let words: Vec<String> = details
        .iter()
        .map(|(name, detail)| {
            let least = detail.instance_shares.iter().copied().fold(f64::MAX, f64::min);
            let most = detail.instance_shares.iter().copied().fold(0.0, f64::max);
            format!("{name}: from {} to {}", percent(least.min(most)), percent(most))
        })
        .collect();
    let instances = details.iter().map(|(_, detail)| detail.instance_shares.len()).max().unwrap_or(1).max(1);
    let title = "Share of the requests that each instance got";
    let rows = Rows {
        id: "shares",
        title,
        description: words.join("; "),
        rows: details.iter().map(|(name, detail)| (*name, detail.instance_shares.clone())).collect(),
        even: 1.0 / instances as f64,
    };
    figure(title, &rows.svg(), &words)
}

/// A picture below its title, and the same in words.
pub fn figure(title: &str, svg: &str, words: &[String]) -> String {
    let words: String = words.iter().map(|sentence| format!("<p>{}</p>", escape(sentence))).collect();
    format!("<h2>{}</h2>{svg}<details><summary>In words</summary>{words}</details>", escape(title))
}
