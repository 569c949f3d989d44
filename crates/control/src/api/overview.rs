//! `/api/overview`: everything that views of the router show, as one snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use axum::Json;
use axum::extract::{Query, State};
use isotherm_core::{Availability, Routing, SpillCause, Strategy, Weight};
use isotherm_fleet::{Endpoint, Fleet, InstanceNow, InstanceStatus, Owner, TrafficShare, Variant};
use isotherm_telemetry::{CacheOutcome, InstanceCounts};
use serde::{Deserialize, Serialize};

use crate::admin::{AdminState, Deployment};
use crate::alerts::Alert;
use crate::observer::{
    Figures, FleetChange, History, HotPrefix, InstancePoint, Observer, POINTS, Rates, STEP, Seen, ShownRequest,
    VariantHistory, VariantPoint, share, unix_seconds,
};
use crate::shadow::ShadowFigures;

/// Steps that make a minute: what is shown as "now".
const MINUTE: usize = 12;

/// How many hot prefixes are told.
const HOT_PREFIXES: usize = 20;

/// How many instances of a variant have their steps told; all have their figures.
const MOST_WITH_SERIES: usize = 100;

/// What the overview is made from.
#[derive(Clone)]
pub(crate) struct Overlooked {
    pub(crate) admin: AdminState,
    pub(crate) observer: Observer,
}

/// How much is to be told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Extent {
    /// How many of the last steps; 0 to 180.
    points: usize,
    /// How many of the last requests; 0 to 200.
    requests: usize,
}

/// The router at one moment.
#[derive(Debug, Serialize)]
pub(crate) struct Overview {
    /// When, in Unix time.
    time: f64,
    /// How long a step of the series takes.
    step_seconds: f64,
    /// Whether traffic should be sent to this router.
    ready: bool,
    /// Whether it is shutting down.
    draining: bool,
    endpoints: Vec<EndpointOverview>,
    /// Changes of managed endpoints that are under way, or have failed.
    deployments: Vec<Deployment>,
    variants: Vec<VariantOverview>,
    hot_prefixes: Vec<HotPrefix>,
    /// The last requests, newest first; a sample where there are many.
    requests: Vec<ShownRequest>,
    /// When instances came or went, newest first, and which of the hot prefixes got another home by it.
    fleet_changes: Vec<FleetChange>,
    /// What the router itself warns of, what fires first.
    alerts: Vec<Alert>,
}

#[derive(Debug, Serialize)]
struct EndpointOverview {
    name: Arc<str>,
    /// Whether a control plane says what it is, not the file.
    managed: bool,
    variants: Vec<ShareOverview>,
    /// Its inference components.
    components: Vec<Arc<str>>,
}

/// A variant's part in an endpoint.
#[derive(Debug, Serialize)]
struct ShareOverview {
    name: Arc<str>,
    /// Its part of the endpoint's traffic, 0 to 1.
    traffic: f64,
    strategy: &'static str,
    instances: usize,
    available: usize,
    shadow: bool,
}

#[derive(Debug, Serialize)]
struct VariantOverview {
    endpoint: Arc<str>,
    variant: Arc<str>,
    #[serde(flatten)]
    routing: RoutingOverview,
    in_flight: u64,
    waiting: u64,
    /// The last minute.
    minute: Figures,
    /// As long as steps are kept, 15 minutes at most.
    quarter_hour: Figures,
    /// What other strategies would have had; `None` while diagnostics are off.
    shadow: Option<ShadowFigures>,
    series: VariantSeries,
    instances: Vec<InstanceOverview>,
}

/// How a variant chooses an instance.
#[derive(Debug, Serialize)]
pub(crate) struct RoutingOverview {
    strategy: &'static str,
    prefix_length: Option<u32>,
    concurrency_threshold: Option<u32>,
    /// The part of the keys that the strategy decides, in percent; chance decides the others.
    rollout: u8,
}

#[derive(Debug, Serialize)]
struct InstanceOverview {
    #[serde(flatten)]
    status: InstanceStatus,
    /// Its part of the variant's requests within as long as steps are kept, 0 to 1.
    share: Option<f64>,
    /// What that would be by weights alone: 1/n where they are equal.
    fair_share: f64,
    requests: u64,
    hit_rate: Option<f64>,
    expected_hit_rate: Option<f64>,
    upstream_errors: u64,
    output_tokens: u64,
    series: InstanceSeries,
}

/// One column per figure, oldest first.
#[derive(Debug, Default, Serialize)]
struct VariantSeries {
    /// Ends of the steps, in Unix time.
    time: Vec<f64>,
    requests_per_second: Vec<f64>,
    error_rate: Vec<Option<f64>>,
    spill_rate: Vec<Option<f64>>,
    /// Spills by cause.
    spills: BTreeMap<&'static str, Vec<u64>>,
    hit_rate: Vec<Option<f64>>,
    expected_hit_rate: Vec<Option<f64>>,
    repeat_share: Vec<Option<f64>>,
    /// Medians of the time to first token in milliseconds, by what the cache was worth.
    ttft_p50_ms: BTreeMap<&'static str, Vec<Option<f64>>>,
    in_flight: Vec<u64>,
    waiting: Vec<u64>,
}

/// As many points as the variant's or fewer, if it was added since: both end now.
#[derive(Debug, Default, Serialize)]
struct InstanceSeries {
    requests: Vec<u64>,
    in_flight: Vec<u32>,
    hit_rate: Vec<Option<f64>>,
    available: Vec<bool>,
}

impl Default for Extent {
    fn default() -> Extent {
        Extent { points: POINTS, requests: 50 }
    }
}

pub(crate) async fn overview(State(overlooked): State<Overlooked>, Query(extent): Query<Extent>) -> Json<Overview> {
    let Overlooked { admin, observer } = overlooked;
    let mut overview = Overview::of(&admin, &observer.seen(), &extent);
    overview.alerts = observer.alerts().alerts();
    let price = admin.rules.get().diagnostics.as_ref().and_then(|diagnostics| diagnostics.instance_hour_price);
    let shadows = observer.shadows();
    for variant in &mut overview.variants {
        variant.shadow = shadows.of(&variant.endpoint, &variant.variant, price);
    }
    drop(shadows);
    Json(overview)
}

impl Overview {
    fn of(admin: &AdminState, seen: &Seen, extent: &Extent) -> Overview {
        let topology = admin.fleet.topology();
        Overview {
            time: unix_seconds(SystemTime::now()),
            step_seconds: STEP.as_secs_f64(),
            ready: admin.fleet.is_ready(),
            draining: admin.draining.load(std::sync::atomic::Ordering::Acquire),
            endpoints: topology.endpoints().iter().map(|endpoint| EndpointOverview::of(endpoint, admin)).collect(),
            deployments: admin.deployments.as_ref().map(|deployments| deployments.under_way()).unwrap_or_default(),
            variants: topology
                .variants()
                .map(|variant| VariantOverview::of(variant, &admin.fleet, &seen.history, extent))
                .collect(),
            hot_prefixes: seen.prefixes.hottest(HOT_PREFIXES),
            requests: seen.requests.newest(extent.requests, &topology, admin.fleet.clock().now()),
            fleet_changes: seen.changes.newest(),
            alerts: Vec::new(),
        }
    }
}

impl EndpointOverview {
    fn of(endpoint: &Endpoint, admin: &AdminState) -> EndpointOverview {
        let whole: f64 = endpoint.variants().iter().map(|share| share.weight).sum();
        let overview = |share: &TrafficShare, shadow: bool| {
            let instances = share.variant.instances(admin.fleet.clock().now());
            ShareOverview {
                name: Arc::clone(share.variant.name()),
                traffic: if whole > 0.0 { share.weight / whole } else { 0.0 },
                strategy: share.variant.routing().strategy.name().as_str(),
                instances: instances.len(),
                available: instances.iter().filter(|one| one.availability == Availability::Up).count(),
                shadow,
            }
        };
        let shadow = endpoint.shadow().map(|share| overview(share, true));
        EndpointOverview {
            name: Arc::clone(endpoint.name()),
            managed: endpoint.owner() == Owner::Managed,
            variants: endpoint.variants().iter().map(|share| overview(share, false)).chain(shadow).collect(),
            components: endpoint.components().iter().map(|component| Arc::clone(&component.name)).collect(),
        }
    }
}

impl VariantOverview {
    fn of(variant: &Arc<Variant>, fleet: &Fleet, history: &History, extent: &Extent) -> VariantOverview {
        let nothing = VariantHistory::default();
        let history = history.of(variant.endpoint(), variant.name()).unwrap_or(&nothing);
        let quarter_hour = Figures::of(history.points(POINTS));
        let instances = variant.instances(fleet.clock().now());
        let served: Vec<InstanceCounts> = instances.iter().map(|one| served(history, one)).collect();
        let whole = Whole {
            requests: served.iter().map(|served| served.requests).sum(),
            weight: instances.iter().map(|one| Weight::get(one.weight)).sum(),
        };
        let overview_of = |(index, (one, served)): (usize, (&InstanceNow, &InstanceCounts))| {
            let points = if index < MOST_WITH_SERIES { extent.points } else { 0 };
            let series = InstanceSeries::of(history.instance(one.instance.serial(), points));
            InstanceOverview::of(fleet, one, served, &whole, series)
        };
        VariantOverview {
            endpoint: Arc::clone(variant.endpoint()),
            variant: Arc::clone(variant.name()),
            routing: RoutingOverview::of(&variant.routing()),
            in_flight: instances.iter().map(|one| u64::from(one.in_flight)).sum(),
            waiting: variant.waiting() as u64,
            minute: Figures::of(history.points(MINUTE)),
            quarter_hour,
            shadow: None,
            series: VariantSeries::of(history.points(extent.points)),
            instances: instances.iter().zip(&served).enumerate().map(overview_of).collect(),
        }
    }
}

/// What an instance's figures are a part of.
struct Whole {
    requests: u64,
    weight: f64,
}

fn served(history: &VariantHistory, one: &InstanceNow) -> InstanceCounts {
    let points = history.instance(one.instance.serial(), POINTS);
    points.iter().fold(InstanceCounts::default(), |mut sum, point| {
        sum.add(&point.counts);
        sum
    })
}

impl RoutingOverview {
    pub(crate) fn of(routing: &Routing) -> RoutingOverview {
        let concurrency_threshold = match routing.strategy {
            Strategy::PrefixAware(prefix_aware) => Some(prefix_aware.concurrency_threshold.get()),
            Strategy::Random | Strategy::RoundRobin | Strategy::LeastOutstandingRequests | Strategy::Adaptive => None,
        };
        RoutingOverview {
            strategy: routing.strategy.name().as_str(),
            prefix_length: routing.prefix_length().map(|length| length.get()),
            concurrency_threshold,
            rollout: routing.rollout.percent(),
        }
    }
}

impl InstanceOverview {
    fn of(
        fleet: &Fleet,
        one: &InstanceNow,
        served: &InstanceCounts,
        whole: &Whole,
        series: InstanceSeries,
    ) -> InstanceOverview {
        let (hit_rate, expected_hit_rate) = Rates::of_cache(served);
        InstanceOverview {
            status: InstanceStatus::of(one, fleet.clock().now()),
            share: share(served.requests, whole.requests),
            fair_share: one.weight.get() / whole.weight,
            requests: served.requests,
            hit_rate,
            expected_hit_rate,
            upstream_errors: served.upstream_errors,
            output_tokens: served.output_tokens,
            series,
        }
    }
}

impl VariantSeries {
    fn of<'p>(points: impl Iterator<Item = &'p VariantPoint>) -> VariantSeries {
        let mut series = VariantSeries::default();
        for point in points {
            series.push(point);
        }
        series
    }

    fn push(&mut self, point: &VariantPoint) {
        let (counts, rates) = (&point.counts, Rates::of(point));
        let requests: u64 = counts.decisions.iter().sum();
        self.time.push(point.time);
        self.requests_per_second.push(if point.seconds > 0.0 { requests as f64 / point.seconds } else { 0.0 });
        self.error_rate.push(rates.error_rate);
        self.spill_rate.push(rates.spill_rate);
        self.hit_rate.push(rates.hit_rate);
        self.expected_hit_rate.push(rates.expected_hit_rate);
        self.repeat_share.push(rates.repeat_share);
        for (cause, count) in SpillCause::ALL.iter().zip(counts.spills) {
            self.spills.entry(cause.as_str()).or_default().push(count);
        }
        for (outcome, histogram) in CacheOutcome::ALL.iter().zip(&counts.first_token) {
            let median = histogram.quantile(0.5).map(|seconds| seconds * 1_000.0);
            self.ttft_p50_ms.entry(outcome.as_str()).or_default().push(median);
        }
        self.in_flight.push(point.in_flight);
        self.waiting.push(point.waiting);
    }
}

impl InstanceSeries {
    fn of(points: Vec<&InstancePoint>) -> InstanceSeries {
        InstanceSeries {
            requests: points.iter().map(|point| point.counts.requests).collect(),
            in_flight: points.iter().map(|point| point.in_flight).collect(),
            hit_rate: points.iter().map(|point| Rates::of_cache(&point.counts).0).collect(),
            available: points.iter().map(|point| point.available).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
