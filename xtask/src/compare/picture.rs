//! The picture of the comparison, `docs/adaptive.svg`: five squares for each scenario and rule.

use std::fmt::Write as _;
use std::fs;

use super::verdict::{Count, Row, Verdict};
use crate::failure::Failure;
use crate::machine;

const WIDTH: usize = 760;
/// Where the first column of squares and the first row begin, and how far the next ones are.
const LEFT: usize = 150;
const TOP: usize = 70;
const COLUMN: usize = 84;
const LINE: usize = 26;
const SQUARE: usize = 15;

const STYLE: &str = "<style>text{fill:#1f2328}.b{fill:#2f7d4f}.e{fill:#c9ced6}.w{fill:#c8452f}\
@media(prefers-color-scheme:dark){text{fill:#e6e8eb}.b{fill:#4fae78}.e{fill:#4a515c}.w{fill:#e8705c}}</style>";

pub(crate) fn write(rows: &[Row], seeds: u64) -> Result<(), Failure> {
    let file = machine::root().join("docs/adaptive.svg");
    fs::write(&file, picture(rows, seeds)).map_err(|error| Failure::file(&file, &error))?;
    println!("written: {}", file.display());
    Ok(())
}

fn picture(rows: &[Row], seeds: u64) -> String {
    let bottom = TOP + LINE * rows.len();
    let count = Count::of(rows);
    let rules: Vec<&str> =
        rows.first().map_or_else(Vec::new, |row| row.against.iter().map(|a| a.rule.as_str()).collect());
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"12\" role=\"img\" aria-labelledby=\"t d\">\n<title id=\"t\">ADAPTIVE against {} rules on {} \
         scenarios</title><desc id=\"d\">{count}</desc>\n{STYLE}\n",
        bottom + 64,
        rules.len(),
        rows.len()
    );
    for (column, rule) in rules.iter().enumerate() {
        heading(&mut svg, LEFT + COLUMN * column + COLUMN / 2 - 4, rule);
    }
    for (line, row) in rows.iter().enumerate() {
        squares(&mut svg, TOP + LINE * line, row);
    }
    legend(&mut svg, bottom + 24, count, seeds);
    svg + "</svg>\n"
}

fn heading(svg: &mut String, middle: usize, rule: &str) {
    let lines = match rule {
        "PREFIX_AWARE" => vec!["PREFIX_AWARE", "at its best"],
        "LEAST_OUTSTANDING_REQUESTS" => vec!["LEAST_", "OUTSTANDING"],
        other => vec![other],
    };
    for (line, text) in lines.iter().enumerate() {
        let y = TOP - 14 - (lines.len() - 1 - line) * 14;
        let _ = writeln!(svg, "<text x=\"{middle}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"10\">{text}</text>");
    }
}

fn squares(svg: &mut String, y: usize, row: &Row) {
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", LEFT - 12, y + 15, row.scenario);
    for (column, against) in row.against.iter().enumerate() {
        for (place, verdict) in against.verdicts.iter().enumerate() {
            square(svg, LEFT + COLUMN * column + SQUARE * place, y + 3, *verdict);
        }
    }
}

fn square(svg: &mut String, x: usize, y: usize, verdict: Verdict) {
    let class = match verdict {
        Verdict::Better => "b",
        Verdict::Same => "e",
        Verdict::Worse => "w",
    };
    let _ = writeln!(svg, "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"13\" height=\"16\" rx=\"2\"/>");
}

fn legend(svg: &mut String, y: usize, count: Count, seeds: u64) {
    let kinds = [
        (Verdict::Better, "better", count.better),
        (Verdict::Same, "no difference", count.same),
        (Verdict::Worse, "worse", count.worse),
    ];
    for (place, (verdict, text, number)) in kinds.into_iter().enumerate() {
        let x = LEFT + place * 170;
        square(svg, x, y, verdict);
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{text}: {number}</text>", x + 20, y + 13);
    }
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\" font-size=\"11\">Five squares, from the left: hit rate, TTFT P50, P90, P99, \
         throughput; {seeds} paired seeds, 95 % intervals.</text>",
        y + 34
    );
}
