//! What routing knows of one replica of an engine: its name, its weight, its bound, and the life it is in.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::adaptive::Work;

/// The stable name of an instance; rendezvous hashes it, so a key comes home whatever port a restarted process has.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(Arc<str>);

impl InstanceId {
    /// An id from its text.
    pub fn new(id: impl Into<Arc<str>>) -> InstanceId {
        InstanceId(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl From<&str> for InstanceId {
    fn from(id: &str) -> InstanceId {
        InstanceId::new(id)
    }
}

/// An instance's share relative to the others: a finite number above zero, 1 by default.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Weight(f64);

impl Weight {
    /// The weight of an instance that says nothing.
    pub const ONE: Weight = Weight(1.0);

    /// A weight, if the number can be one.
    pub fn new(weight: f64) -> Result<Weight, WeightError> {
        if weight.is_finite() && weight > 0.0 { Ok(Weight(weight)) } else { Err(WeightError { weight }) }
    }

    /// The weight as a number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Weight {
        Weight::ONE
    }
}

/// A number that is no weight.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a weight is a number above 0, not {weight}")]
pub struct WeightError {
    weight: f64,
}

/// How an instance is added to a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceSpec {
    /// Its stable name, unique within the variant.
    pub id: InstanceId,
    /// Its share relative to the others.
    pub weight: Weight,
    /// The most requests that this router keeps in flight on it; no bound when `None`.
    pub max_in_flight: Option<NonZeroU32>,
    /// What it is a copy on: an inference component's copies are routed one by one, but a key prefers first one of the
    /// instances that they lie on, then one of the copies there. `None` for an instance that stands for itself.
    pub host: Option<InstanceId>,
}

impl InstanceSpec {
    /// An instance of weight 1 without a bound.
    pub fn new(id: impl Into<InstanceId>) -> InstanceSpec {
        InstanceSpec { id: id.into(), weight: Weight::ONE, max_in_flight: None, host: None }
    }
}

/// One life of an instance in the router: a slot or a piece of evidence from an earlier life changes nothing in a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub(crate) u64);

/// One request's place in an instance's in-flight count.
///
/// It can't be copied, and [`VariantState::finish`](crate::VariantState::finish) takes it, so it is given back at most
/// once; whoever holds it must see that it is given back at all.
#[derive(Debug, PartialEq)]
#[must_use = "a slot that is dropped is never given back"]
pub struct Slot {
    pub(crate) generation: Generation,
    /// What `ADAPTIVE` believes of the request.
    pub(crate) work: Option<Work>,
}

impl Slot {
    /// The life of the instance that this slot counts on.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Whether later choices learn from what becomes of the request: else nothing needs to be told of it.
    pub fn is_learned_from(&self) -> bool {
        self.work.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_finite_number_above_zero_is_a_weight() {
        for weight in [f64::MIN_POSITIVE, 0.5, 1.0, f64::MAX] {
            assert_eq!(Weight::new(weight).unwrap().get(), weight);
        }
        for weight in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = Weight::new(weight).unwrap_err().to_string();
            assert!(error.starts_with("a weight is a number above 0, not "), "{error}");
        }
    }

    #[test]
    fn an_instance_is_shown_by_its_id() {
        let id = InstanceId::from("http://10.0.0.7:8000");
        assert_eq!((id.to_string().as_str(), id.as_str()), ("http://10.0.0.7:8000", "http://10.0.0.7:8000"));
    }
}
