//! Any bytes as a request log.

use isotherm_analysis::{Format, Input, Options, analyse};

/// A log, of each format and of whatever it seems to be: no panic, and no more requests than it has lines and commas.
pub fn check_log(bytes: &[u8]) {
    let formats = Format::ALL.into_iter().map(Some).chain([None]);
    for format in formats {
        let input = Input::Text { name: "log".to_owned(), log: bytes.into() };
        let options = Options { format, keep_text: true, ..Options::default() };
        let Ok(analysis) = analyse(&[input], &options, &()) else { continue };
        let requests: u64 = analysis.findings.logs.iter().map(|log| log.requests).sum();
        assert!(requests >= 1, "an analysis of nothing");
    }
}
