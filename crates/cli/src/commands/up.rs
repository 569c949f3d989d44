//! `isotherm up`: emulated engines, the router and the admin plane in one process, ready for a client.

use std::path::{Path, PathBuf};

use clap::Args;
use isotherm_config::{Aws, Config, EmulatedProvider, Environment, Overrides, Provider, ProviderRule};

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

    /// Keep what is created through SageMaker's API here [default: for as long as this runs]
    #[arg(long, value_name = "DIRECTORY", env = "ISOTHERM_DATA_DIR", help_heading = "SageMaker")]
    data_dir: Option<PathBuf>,

    #[command(flatten)]
    router: RouterFlags,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let engines = EngineFleet::start(&arguments.engine, arguments.engines)?;
    let mut setup = engines.setup(arguments.router.overrides())?;
    let kept = DataDir::of(arguments.data_dir)?;
    // Seeing why one missed is what it is for; `ISOTHERM_DIAGNOSTICS=false` is heard.
    if Environment::of_process().get("ISOTHERM_DIAGNOSTICS").is_none() {
        setup.config.diagnostics.get_or_insert_default();
    }
    setup.config.aws = Some(emulated(&arguments.engine, kept.path()));
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

Or as SageMaker, with the AWS CLI, boto3 and SDKs, for any credentials:

  export AWS_ENDPOINT_URL=http://{address} AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any
  aws sts get-caller-identity; aws sagemaker list-endpoints

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

/// Where the control plane keeps its state: in a directory of the user's, or in one that goes when this process does.
enum DataDir {
    Given(PathBuf),
    Temporary(tempfile::TempDir),
}

impl DataDir {
    fn of(given: Option<PathBuf>) -> Result<DataDir, Failure> {
        match given {
            Some(path) => Ok(DataDir::Given(path)),
            None => {
                let made = tempfile::Builder::new().prefix("isotherm-").tempdir();
                made.map(DataDir::Temporary).map_err(|error| Failure::running("temporary directory", error))
            }
        }
    }

    fn path(&self) -> &Path {
        match self {
            DataDir::Given(path) => path,
            DataDir::Temporary(directory) => directory.path(),
        }
    }
}

/// Every instance type is an emulated engine like those that are there already.
fn emulated(flags: &EngineFlags, data_dir: &Path) -> Aws {
    let EngineFlags { profile, speed, model, .. } = flags.clone();
    let engines = EmulatedProvider { profile, speed, model: Some(model) };
    Aws {
        providers: vec![ProviderRule::for_any(Provider::Emulated(engines))],
        ..Aws::in_directory(data_dir.to_owned())
    }
}

/// What `up` says beyond its flags: decisions are shown, since seeing them is what it is for.
pub(crate) fn with_decisions_shown(overrides: Overrides) -> Overrides {
    let said = Environment::of_process().get("ISOTHERM_EXPOSE_DECISIONS").is_some();
    Overrides { expose_decisions: (!said).then(|| "true".to_owned()), ..overrides }
}
