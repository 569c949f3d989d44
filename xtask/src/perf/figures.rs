//! The figures of a run: medians of the rounds, and what a router adds to the direct way of the same round.

use super::measure::Sample;
use super::peers::Subject;
use super::plan::Case;

/// All samples.
#[derive(Debug)]
pub(crate) struct Results {
    /// Direct first, then the subjects as they were started.
    pub(crate) names: Vec<Named>,
    samples: Vec<(usize, Case, Sample)>,
}

/// What was measured, and what it takes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) tuning: String,
    /// `None` where no process of its own is in the way.
    pub(crate) memory: Option<Memory>,
}

/// Resident memory in MiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// Before the first request.
    pub(crate) idle: f64,
    /// The most that there was at any time.
    pub(crate) peak: f64,
    /// Some seconds after the last answer.
    pub(crate) after: f64,
}

/// Medians of the rounds. Times in microseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    pub(crate) sample: Sample,
    /// Over the direct way: what the router adds.
    pub(crate) added_p50: f64,
    pub(crate) added_p99: f64,
    pub(crate) failed: u64,
    pub(crate) failure: Option<String>,
    pub(crate) reconnects: u64,
}

impl Results {
    pub(crate) fn new(subjects: &[Subject]) -> Results {
        let direct = Named { name: "direct".to_owned(), ..Named::default() };
        let names = subjects.iter().map(|subject| Named {
            name: subject.name.to_owned(),
            version: subject.version.clone(),
            tuning: subject.tuning.to_owned(),
            memory: Some(Memory { idle: subject.process.memory_mib(), peak: f64::NAN, after: f64::NAN }),
        });
        Results { names: std::iter::once(direct).chain(names).collect(), samples: Vec::new() }
    }

    /// Adds a sample of a subject, by its index; of the direct way with `None`.
    pub(crate) fn add(&mut self, subject: Option<usize>, case: Case, sample: Sample) {
        self.samples.push((subject.map_or(0, |index| index + 1), case, sample));
    }

    /// Notes what the subjects have come to take.
    pub(crate) fn note_memory(&mut self, subjects: &[Subject]) {
        for (named, subject) in self.names.iter_mut().skip(1).zip(subjects) {
            if let Some(memory) = &mut named.memory {
                (memory.peak, memory.after) = (subject.process.peak_mib(), subject.process.memory_mib());
            }
        }
    }

    /// The position of a name; `None` where it was skipped.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|named| named.name == name)
    }

    /// The figures of one name in one case.
    pub(crate) fn of(&self, name: usize, case: Case) -> Figures {
        let (own, direct) = (self.samples_of(name, case), self.samples_of(0, case));
        let all = |figure: fn(&Sample) -> f64| median(own.iter().map(|sample| figure(sample)).collect());
        let added = |figure: fn(&Sample) -> f64| {
            median(own.iter().zip(&direct).map(|(own, direct)| figure(own) - figure(direct)).collect())
        };
        Figures {
            sample: Sample {
                first_byte_p50: all(|sample| sample.first_byte_p50),
                first_byte_p99: all(|sample| sample.first_byte_p99),
                per_second: all(|sample| sample.per_second),
                cpu_us: all(|sample| sample.cpu_us),
                load_cores: all(|sample| sample.load_cores),
                engine_cores: all(|sample| sample.engine_cores),
                ..Sample::default()
            },
            added_p50: added(|sample| sample.first_byte_p50),
            added_p99: added(|sample| sample.first_byte_p99),
            failed: own.iter().map(|sample| sample.failed).sum(),
            failure: own.iter().find_map(|sample| sample.failure.clone()),
            reconnects: own.iter().map(|sample| sample.reconnects).sum(),
        }
    }

    /// How many samples there are of one name in one case.
    pub(crate) fn rounds(&self, name: usize, case: Case) -> usize {
        self.samples_of(name, case).len()
    }

    fn samples_of(&self, name: usize, case: Case) -> Vec<&Sample> {
        let of_both = self.samples.iter().filter(|(index, of, _)| *index == name && *of == case);
        of_both.map(|(_, _, sample)| sample).collect()
    }
}

/// The middle value; of an even number the mean of the two in the middle; NaN of none.
fn median(mut values: Vec<f64>) -> f64 {
    values.retain(|value| !value.is_nan());
    values.sort_by(f64::total_cmp);
    isotherm_report::percentile::percentile(&values, 50.0).unwrap_or(f64::NAN)
}
