//! How right `ADAPTIVE` is about real engines: what it believed to be cached of each prompt, against what they reported.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use isotherm_report::{Align, Table};
use serde_json::{Value, json};

use super::binary::Binary;
use super::groups::post;
use super::replica::MODEL;
use super::serve::Serve;
use crate::failure::Failure;
use crate::machine;

pub(crate) const TITLE: &str = "What the router believed to be cached, and what the engines reported";

/// The picture, beside the page.
pub(crate) const PICTURE: &str = "real-engines-calibration.svg";

/// Documents of some 2,000 tokens. A request takes one of them up to one of its quarters and goes on in words of its own,
/// so that beliefs from nothing to nearly all come up.
const DOCUMENTS: usize = 6;
const QUARTERS: usize = 4;
const ROUNDS: usize = 4;

/// Sends the requests one by one under `ADAPTIVE` and sets beliefs beside reports.
pub(crate) fn measure(binary: &Binary, urls: &[String], folder: &Path) -> Result<String, Failure> {
    let serve = Serve::start(binary, urls, "adaptive", &["--diagnostics"])?;
    let mut requests = 0;
    for round in 0..ROUNDS {
        for document in 0..DOCUMENTS {
            let quarters = 1 + (document + 3 * round) % QUARTERS;
            ask(&serve.authority, document, quarters, round)?;
            requests += 1;
        }
    }
    let file = folder.join("calibration.json");
    let mut analyse = binary.command();
    analyse.args(["analyze", "--router", &serve.admin, "--simulate", "0", "--json"]).arg(&file);
    machine::output(&mut analyse)?;
    let text = fs::read_to_string(&file).map_err(|error| Failure::file(&file, &error))?;
    let report: Value = serde_json::from_str(&text).map_err(|error| Failure::Failed(format!("{text}: {error}")))?;
    let told = Told::of(&report["findings"]["calibration"])?;
    if told.requests < requests {
        return Err(Failure::Failed(format!("of {requests} requests the router told of {} only", told.requests)));
    }
    let picture = machine::root().join("docs").join(PICTURE);
    fs::write(&picture, told.picture()).map_err(|error| Failure::file(&picture, &error))?;
    Ok(told.to_string())
}

fn ask(authority: &str, document: usize, quarters: usize, round: usize) -> Result<(), Failure> {
    let quarter = |number: usize| {
        format!("Of what warms line {document} of this map, part {number} says a little more each time. ").repeat(30)
    };
    let shared: String = (0..quarters).map(quarter).collect();
    let own = format!("Reader {round} has {quarters} other words for it. ").repeat(44 * (QUARTERS - quarters) + 2);
    let body = json!({ "model": MODEL, "max_tokens": 1, "messages": [{ "role": "user", "content": shared + &own }] });
    let (head, answer) =
        post(authority, &body.to_string()).map_err(|error| Failure::Failed(format!("{authority}: {error}")))?;
    if head.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(Failure::Failed(format!("{head}\n{answer}"))) }
}

/// Beliefs against reports, as `isotherm analyze` tells them.
#[derive(Debug, PartialEq)]
struct Told {
    requests: u64,
    mean_error: f64,
    close: f64,
    parts: Vec<Part>,
}

/// Requests about which much the same was believed. Shares are of 1.
#[derive(Debug, PartialEq)]
struct Part {
    from: f64,
    to: f64,
    requests: u64,
    believed: f64,
    reported: f64,
}

impl Told {
    fn of(calibration: &Value) -> Result<Told, Failure> {
        let missing = || Failure::Failed(format!("no such figure in {calibration}"));
        let number = |of: &Value, key: &str| of[key].as_f64().ok_or_else(missing);
        let count = |of: &Value| of["requests"].as_u64().ok_or_else(missing);
        let parts = calibration["parts"].as_array().ok_or_else(missing)?.iter().map(|part| {
            Ok(Part {
                from: number(part, "from")?,
                to: number(part, "to")?,
                requests: count(part)?,
                believed: number(part, "believed")?,
                reported: number(part, "reported")?,
            })
        });
        Ok(Told {
            requests: count(calibration)?,
            mean_error: number(calibration, "mean_error")?,
            close: number(calibration, "close")?,
            parts: parts.collect::<Result<_, Failure>>()?,
        })
    }

    fn in_words(&self) -> String {
        format!(
            "Of {} requests it is off by {:.1} % of a prompt on average, and right to within 5 points for {:.0} %.",
            self.requests,
            100.0 * self.mean_error,
            100.0 * self.close
        )
    }

    /// A circle for each tenth of belief, as large as its requests; a router that is always right has them on the line.
    fn picture(&self) -> String {
        let place = |share: f64, from: f64, to: f64| from + share * (to - from);
        let (x, y) = (|share| place(share, LEFT, RIGHT), |share| place(share, BOTTOM, TOP));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 560 480\" font-family=\"system-ui, sans-serif\" \
             font-size=\"12\" role=\"img\" aria-labelledby=\"t d\">\n<title id=\"t\">{TITLE}</title><desc \
             id=\"d\">{}</desc>\n{STYLE}\n",
            self.in_words()
        );
        // Writing into a String cannot fail.
        for tick in 0..=5 {
            let share = f64::from(tick) / 5.0;
            let percent = tick * 20;
            let (x, y) = (x(share), y(share));
            let _ = writeln!(svg, "<line class=\"g\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y}\" y2=\"{y}\"/>");
            let _ =
                writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{percent} %</text>", LEFT - 8.0, y + 4.0);
            let _ = writeln!(svg, "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{percent} %</text>", BOTTOM + 18.0);
        }
        let _ = writeln!(svg, "<line class=\"d\" x1=\"{LEFT}\" y1=\"{BOTTOM}\" x2=\"{RIGHT}\" y2=\"{TOP}\"/>");
        for part in &self.parts {
            let radius = 4.0 + 16.0 * (part.requests as f64 / self.requests.max(1) as f64).sqrt();
            let (x, y) = (x(part.believed), y(part.reported));
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"/>");
        }
        let _ = write!(
            svg,
            "<text x=\"270\" y=\"{}\" text-anchor=\"middle\">believed share of a prompt</text>\n\
             <text transform=\"translate(16 230) rotate(-90)\" text-anchor=\"middle\">reported share</text>\n\
             <circle cx=\"72\" cy=\"466\" r=\"6\"/><text x=\"84\" y=\"470\">a tenth of belief, as large as its requests</text>\n\
             <line class=\"d\" x1=\"350\" x2=\"376\" y1=\"466\" y2=\"466\"/><text x=\"384\" y=\"470\">always right</text>\n</svg>\n",
            BOTTOM + 38.0
        );
        svg
    }
}

const LEFT: f64 = 60.0;
const RIGHT: f64 = 480.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 410.0;

const STYLE: &str = "<style>text{fill:#1f2328}.g{stroke:#d9dde3}.d{stroke:#5c6470;stroke-dasharray:5 4}circle{fill:#2f6fb7;\
fill-opacity:.75}@media(prefers-color-scheme:dark){text{fill:#e6e8eb}.g{stroke:#333a43}.d{stroke:#9aa3af}circle{fill:#6aa5e8}}\
</style>";

impl std::fmt::Display for Told {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut table = Table::new([Align::Left, Align::Right, Align::Right, Align::Right]);
        table.row(["believed to be cached", "requests", "believed", "reported"]);
        for Part { from, to, requests, believed, reported } in &self.parts {
            table.row([
                format!("{:.0} to {:.0} %", 100.0 * from, 100.0 * to),
                requests.to_string(),
                format!("{:.1} %", 100.0 * believed),
                format!("{:.1} %", 100.0 * reported),
            ]);
        }
        write!(formatter, "{table}\n{}", self.in_words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_analyze_tells_becomes_a_table_a_sentence_and_a_picture() {
        let told = Told::of(&json!({ "requests": 40, "mean_error": 0.0123, "close": 0.95, "parts": [
            { "from": 0.0, "to": 0.1, "requests": 10, "believed": 0.0, "reported": 0.02 },
            { "from": 0.9, "to": 1.0, "requests": 30, "believed": 0.96, "reported": 0.95 },
        ] }))
        .unwrap();
        let text = told.to_string();
        assert!(text.contains("90 to 100 %") && text.contains("96.0 %"), "{text}");
        assert!(text.ends_with(
            "Of 40 requests it is off by 1.2 % of a prompt on average, and right to within 5 points for 95 %."
        ));
        let picture = told.picture();
        assert_eq!(picture.matches("<circle cx").count(), 3, "two parts and the legend");
        assert!(picture.contains("always right") && picture.contains(&told.in_words()));
        assert!(Told::of(&Value::Null).is_err(), "a router that believes nothing");
    }
}
