//! Families of series in a stable order, whose series can be taken out again when what they speak of is gone.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::{MetricType, TypedMetric};

use crate::labels::Labels;

/// All series of one metric.
pub(crate) struct Family<M> {
    series: Arc<Mutex<BTreeMap<Labels, M>>>,
    make: fn() -> M,
}

impl<M: Clone> Family<M> {
    pub(crate) fn new(make: fn() -> M) -> Family<M> {
        Family { series: Arc::default(), make }
    }

    /// The series with these labels, made when there is none. Takes a lock: resolve once, then keep it.
    pub(crate) fn series(&self, labels: Labels) -> M {
        self.series.lock().entry(labels).or_insert_with(self.make).clone()
    }

    /// The series with these labels, if there is one.
    pub(crate) fn find(&self, labels: &Labels) -> Option<M> {
        self.series.lock().get(labels).cloned()
    }

    /// Takes out all series of a scope.
    pub(crate) fn remove_within(&self, scope: &Labels) {
        self.series.lock().retain(|labels, _| !labels.are_within(scope));
    }
}

impl<M> Clone for Family<M> {
    fn clone(&self) -> Family<M> {
        Family { series: Arc::clone(&self.series), make: self.make }
    }
}

impl<M> fmt::Debug for Family<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({} series)", self.series.lock().len())
    }
}

impl<M: EncodeMetric + TypedMetric> EncodeMetric for Family<M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        for (labels, metric) in self.series.lock().iter() {
            metric.encode(encoder.encode_family(labels)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }

    fn is_empty(&self) -> bool {
        self.series.lock().is_empty()
    }
}

/// A fixed number of series that come into being when first used; afterwards using one is one load.
#[derive(Debug)]
pub(crate) struct Lazy<M, const N: usize> {
    cells: [OnceLock<M>; N],
}

impl<M, const N: usize> Lazy<M, N> {
    pub(crate) fn get(&self, index: usize, make: impl FnOnce() -> M) -> &M {
        self.cells[index].get_or_init(make)
    }

    /// The series that were used, with their indices.
    pub(crate) fn used(&self) -> impl Iterator<Item = (usize, &M)> {
        self.cells.iter().enumerate().filter_map(|(index, cell)| Some((index, cell.get()?)))
    }
}

impl<M, const N: usize> Default for Lazy<M, N> {
    fn default() -> Lazy<M, N> {
        Lazy { cells: [const { OnceLock::new() }; N] }
    }
}
