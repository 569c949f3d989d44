//! "Did you mean": the known word that a mistyped one is nearest to.

/// The most alike of the known words, if one is alike enough to be worth naming.
pub(crate) fn closest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let spelled = normalised(given);
    known
        .map(|word| (strsim::jaro_winkler(&spelled, &normalised(word)), word))
        .filter(|(likeness, _)| *likeness >= 0.85)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, word)| word)
}

/// Case and the choice of `-` or `_` are what people mix up most.
fn normalised(word: &str) -> String {
    word.replace('-', "_").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["prefix_length", "concurrency_threshold", "strategy"];
        for (given, expected) in [
            ("prefix_lenght", Some("prefix_length")),
            ("prefixLength", Some("prefix_length")),
            ("concurrency-threshold", Some("concurrency_threshold")),
            ("replicas", None),
        ] {
            assert_eq!(closest(given, known.into_iter()), expected, "{given}");
        }
    }
}
