//! One metric's values over time, in spans of ten seconds for some hours and of a minute for longer.

use std::collections::VecDeque;

use super::summary::Summary;

/// How finely values of a metric are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// By the minute.
    Standard,
    /// By ten seconds as well, for a shorter time.
    High,
}

/// Spans of one width, in order; those without values are not there.
#[derive(Debug)]
pub(super) struct Level {
    /// In seconds.
    width: u64,
    spans: VecDeque<(u64, Summary)>,
    cells: usize,
}

/// The values of one metric in one unit.
#[derive(Debug)]
pub(super) struct Series {
    fine: Level,
    coarse: Level,
}

impl Series {
    pub(super) fn new() -> Series {
        Series { fine: Level::new(10), coarse: Level::new(60) }
    }

    pub(super) fn record(&mut self, resolution: Resolution, time: u64, values: &Summary) {
        if resolution == Resolution::High {
            self.fine.record(time, values);
        }
        self.coarse.record(time, values);
    }

    /// The level from which spans of this many seconds are put together.
    pub(super) fn level(&self, period: u64) -> &Level {
        if period < self.coarse.width { &self.fine } else { &self.coarse }
    }

    /// When the newest span of a minute that has values begins.
    pub(super) fn newest(&self) -> Option<u64> {
        self.coarse.spans.back().map(|(start, _)| *start)
    }

    /// Forgets what is older than either time, then what is oldest until at most so many cells are left.
    pub(super) fn shorten(&mut self, fine_since: u64, coarse_since: u64, cells: usize) {
        self.fine.shorten(fine_since, cells / 2);
        self.coarse.shorten(coarse_since, cells.saturating_sub(self.fine.cells));
    }

    pub(super) fn cells(&self) -> usize {
        self.fine.cells + self.coarse.cells
    }
}

impl Level {
    fn new(width: u64) -> Level {
        Level { width, spans: VecDeque::new(), cells: 0 }
    }

    /// The spans that begin at `start` or later and before `end`.
    pub(super) fn between(&self, start: u64, end: u64) -> impl Iterator<Item = &(u64, Summary)> {
        let first = self.spans.partition_point(|(time, _)| *time < start);
        self.spans.range(first..).take_while(move |(time, _)| *time < end)
    }

    fn record(&mut self, time: u64, values: &Summary) {
        let start = time - time % self.width;
        let place = self.spans.partition_point(|(time, _)| *time < start);
        match self.spans.get_mut(place) {
            Some((time, summary)) if *time == start => {
                self.cells -= summary.cells();
                summary.merge(values);
                self.cells += summary.cells();
            }
            _ => {
                self.cells += values.cells();
                self.spans.insert(place, (start, values.clone()));
            }
        }
    }

    fn shorten(&mut self, since: u64, cells: usize) {
        while let Some((start, summary)) = self.spans.front() {
            if *start >= since && self.cells <= cells {
                break;
            }
            self.cells -= summary.cells();
            self.spans.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(level: &Level) -> Vec<(u64, f64)> {
        level.between(0, u64::MAX).map(|(start, summary)| (*start, summary.sum())).collect()
    }

    #[test]
    fn values_fall_into_their_spans_in_whatever_order_they_come() {
        let mut series = Series::new();
        for (time, value) in [(125, 1.0), (61, 2.0), (129, 4.0), (119, 8.0)] {
            series.record(Resolution::High, time, &Summary::of(value));
        }
        series.record(Resolution::Standard, 59, &Summary::of(16.0));
        assert_eq!(sums(series.level(10)), [(60, 2.0), (110, 8.0), (120, 5.0)]);
        assert_eq!(sums(series.level(60)), [(0, 16.0), (60, 10.0), (120, 5.0)]);
        assert_eq!(series.level(300).between(60, 120).count(), 1, "the end is not part of it");
        assert_eq!(series.newest(), Some(120));
    }

    #[test]
    fn the_oldest_goes_first() {
        let mut series = Series::new();
        (0..10).for_each(|minute| series.record(Resolution::High, minute * 60, &Summary::of(1.0)));
        assert_eq!(series.cells(), 20);
        series.shorten(240, 120, 100);
        assert_eq!((sums(series.level(10)).len(), sums(series.level(60)).len()), (6, 8));
        series.shorten(0, 0, 10);
        assert_eq!(series.cells(), 10);
        assert_eq!(sums(series.level(10)).last(), Some(&(540, 1.0)));
    }
}
