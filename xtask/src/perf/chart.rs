//! The picture: bars of added time on a logarithmic scale, one request at a time, and of requests a second at 64.

use std::fmt::Write as _;

use super::figures::Results;
use super::plan::{Case, Plan};

const BAR: f64 = 9.0;
const GAP: f64 = 20.0;
const LEFT: f64 = 180.0;
const WIDTH: f64 = 330.0;
const BETWEEN: f64 = 70.0;
const TOP: f64 = 84.0;
/// Ours first, then as they are started; direct is grey.
const COLOURS: [&str; 9] =
    ["#9aa0a6", "#d9480f", "#f08c00", "#2b8a3e", "#1971c2", "#7048e8", "#c2255c", "#0c8599", "#5c4033"];
/// Ends of the logarithmic scale, in microseconds.
const LEAST: f64 = 10.0;
const MOST: f64 = 100_000.0;

pub(crate) fn draw(results: &Results, plan: &Plan) -> String {
    let shapes: Vec<Case> = plan.cases.iter().copied().filter(|case| case.connections == 1).collect();
    let rows = results.names.len() as f64;
    let block = rows * BAR + GAP;
    let height = TOP + shapes.len() as f64 * block + 30.0;
    let width = LEFT + 2.0 * WIDTH + BETWEEN + 60.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    legend(&mut svg, results);
    let right = LEFT + WIDTH + BETWEEN;
    text(&mut svg, LEFT, TOP - 26.0, "start", "Added to the first byte, µs, p50, one request at a time (logarithmic)");
    text(&mut svg, right, TOP - 26.0, "start", "Requests a second, 64 at once");
    scale(&mut svg, height);
    for (index, &shape) in shapes.iter().enumerate() {
        let top = TOP + index as f64 * block;
        text(&mut svg, LEFT - 8.0, top + rows * BAR / 2.0 + 4.0, "end", &shape.shape());
        let many = Case { connections: 64, ..shape };
        let rates: Vec<f64> = (0..results.names.len()).map(|name| results.of(name, many).sample.per_second).collect();
        let highest = rates.iter().copied().filter(|rate| rate.is_finite()).fold(1.0, f64::max);
        for (name, rate) in rates.iter().enumerate() {
            let y = top + name as f64 * BAR;
            if name > 0 {
                let added = results.of(name, shape).added_p50;
                bar(&mut svg, LEFT, y, logarithmic(added), name, &format!("{added:.0}"));
            }
            bar(&mut svg, right, y, rate / highest * WIDTH, name, &format!("{rate:.0}"));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn legend(svg: &mut String, results: &Results) {
    let mut x = 14.0;
    for (index, named) in results.names.iter().enumerate() {
        let _ = writeln!(svg, "<rect x=\"{x}\" y=\"14\" width=\"10\" height=\"10\" fill=\"{}\"/>", colour(index));
        text(svg, x + 14.0, 23.0, "start", &named.name);
        x += 32.0 + 6.2 * named.name.len() as f64;
    }
}

/// A line for each power of ten.
fn scale(svg: &mut String, height: f64) {
    let mut power = LEAST;
    while power <= MOST {
        let x = LEFT + logarithmic(power);
        let (from, to) = (TOP - 8.0, height - 26.0);
        let _ = writeln!(svg, "<path d=\"M{x:.1} {from}V{to}\" stroke=\"#dee2e6\"/>");
        text(svg, x, TOP - 10.0, "middle", &format!("{power:.0}"));
        power *= 10.0;
    }
}

fn logarithmic(microseconds: f64) -> f64 {
    (microseconds.clamp(LEAST, MOST) / LEAST).log10() / (MOST / LEAST).log10() * WIDTH
}

fn bar(svg: &mut String, x: f64, y: f64, length: f64, name: usize, label: &str) {
    if !length.is_finite() {
        return;
    }
    let (height, colour) = (BAR - 1.0, colour(name));
    let _ = writeln!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{length:.1}\" height=\"{height}\" fill=\"{colour}\"/>");
    let (x, y) = (x + length + 3.0, y + 7.5);
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y}\" font-size=\"8\">{label}</text>");
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}

fn colour(name: usize) -> &'static str {
    COLOURS[name % COLOURS.len()]
}
