//! CloudWatch's PromQL paths, which say what to use in their place.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};

/// In the form of Prometheus' API, so that Grafana and others show the sentence.
pub(crate) fn refusal() -> Response<Bytes> {
    let body = serde_json::json!({
        "status": "error",
        "errorType": "unavailable",
        "error": "Isotherm does not evaluate PromQL: let a Prometheus scrape /metrics of the router's admin plane (at \
                  admin.listen of its configuration, or --admin-port) and query that Prometheus; or use GetMetricData.",
    });
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
