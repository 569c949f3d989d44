//! What a fleet did in each part of the measured time: read from its engines at the parts' borders.

use std::ops::Range;
use std::time::Duration;

use isotherm_report::{FleetPart, PARTS, Run};

use crate::Arm;
use crate::record::nanoseconds;

/// What the engines of a fleet have done since they were started, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Cached blocks overwritten.
    pub evicted_blocks: u64,
    /// Time spent in steps, each engine's multiplied by its accelerators.
    pub busy_accelerator_time: Duration,
}

/// The readings at the borders so far: the beginning of the first part, and the end of each.
pub(crate) struct WorkLog {
    window: Range<u64>,
    instances: u64,
    accelerators: Option<u64>,
    readings: Vec<Option<Work>>,
}

impl WorkLog {
    pub(crate) fn new(window: Range<u64>, arm: &Arm) -> WorkLog {
        let accelerators = arm.accelerators.map(u64::from);
        WorkLog { window, instances: arm.instances.len() as u64, accelerators, readings: Vec::new() }
    }

    /// When the next reading is due, in engine time; `None` after the last.
    pub(crate) fn next_border(&self) -> Option<Duration> {
        (self.readings.len() <= PARTS).then(|| Duration::from_nanos(self.border(self.readings.len())))
    }

    pub(crate) fn read(&mut self, work: Option<Work>) {
        self.readings.push(work);
    }

    /// The parts. Borders that nobody waited for, because all requests had ended before, see the work as it is now.
    pub(crate) fn into_parts(mut self, work: &dyn Fn() -> Option<Work>) -> Vec<FleetPart> {
        while self.next_border().is_some() {
            self.read(work());
        }
        let part = |number: usize| {
            let time = self.border(number + 1) - self.border(number);
            let both = self.readings[number].zip(self.readings[number + 1]);
            FleetPart {
                evicted_blocks: both.map(|(before, after)| after.evicted_blocks - before.evicted_blocks),
                instance_time: time * self.instances,
                accelerator_time: self.accelerators.map(|accelerators| time * accelerators),
                busy_accelerator_time: both.map(|(before, after)| {
                    nanoseconds(after.busy_accelerator_time.saturating_sub(before.busy_accelerator_time))
                }),
            }
        };
        (0..PARTS).map(part).collect()
    }

    fn border(&self, number: usize) -> u64 {
        if number == 0 { self.window.start } else { Run::part_end(&self.window, number - 1) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Work, WorkLog};
    use crate::{Arm, Target};

    fn log(accelerators: Option<u32>) -> WorkLog {
        let target = Target::new("http://h", "m").unwrap();
        let instances = vec!["a".to_owned(), "b".to_owned()];
        WorkLog::new(1_000..21_000, &Arm { target, instances, accelerators, text_seed: 0 })
    }

    fn work(steps: u64) -> Option<Work> {
        Some(Work { evicted_blocks: steps, busy_accelerator_time: Duration::from_nanos(100 * steps) })
    }

    #[test]
    fn a_part_is_the_difference_between_its_borders() {
        let mut log = log(Some(16));
        let mut borders = Vec::new();
        while let Some(border) = log.next_border() {
            borders.push(border.as_nanos() as u64);
            log.read(work(borders.len() as u64 * borders.len() as u64));
        }
        assert_eq!((borders.len(), borders[0], borders[1], borders[20]), (21, 1_000, 2_000, 21_000));
        let parts = log.into_parts(&|| None);
        assert_eq!((parts.len(), parts[0].evicted_blocks, parts[19].evicted_blocks), (20, Some(3), Some(41)));
        assert_eq!((parts[1].instance_time, parts[1].accelerator_time), (2_000, Some(16_000)));
        assert_eq!(parts[1].busy_accelerator_time, Some(500));
    }

    #[test]
    fn engines_that_say_nothing_leave_it_unknown() {
        let parts = log(None).into_parts(&|| None);
        assert!(parts.iter().all(|part| part.evicted_blocks.is_none() && part.busy_accelerator_time.is_none()));
        assert!(parts.iter().all(|part| part.accelerator_time.is_none() && part.instance_time == 2_000));
    }

    #[test]
    fn a_run_that_ends_early_has_idle_parts() {
        let mut log = log(Some(2));
        log.read(work(0));
        log.read(work(7));
        let parts = log.into_parts(&|| work(9));
        let evicted: Vec<u64> = parts.iter().filter_map(|part| part.evicted_blocks).collect();
        assert_eq!((evicted[0], evicted[1], &evicted[2..]), (7, 2, &[0; 18][..]));
    }
}
