//! `isotherm explain`: where a request goes and why, without sending it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use hyper::Method;
use isotherm_config::{Config, Environment, Overrides};
use isotherm_control::Diagnosis;
use isotherm_fleet::{Clock, Fleet};
use isotherm_proxy::{Explanation, Question, Rules};
use isotherm_telemetry::Metrics;

use crate::admin_client::{AdminClient, AdminFlags, segment};
use crate::exit::{Failure, Outcome};
use crate::output;

/// Explain where a request goes and why, without sending it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  isotherm explain --config isotherm.yaml request.json      by a configuration, as if nothing were in flight
  isotherm explain request.json                             by the running router, as things stand there
  isotherm explain --path /invocations body.bin
  isotherm explain --request 4f0c…                          why a finished request hit or missed
  curl -s … | isotherm explain --config isotherm.yaml -")]
pub(crate) struct Arguments {
    /// The request's body; - reads standard input
    #[arg(required_unless_present = "finished")]
    body: Option<PathBuf>,

    /// Explain a request that the running router has answered, by its x-request-id or its response's id: what was cached
    /// and why not the rest. Needs `diagnostics`
    #[arg(long = "request", value_name = "ID", conflicts_with_all = ["body", "config", "path", "tenant_id"])]
    finished: Option<String>,

    /// Explain by this configuration instead of asking a running router
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The path that the request would be sent to [default: by what the body holds, and printed]
    #[arg(long, value_name = "PATH")]
    path: Option<String>,

    /// Its X-Amzn-SageMaker-Prefix-Aware-Id header
    #[arg(long, value_name = "ID")]
    tenant_id: Option<String>,

    /// Print the explanation as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    if let Some(id) = &arguments.finished {
        return finished(id, &arguments);
    }
    let body = arguments.body.as_deref().map(read).transpose()?.unwrap_or_default();
    let explanation = match &arguments.config {
        Some(file) => by_configuration(file, &arguments, &body)?,
        None => by_router(&arguments, body)?,
    };
    if arguments.json { output::print_json(&explanation) } else { output::print(&explanation.to_string()) }
}

/// Why a finished request hit or missed.
fn finished(id: &str, arguments: &Arguments) -> Outcome {
    let path = format!("/api/requests/{}", segment(id));
    let answer = AdminClient::new(&arguments.admin)?.call(Method::GET, &path, None)?;
    if arguments.json {
        return output::print_json(&answer);
    }
    let diagnosis: Diagnosis =
        serde_json::from_value(answer).map_err(|error| Failure::running("the router's answer", error))?;
    output::print(&diagnosis.to_string())
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = if path == Path::new("-") {
        let mut body = Vec::new();
        std::io::stdin().lock().read_to_end(&mut body).map(|_| body)
    } else {
        std::fs::read(path)
    };
    read.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

fn by_configuration(file: &Path, arguments: &Arguments, body: &[u8]) -> Result<Explanation, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let config = Config::load(Some(file), &Environment::of_process(), &Overrides::default());
    let config = config.map_err(|error| usage(&error))?;
    // The clock of a fleet is tokio's.
    let runtime = crate::router::control_runtime()?;
    let _inside = runtime.enter();
    let fleet = Fleet::new(&config, Arc::new(Metrics::new(env!("CARGO_PKG_VERSION"))), Clock::start());
    let question =
        Question { path: arguments.path.as_deref(), body, tenant_id: arguments.tenant_id.as_deref(), tenant: None };
    isotherm_proxy::explain(&fleet, &Rules::of(&config), &question).map_err(|error| usage(&error))
}

fn by_router(arguments: &Arguments, body: Vec<u8>) -> Result<Explanation, Failure> {
    let given = [("path", &arguments.path), ("tenant_id", &arguments.tenant_id)];
    let query: Vec<String> =
        given.iter().filter_map(|(key, value)| Some(format!("{key}={}", segment(value.as_ref()?)))).collect();
    let path = format!("/api/explain?{}", query.join("&"));
    let answer = AdminClient::new(&arguments.admin)?.send(Method::POST, &path, Bytes::from(body))?;
    serde_json::from_value(answer).map_err(|error| Failure::running("the router's answer", error))
}
