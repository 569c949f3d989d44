//! Metrics as text: the OpenMetrics format where the scraper takes it, else the older Prometheus format.

use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;

/// What a scrape is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposition {
    /// The `content-type` header.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

/// The two text formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    OpenMetrics,
    Prometheus,
}

impl Format {
    /// The format that an `accept` header asks for. Scrapers that know OpenMetrics prefer it, so naming it is enough.
    pub(crate) fn accepted(accept: Option<&str>) -> Format {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => Format::OpenMetrics,
            _ => Format::Prometheus,
        }
    }
}

impl Exposition {
    pub(crate) fn of(registry: &Registry, format: Format) -> Exposition {
        let mut body = String::new();
        let (content_type, written) = match format {
            Format::OpenMetrics => {
                ("application/openmetrics-text; version=1.0.0; charset=utf-8", text::encode(&mut body, registry))
            }
            Format::Prometheus => (prometheus_text::CONTENT_TYPE, prometheus_text::encode(&mut body, registry)),
        };
        // Writing to memory does not fail; a metric that refuses to be written leaves out what follows it.
        if written.is_err() {
            tracing::error!("metrics could not be written whole");
        }
        Exposition { content_type, body }
    }
}
