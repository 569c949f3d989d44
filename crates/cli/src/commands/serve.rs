//! `isotherm serve`: the router in front of real engines.

use std::path::PathBuf;

use clap::Args;
use isotherm_config::{Config, Environment, InstanceSource, Overrides};
use isotherm_core::Strategy;

use crate::exit::{Failure, Outcome};
use crate::flags::RouterFlags;
use crate::output;
use crate::router::{Router, Setup, control_runtime};
use crate::signals::Termination;

/// Put the router in front of running engines
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  isotherm serve --instance http://10.0.0.1:8000 --instance http://10.0.0.2:8000
  isotherm serve --config isotherm.yaml
  isotherm serve --config isotherm.yaml --host 0.0.0.0 --keys-file /etc/isotherm/keys

Flags override environment variables (ISOTHERM_ and the flag's name: ISOTHERM_PREFIX_LENGTH), which override the file.
The file is read again when it changes or on SIGHUP. Ctrl-C or SIGTERM lets requests under way finish; a second one
does not.")]
pub(crate) struct Arguments {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// An engine, as [ID=]http://HOST:PORT or https://…; repeat for each
    #[arg(long = "instance", value_name = "URL")]
    instances: Vec<String>,

    /// The same, several at once, as vllm-router and sglang-router spell it
    #[arg(long, value_name = "URL", num_args = 1..)]
    worker_urls: Vec<String>,

    /// random or round_robin, as vllm-router and sglang-router spell --strategy
    #[arg(long, value_name = "POLICY", conflicts_with = "strategy", value_parser = policy)]
    policy: Option<String>,

    /// Address of the data plane [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", help_heading = "Listeners")]
    host: Option<String>,

    /// Address of the admin plane [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", help_heading = "Listeners")]
    admin_host: Option<String>,

    /// Let in only clients with a key of this file, one a line as made by `isotherm config key`
    #[arg(long, value_name = "FILE", help_heading = "Access", conflicts_with = "auth")]
    keys_file: Option<String>,

    /// `none` lets anyone in, also beyond loopback
    #[arg(long, value_name = "none", help_heading = "Access")]
    auth: Option<String>,

    /// Where a line of JSON for each request goes: off, stderr or a file's path [default: off]
    #[arg(long, value_name = "TARGET", help_heading = "Observation")]
    access_log: Option<String>,

    /// Tell each decision in the response headers x-isotherm-instance, -reason, -home, -key
    #[arg(long, help_heading = "Observation")]
    expose_decisions: bool,

    /// Keep the last requests as hashes, for `explain --request`, shadow strategies and `analyze --router`
    #[arg(long, help_heading = "Observation")]
    diagnostics: bool,

    #[command(flatten)]
    router: RouterFlags,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let file = arguments.config.clone();
    let overrides = arguments.overrides();
    let config = Config::load(file.as_deref(), &Environment::of_process(), &overrides)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let setup = Setup { config: config.clone(), file: file.map(|path| (path, overrides)), started: Vec::new() };
    control_runtime()?.block_on(async {
        let termination = Termination::listen().map_err(|error| Failure::running("signals", error))?;
        let router = Router::start(setup).await?;
        output::print(&banner(&config, &router))?;
        until_terminated(termination, router).await
    })
}

/// Serves until asked to stop, then drains; a second signal ends it at once.
pub(crate) async fn until_terminated(mut termination: Termination, router: Router) -> Outcome {
    termination.wait().await;
    eprintln!(
        "draining: requests under way finish, new ones are refused (after timeouts.shutdown_delay); once more to stop at once"
    );
    router.drain(termination.wait()).await;
    Ok(())
}

impl Arguments {
    fn overrides(self) -> Overrides {
        let mut instances = self.instances;
        instances.extend(self.worker_urls);
        let routing = self.router.overrides();
        Overrides {
            instances,
            strategy: self.policy.or(routing.strategy.clone()),
            host: self.host,
            admin_host: self.admin_host,
            keys_file: self.keys_file,
            auth: self.auth,
            access_log: self.access_log,
            expose_decisions: self.expose_decisions.then(|| "true".to_owned()),
            diagnostics: self.diagnostics.then(|| "true".to_owned()),
            ..routing
        }
    }
}

/// Other routers' policies, where the meaning is equal.
fn policy(word: &str) -> Result<String, String> {
    match word {
        "random" | "round_robin" => Ok(word.to_owned()),
        "cache_aware" | "prefix_hash" | "consistent_hashing" | "consistent_hash" => {
            Err(format!("{word} decides differently from anything here; --strategy prefix-aware serves the same end"))
        }
        "power_of_two" => Err("use --strategy least-outstanding-requests, which looks at all instances".to_owned()),
        _ => Err("allowed: random, round_robin; --strategy knows more".to_owned()),
    }
}

fn banner(config: &Config, router: &Router) -> String {
    let mut lines = Vec::new();
    for endpoint in &config.endpoints {
        for variant in &endpoint.variants {
            let strategy = describe(variant.routing.strategy);
            lines.push(format!("  variant   {}/{}: {strategy}", endpoint.name, variant.name));
            lines.extend(variant.instances.iter().map(|entry| format!("            {}", source(&entry.source))));
        }
    }
    if let Some(aws) = &config.aws {
        let (account, kept) = (&aws.account_id, aws.data_dir.display());
        lines.push(format!("  aws       SageMaker's control plane of account {account}, kept in {kept}"));
    }
    format!(
        "isotherm {}\n\n{}\n  admin     {}://{}  (metrics at /metrics; token in {})\n\nready {}://{}\n",
        env!("CARGO_PKG_VERSION"),
        lines.join("\n"),
        scheme(config.admin.tls.is_some()),
        router.admin_address(),
        router.token_path().display(),
        scheme(config.tls.is_some()),
        router.address(),
    )
}

fn scheme(within_tls: bool) -> &'static str {
    if within_tls { "https" } else { "http" }
}

fn source(source: &InstanceSource) -> String {
    match source {
        InstanceSource::Url { id, url } if id.as_str() == url.to_string() => id.to_string(),
        InstanceSource::Url { id, url } => format!("{id:<14} {url}"),
        InstanceSource::Dns { name, .. } => format!("{name}  (resolved again and again)"),
    }
}

/// A strategy and its parameters, in words.
pub(crate) fn describe(strategy: Strategy) -> String {
    match strategy {
        Strategy::PrefixAware(rules) => format!(
            "PREFIX_AWARE by the first {} characters, spilling at {} in flight",
            rules.prefix_length.get(),
            rules.concurrency_threshold.get()
        ),
        other => other.name().to_string(),
    }
}
