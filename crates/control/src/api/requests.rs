//! `/api/requests`: the last requests, and why each hit or missed.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use isotherm_telemetry::{AccessLogEntry, TracedRequest};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::admin::AdminState;
use crate::answer::Problem;
use crate::diagnosis::{self, Diagnosis};

/// How many requests are told at once.
const MOST: usize = 200;

/// How many of the last requests are to be told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Extent {
    limit: usize,
    /// Only those with this verdict.
    verdict: Option<diagnosis::Verdict>,
}

impl Default for Extent {
    fn default() -> Extent {
        Extent { limit: 20, verdict: None }
    }
}

/// The last requests.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    /// Whether requests are kept at all.
    on: bool,
    /// How many are.
    kept: usize,
    /// How many were not since it was turned on: more came in a second than are taken.
    missed: u64,
    /// Newest first.
    requests: Vec<Diagnosis>,
}

pub(crate) async fn list(
    State(state): State<AdminState>,
    Query(extent): Query<Extent>,
) -> Result<Json<Listed>, Problem> {
    let kept = kept(&state);
    let (on, missed) = (state.metrics.traces().is_on(), state.metrics.traces().missed());
    let listed = off_the_runtime(move || {
        let newest = (0..kept.len()).rev().map(|at| diagnosis::diagnose(&kept[..at], &kept[at]));
        let wanted = |one: &Diagnosis| extent.verdict.is_none_or(|verdict| verdict == one.verdict);
        let requests = newest.take(MOST * 5).filter(wanted).take(extent.limit.min(MOST)).collect();
        Listed { on, kept: kept.len(), missed, requests }
    });
    listed.await.map(Json)
}

pub(crate) async fn show(State(state): State<AdminState>, Path(id): Path<String>) -> Result<Json<Diagnosis>, Problem> {
    if !state.metrics.traces().is_on() {
        return Err(off());
    }
    let (kept, asked) = (kept(&state), id.clone());
    let found = off_the_runtime(move || diagnosis::of_id(&kept, &asked)).await?;
    let missing = || {
        let message = format!(
            "no request {id:?} is kept; allowed: an x-request-id or a response's id of the last requests, as /api/requests \
             lists them"
        );
        Problem::new(StatusCode::NOT_FOUND, message)
            .made_of(json!({ "kind": "request_not_kept", "values": { "id": id } }))
    };
    found.map(Json).ok_or_else(missing)
}

/// The last requests in the form of the access log, oldest first: what `isotherm analyze --router` reads.
pub(crate) async fn log(State(state): State<AdminState>) -> Result<Response, Problem> {
    if !state.metrics.traces().is_on() {
        return Err(off());
    }
    let lines = off_the_runtime(move || log_of(&state)).await?;
    Ok(([(header::CONTENT_TYPE, "application/jsonl")], lines).into_response())
}

/// What can be found out from the last requests, as `isotherm analyze` does from a log of them.
pub(crate) async fn analysis(State(state): State<AdminState>) -> Result<Response, Problem> {
    if !state.metrics.traces().is_on() {
        return Err(off());
    }
    let Some(analyst) = state.analyst.clone() else {
        return Err(Problem::new(StatusCode::NOT_IMPLEMENTED, "this router cannot analyse its own requests"));
    };
    let found = off_the_runtime(move || analyst.analyse(log_of(&state), state.metrics.traces().missed())).await?;
    let unfit = |why: String| Problem::new(StatusCode::CONFLICT, why).made_of(json!({ "kind": "not_analysed" }));
    found.map(|json| ([(header::CONTENT_TYPE, "application/json")], json).into_response()).map_err(unfit)
}

fn log_of(state: &AdminState) -> Vec<u8> {
    let seed = state.rules.get().hash_seed;
    let mut lines = Vec::new();
    for request in kept(state) {
        if let Some(entry) = AccessLogEntry::of_traced(&request, seed) {
            entry.write_line(&mut lines);
        }
    }
    lines
}

fn kept(state: &AdminState) -> Vec<Arc<TracedRequest>> {
    state.metrics.traces().since(0).requests
}

fn off() -> Problem {
    let message = "diagnostics are off: `diagnostics: {}` in the configuration, or --diagnostics, turns them on";
    Problem::new(StatusCode::CONFLICT, message).made_of(json!({ "kind": "diagnostics_off" }))
}

/// Compares some thousand prompts without holding anybody else up.
async fn off_the_runtime<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}
