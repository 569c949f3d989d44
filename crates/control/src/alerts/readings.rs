//! What the rules look at: the last minutes of every variant and instance, as plain values.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use isotherm_core::{Availability, InstanceId};
use isotherm_fleet::{EngineReport, Fleet, InstanceNow, Model, Problem, Variant};
use isotherm_telemetry::{HistogramFigures, InstanceCounts};
use isotherm_tls::Validity;
use serde::Serialize;
use serde_json::Value;

use crate::observer::{POINTS, Rates, Repeated, STEP, Seen, Short, VariantHistory, sum};

/// A variant's last minutes.
#[derive(Debug, Clone, Default)]
pub(crate) struct VariantReading {
    pub(crate) endpoint: String,
    pub(crate) variant: String,
    /// Requests that were placed, and those of them that had left a full home.
    pub(crate) requests: u64,
    pub(crate) spilled: u64,
    pub(crate) hit_rate: Option<f64>,
    /// Keys that were seen before, of those looked at.
    pub(crate) repeat_share: Option<f64>,
    /// In characters.
    pub(crate) prefix_length: Option<u32>,
    pub(crate) short: Short,
    /// The 95th percentile of the time to first token in seconds, and of how many.
    pub(crate) first_token_p95: Option<f64>,
    pub(crate) first_tokens: u64,
    /// The hottest prefix's key and share, less what may be others'.
    pub(crate) hottest: Option<(String, f64)>,
    pub(crate) instances: Vec<InstanceReading>,
}

/// An instance's last minutes.
#[derive(Debug, Clone, Default)]
pub(crate) struct InstanceReading {
    pub(crate) id: String,
    /// `up`, `draining`, `down` or `ejected`.
    pub(crate) availability: &'static str,
    /// What was wrong with its last probe.
    pub(crate) problem: Option<Problem>,
    /// From when until when its certificate counts; `None` for one in the clear, or not connected to yet.
    pub(crate) certificate: Option<Validity>,
    /// Its part of the variant's weight, 0 to 1.
    pub(crate) fair_share: f64,
    pub(crate) counts: InstanceCounts,
    pub(crate) repeated: Repeated,
    pub(crate) engine: EngineReport,
    /// The base models that it lists; `None` while it has not said.
    pub(crate) models: Option<BTreeSet<BaseModel>>,
}

/// A model that is no adapter, with what engines say beside its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct BaseModel {
    pub(crate) id: String,
    /// What it was loaded from, where that is another name.
    pub(crate) root: Option<String>,
    /// How many tokens a prompt and its answer may have.
    pub(crate) context: Option<u64>,
}

/// Reads the last minutes.
pub(crate) fn take(fleet: &Fleet, seen: &Seen, window: Duration) -> Vec<VariantReading> {
    let topology = fleet.topology();
    let steps = steps(window);
    let hottest = seen.prefixes.hottest(POINTS);
    let reading = |variant: &std::sync::Arc<Variant>| {
        let nothing = VariantHistory::default();
        let history = seen.history.of(variant.endpoint(), variant.name()).unwrap_or(&nothing);
        let point = sum(history.points(steps));
        let rates = Rates::of(&point);
        let mut first_token = HistogramFigures::default();
        point.counts.first_token.iter().for_each(|outcome| first_token.add(outcome));
        let own = |hot: &&crate::observer::HotPrefix| {
            *hot.endpoint == **variant.endpoint() && *hot.variant == **variant.name()
        };
        let instances = variant.instances(fleet.clock().now());
        let weight: f64 = instances.iter().map(|one| one.weight.get()).sum();
        let of_instance = |one: &InstanceNow| {
            let repeated = seen.beliefs.repeated(variant.endpoint(), variant.name(), one.instance.id(), steps);
            InstanceReading::of(one, weight, history, repeated, steps)
        };
        VariantReading {
            endpoint: variant.endpoint().to_string(),
            variant: variant.name().to_string(),
            requests: point.counts.decisions.iter().sum(),
            spilled: point.counts.spills.iter().sum(),
            hit_rate: rates.hit_rate,
            repeat_share: rates.repeat_share,
            prefix_length: variant.routing().prefix_length().map(|length| length.get()),
            short: seen.beliefs.short(variant.endpoint(), variant.name(), steps),
            first_token_p95: first_token.quantile(0.95),
            first_tokens: first_token.count(),
            hottest: hottest.iter().find(own).map(|hot| (hot.key.clone(), hot.share - hot.share_uncertainty)),
            instances: instances.iter().map(of_instance).collect(),
        }
    };
    topology.variants().map(reading).collect()
}

/// How many steps a window has.
fn steps(window: Duration) -> usize {
    ((window.as_secs_f64() / STEP.as_secs_f64()).ceil() as usize).clamp(1, POINTS)
}

impl InstanceReading {
    fn of(
        one: &InstanceNow,
        weight: f64,
        history: &VariantHistory,
        repeated: Repeated,
        steps: usize,
    ) -> InstanceReading {
        let mut counts = InstanceCounts::default();
        history.instance(one.instance.serial(), steps).iter().for_each(|point| counts.add(&point.counts));
        InstanceReading {
            id: InstanceId::as_str(one.instance.id()).to_owned(),
            availability: one.availability.as_str(),
            problem: one.instance.problem(),
            certificate: one.instance.certificate(),
            fair_share: one.weight.get() / weight,
            counts,
            repeated,
            engine: one.instance.engine(),
            models: one
                .instance
                .models()
                .map(|models| models.iter().filter_map(|model| BaseModel::of(model)).collect()),
        }
    }

    /// Whether it takes part: what is drained on demand may be anything.
    pub(crate) fn is_in_service(&self) -> bool {
        self.availability != Availability::Draining.as_str()
    }
}

impl BaseModel {
    /// `None` for an adapter, which may lie on some replicas only.
    fn of(model: &Model) -> Option<BaseModel> {
        let object: Value = serde_json::from_str(model.object()).ok()?;
        if object.get("parent").is_some_and(|parent| !parent.is_null()) {
            return None;
        }
        let root = object.get("root").and_then(Value::as_str).filter(|root| *root != model.id());
        Some(BaseModel {
            id: model.id().to_owned(),
            root: root.map(str::to_owned),
            context: object.get("max_model_len").and_then(Value::as_u64),
        })
    }
}

impl fmt::Display for BaseModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        if let Some(root) = &self.root {
            write!(f, ", from {root}")?;
        }
        if let Some(context) = self.context {
            write!(f, ", context {context}")?;
        }
        Ok(())
    }
}
