//! Prometheus' text format, as far as it is needed: names, labels and values, borrowed from the page.

/// The samples of one page.
#[derive(Debug)]
pub(super) struct Samples<'p>(Vec<Sample<'p>>);

/// One line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample<'p> {
    pub(super) name: &'p str,
    /// As they stand between the braces.
    labels: &'p str,
    pub(super) value: f64,
}

impl<'p> Samples<'p> {
    /// Reads every line that is a sample; what is none is left out, so that a page with one odd line is still of use.
    pub(super) fn parse(page: &'p str) -> Samples<'p> {
        Samples(page.lines().filter_map(Sample::parse).collect())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'p str> {
        self.0.iter().map(|sample| sample.name)
    }

    /// The samples of a name.
    pub(super) fn of(&self, name: &str) -> impl Iterator<Item = &Sample<'p>> {
        self.0.iter().filter(move |sample| sample.name == name && sample.value.is_finite())
    }

    /// The sum over a name's samples; `None` where there is none.
    pub(super) fn sum(&self, name: &str) -> Option<f64> {
        self.of(name).map(|sample| sample.value).reduce(|sum, value| sum + value)
    }

    /// Their mean.
    pub(super) fn mean(&self, name: &str) -> Option<f64> {
        let count = self.of(name).count();
        self.sum(name).map(|sum| sum / count as f64)
    }

    /// The value of the first sample of a name that has this label.
    pub(super) fn with(&self, name: &str, label: &str, value: &str) -> Option<f64> {
        self.of(name).find(|sample| sample.label(label) == Some(value)).map(|sample| sample.value)
    }

    /// A label of the first sample of a name.
    pub(super) fn label(&self, name: &str, label: &str) -> Option<&'p str> {
        self.of(name).next().and_then(|sample| sample.label(label))
    }
}

impl<'p> Sample<'p> {
    fn parse(line: &'p str) -> Option<Sample<'p>> {
        if line.starts_with('#') {
            return None;
        }
        let name_ends = line.find(|c: char| c == '{' || c.is_ascii_whitespace())?;
        let (name, rest) = line.split_at(name_ends);
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => rest.split_at(end_of_labels(rest)?),
            None => ("", rest),
        };
        let value = rest.strip_prefix('}').unwrap_or(rest).split_ascii_whitespace().next()?;
        Some(Sample { name, labels, value: value.parse().ok()? })
    }

    /// A label's value as it is written, escapes and all.
    pub(super) fn label(&self, name: &str) -> Option<&'p str> {
        let mut rest = self.labels;
        while let Some((key, after)) = rest.split_once("=\"") {
            let end = end_of_value(after)?;
            if key.trim_start_matches([',', ' ']) == name {
                return Some(&after[..end]);
            }
            rest = &after[end + 1..];
        }
        None
    }
}

/// Where the closing brace stands, which a quoted value may hold, too.
fn end_of_labels(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let next = rest.find(['"', '}'])?;
        if rest.as_bytes()[next] == b'}' {
            return Some(at + next);
        }
        at += next + 1;
        at += end_of_value(&text[at..])? + 1;
    }
}

/// Where the closing quote stands.
fn end_of_value(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn names_labels_and_values_are_found_whatever_quotes_hold() {
        let page =
            "# HELP a b\na 1\na{x=\"1\"} 2 1795955696\nb{x=\"}\\\"{\",y=\"\"} 3e2\nc{x=\"open 5\nd NaN\ne{} +Inf\n";
        let samples = Samples::parse(page);
        assert_eq!(samples.sum("a"), Some(3.0));
        assert_eq!(samples.mean("a"), Some(1.5));
        assert_eq!(samples.with("a", "x", "1"), Some(2.0));
        assert_eq!((samples.label("b", "x"), samples.label("b", "y")), (Some("}\\\"{"), Some("")));
        assert_eq!(samples.sum("b"), Some(300.0));
        assert_eq!((samples.sum("c"), samples.sum("d"), samples.sum("e")), (None, None, None));
    }

    #[test]
    fn no_page_breaks_it() {
        for page in [
            "",
            "{",
            "}",
            "a{",
            "a{b",
            "a{b=\"",
            "a{b=\"\\",
            "\u{1f600}{\u{e9}=\"x\"} 1",
            "[{\"a\": 1}]",
            "a{x=\"\"\"} 1",
        ] {
            let samples = Samples::parse(page);
            samples.0.iter().for_each(|sample| _ = sample.label("x"));
        }
    }
}
