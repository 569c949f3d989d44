//! Tables of text with aligned columns.

use std::fmt;

use unicode_width::UnicodeWidthStr;

/// Where the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Rows of cells; `Display` aligns them. Widths are those of a terminal: a Chinese character counts two columns, a
/// combining mark none.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(columns: impl IntoIterator<Item = Align>) -> Table {
        Table { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row. Missing cells stay empty; cells beyond the last column are left out.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) -> &mut Table {
        self.rows.push(cells.into_iter().map(Into::into).take(self.columns.len()).collect());
        self
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let padding = " ".repeat(widths[column] - cell.width());
                let gap = if column > 0 { "  " } else { "" };
                match self.columns[column] {
                    Align::Left => line.extend([gap, cell, &padding]),
                    Align::Right => line.extend([gap, &padding, cell]),
                }
            }
            writeln!(formatter, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Align, Table};

    #[test]
    fn aligns_by_terminal_width() {
        let mut table = Table::new([Align::Left, Align::Right, Align::Left]);
        table.row(["name", "n", "note"]).row(["模型", "10", "two columns each"]).row(["e\u{301}", "100"]);
        assert_eq!(table.to_string(), "name    n  note\n模型   10  two columns each\ne\u{301}     100\n");
    }
}
