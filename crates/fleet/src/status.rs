//! One instance as it is listed to people.

use std::sync::Arc;
use std::time::Duration;

use isotherm_core::{Availability, Time};
use serde::Serialize;

use crate::{EngineStatus, InstanceNow, Problem};

/// How an instance stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InstanceStatus {
    /// Its stable name, unique within its variant.
    pub id: Arc<str>,
    /// The endpoint's name.
    pub endpoint: Arc<str>,
    /// The variant's name.
    pub variant: Arc<str>,
    /// Where it is reached.
    pub url: Arc<str>,
    /// `up`, `draining`, `down` or `ejected`.
    pub availability: &'static str,
    /// How long it stays ejected, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ejected_for_seconds: Option<f64>,
    /// What was wrong with the last probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Arc<str>>,
    /// The same with its name and values, for whoever says it in another language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem_detail: Option<Problem>,
    /// Requests in flight on it, of this router.
    pub in_flight: u32,
    /// The most of them.
    pub max_in_flight: Option<u32>,
    /// Its share relative to the variant's other instances.
    pub weight: f64,
    /// The models that it lists; `null` while it has not said.
    pub models: Option<Vec<Arc<str>>>,
    /// What its engine tells of itself; absent while nobody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineStatus>,
    /// Who brought it in: `file`, `dns`, `api` or `started`.
    pub origin: &'static str,
    /// The DNS name whose answer it stands in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns: Option<String>,
    /// When it was added, in RFC 3339.
    pub since: String,
}

impl InstanceStatus {
    /// How this instance stands at `now`, by the fleet's clock.
    pub fn of(one: &InstanceNow, now: Time) -> InstanceStatus {
        let instance = &one.instance;
        let location = instance.location();
        let (listing, problem) = (instance.listing(), instance.problem());
        InstanceStatus {
            id: instance.id().as_str().into(),
            endpoint: Arc::clone(&location.endpoint),
            variant: Arc::clone(&location.variant),
            url: Arc::clone(instance.address().url()),
            availability: one.availability.as_str(),
            ejected_for_seconds: match one.availability {
                Availability::Ejected { until } => Some(until.since(now)).as_ref().map(Duration::as_secs_f64),
                Availability::Up | Availability::Draining | Availability::Down => None,
            },
            problem: problem.as_ref().map(|problem| Arc::clone(problem.message())),
            problem_detail: problem,
            in_flight: one.in_flight,
            max_in_flight: one.max_in_flight.map(u32::from),
            weight: one.weight.get(),
            models: listing.map(|listing| listing.models().iter().map(|model| model.id().into()).collect()),
            engine: EngineStatus::of(&instance.engine()),
            origin: instance.origin().as_str(),
            dns: instance.origin().name().map(ToString::to_string),
            since: jiff::Timestamp::try_from(instance.since()).map(|time| format!("{time:.0}")).unwrap_or_default(),
        }
    }
}
