//! `/api/endpoints/{endpoint}/variants/{variant}/routing`: another strategy, or other parameters, while it serves.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use isotherm_core::{
    ConcurrencyThreshold, OutOfRange, PrefixAware, PrefixLength, Rollout, Routing, Strategy, StrategyName,
};
use serde::Deserialize;

use super::overview::RoutingOverview;
use crate::admin::AdminState;
use crate::answer::Problem;

/// What to change; what is not named stays as it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    strategy: Option<String>,
    prefix_length: Option<u64>,
    concurrency_threshold: Option<u64>,
    rollout: Option<u64>,
}

/// A [`Change`] whose values can be.
#[derive(Debug, Clone, Copy)]
struct Checked {
    strategy: Option<StrategyName>,
    prefix_length: Option<PrefixLength>,
    concurrency_threshold: Option<ConcurrencyThreshold>,
    rollout: Option<Rollout>,
}

pub(crate) async fn change(
    State(state): State<AdminState>,
    Path((endpoint, variant)): Path<(String, String)>,
    body: Bytes,
) -> Result<Json<RoutingOverview>, Problem> {
    let change: Change =
        serde_json::from_slice(&body).map_err(|error| Problem::bad_request(format!("the body: {error}")))?;
    let checked = Checked::of(&change)?;
    let routing = state.fleet.set_routing(&endpoint, &variant, |routing| checked.apply(routing))?;
    Ok(Json(RoutingOverview::of(&routing)))
}

impl Checked {
    fn of(change: &Change) -> Result<Checked, Problem> {
        let outside = |error: OutOfRange| Problem::bad_request(error.to_string());
        let strategy = change.strategy.as_deref().map(str::parse).transpose();
        Ok(Checked {
            strategy: strategy
                .map_err(|error: isotherm_core::UnknownStrategy| Problem::bad_request(error.to_string()))?,
            prefix_length: change.prefix_length.map(PrefixLength::new).transpose().map_err(outside)?,
            concurrency_threshold: change
                .concurrency_threshold
                .map(ConcurrencyThreshold::new)
                .transpose()
                .map_err(outside)?,
            rollout: change.rollout.map(Rollout::new).transpose().map_err(outside)?,
        })
    }

    fn apply(self, routing: Routing) -> Routing {
        let present = match routing.strategy {
            Strategy::PrefixAware(rules) => rules,
            Strategy::Random | Strategy::RoundRobin | Strategy::LeastOutstandingRequests | Strategy::Adaptive => {
                PrefixAware::default()
            }
        };
        let rules = PrefixAware {
            prefix_length: self.prefix_length.unwrap_or(present.prefix_length),
            concurrency_threshold: self.concurrency_threshold.unwrap_or(present.concurrency_threshold),
            ..present
        };
        let strategy = match self.strategy.unwrap_or(routing.strategy.name()) {
            StrategyName::Random => Strategy::Random,
            StrategyName::RoundRobin => Strategy::RoundRobin,
            StrategyName::LeastOutstandingRequests => Strategy::LeastOutstandingRequests,
            StrategyName::PrefixAware => Strategy::PrefixAware(rules),
            StrategyName::Adaptive => Strategy::Adaptive,
        };
        Routing { strategy, rollout: self.rollout.unwrap_or(routing.rollout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(json: &str, routing: Routing) -> Routing {
        Checked::of(&serde_json::from_str(json).unwrap()).unwrap().apply(routing)
    }

    #[test]
    fn what_is_not_named_stays() {
        let routing = changed(r#"{"prefix_length":2000,"rollout":50}"#, Routing::default());
        let Strategy::PrefixAware(rules) = routing.strategy else { panic!("not PREFIX_AWARE") };
        assert_eq!((rules.prefix_length.get(), rules.concurrency_threshold.get()), (2_000, 10));
        let adaptive = changed(r#"{"strategy":"adaptive"}"#, routing);
        assert_eq!((adaptive.strategy, adaptive.rollout.percent()), (Strategy::Adaptive, 50));
        let back = changed(r#"{"strategy":"PREFIX_AWARE","concurrency_threshold":3}"#, adaptive);
        let Strategy::PrefixAware(rules) = back.strategy else { panic!("not PREFIX_AWARE") };
        assert_eq!((rules.prefix_length.get(), rules.concurrency_threshold.get()), (4_096, 3));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for json in [r#"{"strategy":"FASTEST"}"#, r#"{"prefix_length":0}"#, r#"{"rollout":101}"#] {
            assert!(Checked::of(&serde_json::from_str(json).unwrap()).is_err(), "{json}");
        }
        assert!(serde_json::from_str::<Change>(r#"{"prefix":1}"#).is_err());
    }
}
