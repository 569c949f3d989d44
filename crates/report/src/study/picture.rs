//! Line and bar charts as SVG that follows the page's colours, each with a title and a description in words.

use std::fmt::Write as _;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 330.0;
/// Room for the labels on the four sides: left, right, top, bottom.
const MARGINS: [f64; 4] = [58.0, 16.0, 14.0, 42.0];

/// How values are laid out along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// By differences.
    Linear,
    /// By quotients.
    Logarithmic,
}

/// A chart of lines.
#[derive(Debug)]
pub struct Lines<'a> {
    /// Its name in the page.
    pub id: &'static str,
    /// What it is about.
    pub title: &'a str,
    /// What the picture shows, for those who do not see it.
    pub description: String,
    /// What the horizontal axis tells.
    pub x: (&'static str, Axis),
    /// What the vertical axis tells.
    pub y: (&'static str, Axis),
    /// The y axis ends here where data alone should not decide.
    pub y_range: Option<(f64, f64)>,
    /// The lines by their names, in the order of the page's colours.
    pub series: Vec<(&'a str, Vec<(f64, f64)>)>,
    /// Vertical lines with a word each.
    pub marks: Vec<(f64, &'a str)>,
}

impl Lines<'_> {
    /// The picture as an element of a page.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|(_, points)| points.iter().copied());
        let x = Mapping::new(self.x.1, range(points().map(|point| point.0)), [MARGINS[0], WIDTH - MARGINS[1]]);
        let y_range = self.y_range.unwrap_or_else(|| range(points().map(|point| point.1)));
        let y = Mapping::new(self.y.1, y_range, [HEIGHT - MARGINS[3], MARGINS[2]]);
        let mut svg = head(self.id, self.title, &self.description, HEIGHT);
        for tick in y.ticks() {
            let at = y.place(tick);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                MARGINS[0],
                WIDTH - MARGINS[1],
                MARGINS[0] - 6.0,
                at + 4.0,
                number(tick),
            );
        }
        for tick in x.ticks() {
            let at = x.place(tick);
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                HEIGHT - MARGINS[3] + 16.0,
                number(tick),
            );
        }
        for (at, word) in &self.marks {
            let at = x.place(*at);
            let _ = write!(
                svg,
                "<line class=\"mark\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{}\" y2=\"{}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{}\">{}</text>",
                MARGINS[2],
                HEIGHT - MARGINS[3],
                at + 4.0,
                MARGINS[2] + 10.0,
                escape(word),
            );
        }
        for (place, (_, points)) in self.series.iter().enumerate() {
            let path: Vec<String> =
                points.iter().map(|point| format!("{:.1},{:.1}", x.place(point.0), y.place(point.1))).collect();
            let _ = write!(svg, "<polyline class=\"line c{}\" points=\"{}\"/>", place % COLOURS, path.join(" "));
        }
        let _ = write!(
            svg,
            "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><text class=\"label\" transform=\"translate(13 {}) rotate(-90)\" text-anchor=\"middle\">{}</text></svg>",
            (MARGINS[0] + WIDTH - MARGINS[1]) / 2.0,
            HEIGHT - 6.0,
            self.x.0,
            (MARGINS[2] + HEIGHT - MARGINS[3]) / 2.0,
            self.y.0,
        );
        svg
    }
}

/// How many colours the page has for series.
pub(super) const COLOURS: usize = 10;

/// A chart of horizontal bars in groups: for each strategy a row, in it a bar for each value.
pub(super) struct Rows<'a> {
    pub(super) id: &'static str,
    pub(super) title: &'a str,
    pub(super) description: String,
    pub(super) rows: Vec<(&'a str, Vec<f64>)>,
    /// The value of an even spread, marked by a line.
    pub(super) even: f64,
}

/// Height of a row of bars, and where the bars begin.
const ROW: f64 = 44.0;
const NAMES: f64 = 250.0;

impl Rows<'_> {
    pub(super) fn svg(&self) -> String {
        let height = MARGINS[2] + ROW * self.rows.len() as f64 + 24.0;
        let most = self.rows.iter().flat_map(|(_, values)| values).copied().fold(self.even, f64::max).max(1e-9);
        let bottom = |row: usize| MARGINS[2] + ROW * (row as f64 + 1.0) - 6.0;
        let mut svg = head(self.id, self.title, &self.description, height);
        for (row, (name, values)) in self.rows.iter().enumerate() {
            let bottom = bottom(row);
            let width = (WIDTH - NAMES - MARGINS[1]) / values.len().max(1) as f64;
            let _ = write!(svg, "<text class=\"label\" x=\"0\" y=\"{}\">{}</text>", bottom - 10.0, escape(name));
            for (place, value) in values.iter().enumerate() {
                let length = (ROW - 10.0) * value / most;
                let _ = write!(
                    svg,
                    "<rect class=\"bar c{}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{length:.1}\"/>",
                    row % COLOURS,
                    NAMES + width * place as f64,
                    bottom - length,
                    (width * 0.85).max(0.3),
                );
            }
            let even = bottom - (ROW - 10.0) * self.even / most;
            let _ = write!(
                svg,
                "<line class=\"mark\" x1=\"{NAMES}\" x2=\"{}\" y1=\"{even:.1}\" y2=\"{even:.1}\"/>",
                WIDTH - MARGINS[1]
            );
        }
        let _ = write!(
            svg,
            "<text class=\"tick\" x=\"{NAMES}\" y=\"{}\">one bar for each instance; the dashed line is an even share, {}</text></svg>",
            height - 6.0,
            percent(self.even),
        );
        svg
    }
}

fn head(id: &str, title: &str, description: &str, height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>",
        escape(title),
        escape(description),
    )
}

/// From values to places in the picture.
struct Mapping {
    axis: Axis,
    low: f64,
    high: f64,
    places: [f64; 2],
}

impl Mapping {
    fn new(axis: Axis, (low, high): (f64, f64), places: [f64; 2]) -> Mapping {
        let low = if axis == Axis::Logarithmic { low.max(1e-6) } else { low };
        let high = if high > low { high } else { low + 1.0 };
        Mapping { axis, low, high, places }
    }

    fn place(&self, value: f64) -> f64 {
        let share = match self.axis {
            Axis::Linear => (value - self.low) / (self.high - self.low),
            Axis::Logarithmic => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        self.places[0] + share.clamp(0.0, 1.0) * (self.places[1] - self.places[0])
    }

    fn ticks(&self) -> Vec<f64> {
        match self.axis {
            Axis::Linear => {
                let step = nice_step((self.high - self.low) / 6.0);
                let first = (self.low / step).ceil() as i64;
                let last = (self.high / step + 1e-9).floor() as i64;
                (first..=last).map(|multiple| multiple as f64 * step).collect()
            }
            Axis::Logarithmic => {
                let few = self.decimal_ticks(&[1.0, 2.0, 5.0]);
                if few.len() > 3 { few } else { self.decimal_ticks(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]) }
            }
        }
    }

    /// These digits in every decade, as far as they lie on the axis.
    fn decimal_ticks(&self, digits: &[f64]) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let all = decades.flat_map(|decade| digits.iter().map(move |digit| digit * 10_f64.powi(decade)));
        all.filter(|tick| (self.low..=self.high).contains(tick)).collect()
    }
}

/// The least of 1, 2, 5 times a power of ten that is not below.
fn nice_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0].map(|digit| digit * power).into_iter().find(|step| *step >= least).unwrap_or(10.0 * power)
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    if low > high { (0.0, 1.0) } else { (low, high) }
}

fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A share as a percentage.
pub fn percent(value: f64) -> String {
    format!("{:.1} %", 100.0 * value)
}

/// Text as it may stand in a page.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_inside_the_axis() {
        let linear = Mapping::new(Axis::Linear, (0.0, 3_600.0), [0.0, 1.0]);
        assert_eq!(linear.ticks(), [0.0, 1_000.0, 2_000.0, 3_000.0]);
        let logarithmic = Mapping::new(Axis::Logarithmic, (43.0, 800.0), [0.0, 1.0]);
        assert_eq!(logarithmic.ticks(), [50.0, 100.0, 200.0, 500.0]);
        let narrow = Mapping::new(Axis::Logarithmic, (43.0, 130.0), [0.0, 1.0]);
        assert_eq!(narrow.ticks(), [50.0, 60.0, 80.0, 100.0]);
        assert_eq!((number(0.2), number(1_000.0)), ("0.2".to_owned(), "1000".to_owned()));
    }

    #[test]
    fn values_have_their_places_and_none_lies_outside() {
        let mapping = Mapping::new(Axis::Logarithmic, (10.0, 1_000.0), [100.0, 300.0]);
        assert_eq!(
            [1.0, 10.0, 100.0, 1_000.0, 9_999.0].map(|value| mapping.place(value).round()),
            [100.0, 100.0, 200.0, 300.0, 300.0]
        );
    }

    #[test]
    fn names_cannot_break_out_of_the_picture() {
        let rows = Rows {
            id: "share",
            title: "<b>",
            description: "\"".to_owned(),
            rows: vec![("<script>", vec![0.5, 0.5])],
            even: 0.5,
        };
        let svg = rows.svg();
        assert!(svg.contains("&lt;script&gt;") && !svg.contains("<script>") && !svg.contains("<b>"));
    }
}
