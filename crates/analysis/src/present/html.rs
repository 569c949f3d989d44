//! A report as one page that needs nothing else: the tables of the text, and pictures with their words.

use std::fmt::Write as _;

use isotherm_report::study::html::{document, figure, key};
use isotherm_report::study::picture::{Axis, Lines, escape, percent};

use super::numbers::{tokens, whole};
use super::{Section, Told};

/// The page.
pub fn page(told: &Told) -> String {
    let mut content = String::new();
    for section in told.sections() {
        content.push_str(&of_section(&section));
        match section.title {
            "Hit rate by cache size" => content.push_str(&curve(told)),
            "Prefixes by length" => content.push_str(&prefixes(told)),
            "Believed against reported" => content.push_str(&calibration(told)),
            "Recommendation" => content.push_str(&settings(told)),
            _ => {}
        }
    }
    document("What this log shares", &told.lead(), &content)
}

fn of_section(section: &Section) -> String {
    let mut html = format!("<h2>{}</h2>", escape(section.title));
    if !section.table.is_empty() {
        html.push_str("<div class=\"wide\"><table>");
        for (number, row) in section.table.iter().enumerate() {
            // Tables of words have no heading.
            let is_heading = number == 0 && section.words < row.len();
            let tag = if is_heading { "th" } else { "td" };
            let cell = |(column, cell): (usize, &String)| {
                let align = if column < section.words { " style=\"text-align:left\"" } else { "" };
                let cell = if cell.starts_with('#') { "" } else { cell.as_str() };
                format!("<{tag}{align}>{}</{tag}>", escape(cell))
            };
            let cells: String = row.iter().enumerate().map(cell).collect();
            let _ = write!(html, "<tr>{cells}</tr>");
        }
        html.push_str("</table></div>");
    }
    section.sentences.iter().for_each(|sentence| html.push_str(&format!("<p>{}</p>", escape(sentence))));
    html
}

/// The hit rate over the size of the cache, with the fleet's caches marked.
fn curve(told: &Told) -> String {
    let Some(sharing) = &told.findings.sharing else { return String::new() };
    if sharing.curve.len() < 2 {
        return String::new();
    }
    // What tiny caches hit is not worth the room.
    let least = 0.02 * sharing.infinite_hit_rate.value;
    let tiny = sharing.curve.iter().take_while(|point| point.hit_rate.value < least).count();
    let points: Vec<(f64, f64)> = sharing.curve[tiny.min(sharing.curve.len() - 2)..]
        .iter()
        .map(|point| (point.cache_tokens / 1e3, point.hit_rate.value))
        .collect();
    let words: Vec<String> = points
        .iter()
        .step_by(8)
        .chain(points.last())
        .map(|(size, rate)| format!("{} tokens: {}", tokens(1e3 * size), percent(*rate)))
        .collect();
    let one = told.cache.tokens as f64 / 1e3;
    let all = one * f64::from(told.cache.instances);
    let all_name = format!("{} instances", told.cache.instances);
    let on_axis = |size: f64| points.iter().any(|point| point.0 >= size) && points[0].0 <= size;
    let marks = [(one, "1 instance"), (all, all_name.as_str())];
    let title = "What a cache of each size would hit";
    let lines = Lines {
        id: "curve",
        title,
        description: words.join("; "),
        x: ("Cache (thousands of tokens)", Axis::Logarithmic),
        y: ("Hit rate", Axis::Linear),
        y_range: Some((0.0, 1.0)),
        series: vec![("hit rate", points.clone())],
        marks: marks.into_iter().filter(|(size, _)| on_axis(*size)).collect(),
    };
    figure(title, &lines.svg(), &words)
}

/// How many requests have a prefix that came before, over its length.
fn prefixes(told: &Told) -> String {
    let counts = &told.findings.prefixes;
    let points = counts.iter().map(|count| (f64::from(count.length), count.repeated)).collect();
    let words: Vec<String> = counts
        .iter()
        .map(|count| format!("{} characters: {}", whole(count.length.into()), percent(count.repeated)))
        .collect();
    let title = "Requests whose prefix came before, by the prefix's length";
    let lines = Lines {
        id: "prefixes",
        title,
        description: words.join("; "),
        x: ("PrefixLength (characters)", Axis::Logarithmic),
        y: ("Share of requests", Axis::Linear),
        y_range: Some((0.0, 1.0)),
        series: vec![("seen before", points)],
        marks: Vec::new(),
    };
    figure(title, &lines.svg(), &words)
}

/// What was reported over what was believed; a router that is always right lies on the diagonal.
fn calibration(told: &Told) -> String {
    let Some(found) = told.findings.calibration.as_ref().filter(|found| found.parts.len() > 1) else {
        return String::new();
    };
    let points: Vec<(f64, f64)> = found.parts.iter().map(|part| (part.believed, part.reported)).collect();
    let words: Vec<String> = found
        .parts
        .iter()
        .map(|part| format!("{} believed: {} reported", percent(part.believed), percent(part.reported)))
        .collect();
    let title = "What engines reported, by what the router had believed";
    let lines = Lines {
        id: "calibration",
        title,
        description: words.join("; "),
        x: ("Believed share of a prompt", Axis::Linear),
        y: ("Reported share", Axis::Linear),
        y_range: Some((0.0, 1.0)),
        series: vec![("reported", points), ("always right", vec![(0.0, 0.0), (1.0, 1.0)])],
        marks: Vec::new(),
    };
    with_key(&lines, &words)
}

/// TTFT P90 over the length, at the thresholds that were tried.
fn settings(told: &Told) -> String {
    let Some(found) = &told.recommendation else { return String::new() };
    let mut thresholds: Vec<u32> = found.tried.iter().map(|tried| tried.concurrency_threshold).collect();
    thresholds.sort_unstable();
    thresholds.dedup();
    let lines_of: Vec<(String, Vec<(f64, f64)>)> = thresholds
        .iter()
        .map(|&threshold| {
            let at = found.tried.iter().filter(|tried| tried.concurrency_threshold == threshold);
            let points = at.map(|tried| (f64::from(tried.prefix_length), tried.figures.ttft_p90_ms)).collect();
            (format!("threshold {threshold}"), points)
        })
        .filter(|(_, points): &(_, Vec<_>)| points.len() > 2)
        .collect();
    let words: Vec<String> = lines_of
        .iter()
        .map(|(name, points)| {
            let at: Vec<String> = points.iter().map(|(length, ms)| format!("{ms:.0} ms at {length:.0}")).collect();
            format!("{name}: {}", at.join(", "))
        })
        .collect();
    let top = lines_of.iter().flat_map(|(_, points)| points).map(|point| point.1).fold(0.0, f64::max);
    let title = "TTFT P90 of PREFIX_AWARE by its parameters";
    let chosen = format!("{}/{}", found.prefix_length, found.concurrency_threshold);
    let lines = Lines {
        id: "settings",
        title,
        description: words.join("; "),
        x: ("PrefixLength (characters)", Axis::Logarithmic),
        y: ("TTFT P90 (ms)", Axis::Linear),
        y_range: Some((0.0, top * 1.05)),
        series: lines_of.iter().map(|(name, points)| (name.as_str(), points.clone())).collect(),
        marks: vec![(f64::from(found.prefix_length), chosen.as_str())],
    };
    with_key(&lines, &words)
}

/// A picture of several lines, with what each of them is.
fn with_key(lines: &Lines<'_>, words: &[String]) -> String {
    format!("{}{}", figure(lines.title, &lines.svg(), words), key(lines.series.iter().map(|(name, _)| *name)))
}
