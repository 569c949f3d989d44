//! A report as text with aligned tables.

use isotherm_report::comparison::wrapped;
use isotherm_report::{Align, Table};

use super::{Section, Told};

/// The report.
pub fn text(told: &Told) -> String {
    let mut text = String::new();
    for section in told.sections() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&section.title.to_uppercase());
        text.push('\n');
        text.push_str(&table(&section));
        if !section.table.is_empty() && !section.sentences.is_empty() {
            text.push('\n');
        }
        section.sentences.iter().for_each(|sentence| text.push_str(&wrapped(sentence)));
    }
    text
}

fn table(section: &Section) -> String {
    let columns = section.table.iter().map(Vec::len).max().unwrap_or(0);
    let is_drawn =
        |column: usize| section.table.iter().any(|row| row.get(column).is_some_and(|cell| cell.starts_with('#')));
    let align = |column| if column < section.words || is_drawn(column) { Align::Left } else { Align::Right };
    let mut table = Table::new((0..columns).map(align));
    for row in &section.table {
        table.row(row.iter().cloned());
    }
    table.to_string()
}
