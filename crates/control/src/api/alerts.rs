//! `/api/alerts`: what the router itself warns of.

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::overview::Overlooked;
use crate::alerts::Alert;

/// The answer.
#[derive(Debug, Serialize)]
pub(crate) struct Alerts {
    /// Those that fire, longest first, then those that have not held for long enough.
    alerts: Vec<Alert>,
}

pub(crate) async fn alerts(State(overlooked): State<Overlooked>) -> Json<Alerts> {
    Json(Alerts { alerts: overlooked.observer.alerts().alerts() })
}
