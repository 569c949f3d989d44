//! `/api/doctor`: what is wrong with the router and its engines, and what helps.

use axum::Json;
use axum::extract::State;

use super::overview::Overlooked;
use crate::doctor::Checkup;

pub(crate) async fn checkup(State(overlooked): State<Overlooked>) -> Json<Checkup> {
    let Overlooked { admin, observer } = overlooked;
    Json(Checkup::of_router(&admin.config.load(), &admin.fleet, &observer.seen()))
}
