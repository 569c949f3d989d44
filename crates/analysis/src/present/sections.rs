//! The sections about what was found.

use super::numbers::{percent, seconds, tokens, whole};
use super::{CacheSize, Section};
use crate::calibration::Calibration;
use crate::clients::{ClientFindings, SystemForm};
use crate::findings::{Break, Findings, KeyFindings, Sharing, TokenSource};
use crate::lengths::Distribution;
use crate::reuse::{Estimate, ReuseSeconds};

/// A spelling or a form that fewer requests have is not told.
const LEAST_SHARE: f64 = 0.005;

/// About how many points of the curve are printed.
const CURVE_ROWS: usize = 10;

/// Everything that was found, in the order in which it is read.
pub(super) fn of(findings: &Findings, cache: CacheSize) -> Vec<Section> {
    let mut sections = vec![log(findings)];
    if let Some(sharing) = &findings.sharing {
        sections.push(shared(findings, sharing));
        sections.push(curve(sharing, cache));
        sections.push(prefixes(findings));
    }
    if let Some(keys) = &findings.keys {
        sections.push(of_keys(keys));
    }
    if let Some(calibration) = &findings.calibration {
        sections.push(of_calibration(calibration));
    }
    if let Some(breaks) = &findings.breaks {
        sections.push(of_breaks(breaks));
    }
    if let Some(clients) = &findings.clients {
        sections.extend(of_clients(clients));
    }
    sections
}

/// What cannot be told, and what to know.
pub(super) fn notes(findings: &Findings) -> Option<Section> {
    let mut sentences = Vec::new();
    for log in findings.logs.iter().filter(|log| log.wrong > 0) {
        let first = log.what_was_wrong.join("; ");
        let records = if log.wrong == 1 { "one record".to_owned() } else { format!("{} records", whole(log.wrong)) };
        let read_as = log.format.map_or_else(String::new, |format| format!(" as {format}"));
        sentences.push(format!("{}: {records} could not be read{read_as}: {first}.", log.log));
    }
    sentences.extend(findings.notes.iter().map(ToString::to_string));
    (!sentences.is_empty()).then(|| section("To know", Vec::new(), 0, sentences))
}

pub(super) fn section(title: &'static str, table: Vec<Vec<String>>, words: usize, sentences: Vec<String>) -> Section {
    Section { title, table, words, sentences }
}

pub(super) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

fn log(findings: &Findings) -> Section {
    let mut table = Vec::new();
    for log in &findings.logs {
        let format = log.format.map_or_else(|| "empty".to_owned(), |format| format.to_string());
        let others = if log.others > 0 { format!(", {} other records", whole(log.others)) } else { String::new() };
        let wrong = if log.wrong > 0 { format!(", {} unreadable", whole(log.wrong)) } else { String::new() };
        table.push(vec![log.log.clone(), format!("{} requests{others}{wrong} ({format})", whole(log.requests))]);
    }
    table.push(match findings.span_seconds {
        Some(span) if span > 0.0 => {
            let rate = findings.requests as f64 / span;
            row(["Time", &format!("{}, {rate:.2} requests a second", seconds(span))])
        }
        Some(_) => row(["Time", "all requests have the same"]),
        None => row(["Time", "not in the log for every request"]),
    });
    let how = match findings.tokens_are {
        TokenSource::Recorded => "as recorded",
        TokenSource::Scaled => "estimated from the text, scaled to what engines reported",
        TokenSource::Estimated => "estimated from the text: 4.2 characters a token, 1.5 outside of ASCII",
    };
    table.push(row(["Prompt tokens", &format!("{}, {how}", tokens(findings.prompt_tokens))]));
    let Distribution { p50, p90, p99, .. } = findings.prompt_lengths;
    let lengths = format!("half up to {}, 90% up to {}, 99% up to {} tokens", tokens(p50), tokens(p90), tokens(p99));
    table.push(row(["Prompts", &lengths]));
    if let Some(reported) = findings.reported_hit_rate {
        table.push(row(["Hit rate reported", &percent(reported)]));
    }
    section("The log", table, 2, Vec::new())
}

fn shared(findings: &Findings, sharing: &Sharing) -> Section {
    let mut table = vec![row([
        "Tokens that came before",
        &format!("{}: the hit rate of one cache without limit", estimate(sharing.infinite_hit_rate)),
    ])];
    if let Some(repaired) = sharing.repaired_hit_rate {
        let gain = repaired - sharing.infinite_hit_rate.value;
        let what = match findings.breaks.as_deref() {
            _ if gain >= 0.005 => "with what breaks sharing repaired, see below",
            Some([_, ..]) => "no times, ids or numbers break sharing; what does, see below",
            _ => "nothing breaks sharing",
        };
        table.push(row(["  repaired", &format!("{}: {what}", percent(repaired))]));
    }
    let Distribution { none, p25, p50, p75, p90, .. } = sharing.shared_lengths;
    table.push(row(["Requests that share nothing", &percent(none)]));
    let lengths = format!(
        "{} / {} / {} / {} tokens for 25 / 50 / 75 / 90% of the requests",
        tokens(p25),
        tokens(p50),
        tokens(p75),
        tokens(p90)
    );
    table.push(row(["Shared beginning up to", &lengths]));
    if let Some(reuse) = sharing.reuse_seconds {
        table.push(row(["Comes again within", &again(reuse)]));
    }
    for hot in &findings.hot_prefixes {
        if hot.share >= 0.01 {
            let alike = if hot.is_key { "have the prefix of this key" } else { "begin with the same 4,096 characters" };
            let what = format!("{} of the requests {alike}", percent(hot.share));
            table.push(vec![format!("Hot prefix {}", &hot.hash[..8]), what]);
        }
    }
    section("Shared beginnings", table, 2, Vec::new())
}

/// What was believed against what was reported; the bars are what was reported.
fn of_calibration(calibration: &Calibration) -> Section {
    let mut table = vec![row(["Believed to be cached", "requests", "believed", "reported", ""])];
    for part in &calibration.parts {
        table.push(vec![
            format!("{} to {}", percent(part.from), percent(part.to)),
            whole(part.requests),
            percent(part.believed),
            percent(part.reported),
            "#".repeat((30.0 * part.reported).round() as usize),
        ]);
    }
    let sentences = vec![format!(
        "Of {} requests whose engines said what was cached, the router believed {} of the tokens to be, and {} were. It is \
         off by {:.1}% of a prompt on average, and right to within 5 points for {}.",
        whole(calibration.requests),
        percent(calibration.believed_hit_rate),
        percent(calibration.reported_hit_rate),
        100.0 * calibration.mean_error,
        percent(calibration.close)
    )];
    section("Believed against reported", table, 1, sentences)
}

fn again(reuse: ReuseSeconds) -> String {
    format!("{} for half of the tokens that do, {} for 90%", seconds(reuse.p50), seconds(reuse.p90))
}

fn estimate(estimate: Estimate) -> String {
    if estimate.error > 0.0 {
        format!("{} ±{:.1}", percent(estimate.value), 100.0 * estimate.error)
    } else {
        percent(estimate.value)
    }
}

fn curve(sharing: &Sharing, cache: CacheSize) -> Section {
    let mut table = vec![row(["Cache (tokens)", "hit rate", ""])];
    let points = &sharing.curve;
    let most = sharing.infinite_hit_rate.value.max(1e-9);
    // What the smallest caches hit stays the same for long; begin where it rises.
    let flat = points.iter().take_while(|point| point.hit_rate.value < points[0].hit_rate.value + 0.01 * most).count();
    let begin = flat.saturating_sub(1);
    let step = (points.len() - begin.min(points.len())).div_ceil(CURVE_ROWS).max(1);
    for (place, point) in points.iter().enumerate().skip(begin) {
        if (place - begin) % step == 0 || place + 1 == points.len() {
            let length = (30.0 * point.hit_rate.value / most).round() as usize;
            table.push(vec![tokens(point.cache_tokens), estimate(point.hit_rate), "#".repeat(length)]);
        }
    }
    let at = |size: u64| {
        let within = points.iter().rev().find(|point| point.cache_tokens <= size as f64);
        within.map_or(0.0, |point| point.hit_rate.value)
    };
    let all = cache.tokens * u64::from(cache.instances);
    let mut sentences = vec![format!(
        "One instance ({} tokens) would hit {} alone; {} of them, each prefix on one, {}. Waiting and spilling cost some of \
         it.",
        tokens(cache.tokens as f64),
        percent(at(cache.tokens)),
        cache.instances,
        percent(at(all)),
    )];
    sentences.push(if sharing.sampled_share < 1.0 {
        format!(
            "From a sample of {} of the blocks, by their hashes; ± is half the width of the 95% interval.",
            percent(sharing.sampled_share)
        )
    } else {
        "Counted exactly, least recently used evicted first; sizes to an eighth of a doubling.".to_owned()
    });
    section("Hit rate by cache size", table, 1, sentences)
}

fn prefixes(findings: &Findings) -> Section {
    let mut table = vec![row(["PrefixLength", "prefixes", "requests each", "seen before", "text not longer"])];
    for count in &findings.prefixes {
        table.push(vec![
            whole(count.length.into()),
            whole(count.distinct),
            requests_each(count.requests_per_prefix),
            percent(count.repeated),
            percent(count.shorter),
        ]);
    }
    let sentences = vec![
        "How many beginnings of each length there are: where they are few, they crowd on few instances; where each comes \
         once, nothing is found again."
            .to_owned(),
    ];
    section("Prefixes by length", table, 0, sentences)
}

fn requests_each(number: f64) -> String {
    if number < 100.0 { format!("{number:.1}") } else { whole(number.round() as u64) }
}

fn of_keys(keys: &KeyFindings) -> Section {
    let mut table = vec![
        row(["Requests with a key", &whole(keys.requests)]),
        row(["Different keys", &whole(keys.distinct)]),
        row(["Key seen before", &estimate(keys.repeated)]),
    ];
    if let Some(reuse) = keys.reuse_seconds {
        let within = format!("{} for half of the keys that do, {} for 90%", seconds(reuse.p50), seconds(reuse.p90));
        table.push(row(["Comes again within", &within]));
    }
    section("Prefix keys", table, 2, Vec::new())
}

fn of_breaks(breaks: &[Break]) -> Section {
    if breaks.is_empty() {
        let nothing = "Nothing that costs a thousandth of the tokens: no times, ids or user data in front of what requests \
                       share, no tools in changing order.";
        return section("What breaks sharing", Vec::new(), 0, vec![nothing.to_owned()]);
    }
    let mut table = vec![row(["Where", "character", "what", "requests", "tokens lost each", "hit rate lost"])];
    let mut sentences = Vec::new();
    for found in breaks {
        let (first, last) = found.characters;
        let characters = if first == last { whole(first as u64) } else { format!("{first}-{last}") };
        table.push(vec![
            found.place.clone(),
            characters,
            found.cause.to_string(),
            percent(found.share),
            tokens(found.lost_tokens_each),
            percent(found.lost_hit_rate),
        ]);
    }
    for found in breaks.iter().take(3) {
        let example = found.example.as_ref().map_or_else(String::new, |text| format!(" (such as {text:?})"));
        sentences.push(format!("{}, {}{example}: {}.", found.place, found.cause, found.advice));
    }
    sentences.push(
        "Requests are those that part there from all earlier ones; lost is what they would share beyond it, at most: behind \
         one difference there may be the next."
            .to_owned(),
    );
    section("What breaks sharing", table, 3, sentences)
}

fn of_clients(clients: &ClientFindings) -> Option<Section> {
    let mut sentences = Vec::new();
    if clients.models.len() > 1 {
        let models = shares(&clients.models, |model| model.clone());
        sentences.push(format!("{} models, across which nothing is shared: {models}.", clients.models.len()));
    }
    if clients.salts > 0 {
        sentences.push(format!("{} different cache salts, across which nothing is shared.", clients.salts));
    }
    if clients.templates > 1 {
        sentences.push(format!(
            "{} different templates or template arguments (chat_template, its arguments, reasoning_effort): each stands \
             in front of everything else.",
            clients.templates
        ));
    }
    if clients.system_forms.len() > 1 {
        let forms = shares(&clients.system_forms, |form| form_name(*form).to_owned());
        sentences.push(format!("The same system prompts come in several ways, which engines do not share: {forms}."));
    }
    if clients.body_spellings.iter().filter(|(_, share)| *share >= LEAST_SHARE).count() > 1 {
        let spellings = shares(&clients.body_spellings, |spelling| spelling.clone());
        sentences.push(format!(
            "Native bodies are spelled in {} ways (order of keys, white space); equal prompts then have different keys and \
             homes: {spellings}.",
            clients.body_spellings.len()
        ));
    }
    (!sentences.is_empty()).then(|| section("Between clients", Vec::new(), 0, sentences))
}

/// The most frequent three with their shares.
fn shares<T>(all: &[(T, f64)], name: impl Fn(&T) -> String) -> String {
    let told: Vec<String> =
        all.iter().take(3).map(|(what, share)| format!("{} {}", name(what), percent(*share))).collect();
    told.join(", ") + if all.len() > 3 { ", …" } else { "" }
}

fn form_name(form: SystemForm) -> &'static str {
    match form {
        SystemForm::SystemMessage => "as a system message",
        SystemForm::DeveloperMessage => "as a developer message",
        SystemForm::BesideMessages => "beside the messages",
        SystemForm::UserMessage => "as a user message",
    }
}
