//! `isotherm up`: emulated engines, the router and the admin plane in one process, ready for a client.

use clap::Args;
use isotherm_config::{Config, Environment, Overrides};

use crate::commands::serve::{describe, until_terminated};
use crate::exit::{Failure, Outcome};
use crate::flags::RouterFlags;
use crate::fleet_of_engines::{EngineFlags, EngineFleet};
use crate::output;
use crate::router::{Router, control_runtime};
use crate::signals::Termination;

/// Start emulated engines, the router and the admin plane, ready for a client
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  isotherm up
  isotherm up --engines 8 --profile llama3.1-8b-tp1-bf16 --speed 5
  isotherm up --strategy random                            what a plain load balancer does
  isotherm up --prefix-length 1024 --concurrency-threshold 2")]
pub(crate) struct Arguments {
    /// How many emulated engines
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000),
          help_heading = "Engines")]
    engines: u16,

    #[command(flatten)]
    engine: EngineFlags,

    #[command(flatten)]
    router: RouterFlags,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let engines = EngineFleet::start(&arguments.engine, arguments.engines)?;
    let setup = engines.setup(arguments.router.overrides())?;
    let config = setup.config.clone();
    control_runtime()?.block_on(async {
        let termination = Termination::listen().map_err(|error| Failure::running("signals", error))?;
        let router = Router::start(setup).await?;
        output::print(&banner(&config, &router, &engines, &arguments.engine.model))?;
        until_terminated(termination, router).await?;
        engines.stop().await;
        Ok(())
    })
}

fn banner(config: &Config, router: &Router, engines: &EngineFleet, model: &str) -> String {
    let strategy = describe(config.endpoints[0].variants[0].routing.strategy);
    let listed: Vec<String> = engines.instances().map(|(id, url)| format!("            {id:<14} {url}")).collect();
    let (address, admin) = (router.address(), router.admin_address());
    format!(
        r#"isotherm {version}

  engines   {count} emulated: {summary}
{listed}
  routing   {strategy}
  admin     http://{admin}  (metrics at /metrics; token in {token})

Ask something, twice, and see x-isotherm-instance stay and cached_tokens grow:

  curl -si http://{address}/v1/chat/completions -H 'content-type: application/json' -d '{{
    "model": "{model}", "max_tokens": 40,
    "messages": [{{"role": "system", "content": "You are a helpful assistant."}}, {{"role": "user", "content": "Hello!"}}]}}'

Or with openai-python:

  from openai import OpenAI
  client = OpenAI(base_url="http://{address}/v1", api_key="any")
  for chunk in client.chat.completions.create(model="{model}", max_tokens=40, stream=True,
          messages=[{{"role": "user", "content": "Hello!"}}]):
      print(chunk.choices[0].delta.content or "", end="", flush=True)

admin http://{admin}
ready http://{address}
"#,
        version = env!("CARGO_PKG_VERSION"),
        count = listed.len(),
        summary = engines.summary(),
        listed = listed.join("\n"),
        token = router.token_path().display(),
    )
}

/// What `up` says beyond its flags: decisions are shown, since seeing them is what it is for.
pub(crate) fn with_decisions_shown(overrides: Overrides) -> Overrides {
    let said = Environment::of_process().get("ISOTHERM_EXPOSE_DECISIONS").is_some();
    Overrides { expose_decisions: (!said).then(|| "true".to_owned()), ..overrides }
}
