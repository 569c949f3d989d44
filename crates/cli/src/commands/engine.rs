//! `isotherm engine`: one emulated engine alone, for tests and for trying things out.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use isotherm_emulator::{ApiKey, EmulatorConfig};

use crate::exit::{Failure, Outcome};
use crate::fleet_of_engines::{EngineFlags, GRACE};
use crate::output;
use crate::signals::Termination;

/// Run one emulated engine alone
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  isotherm engine --port 9001
  isotherm engine --port 9002 --profile llama3.1-8b-tp1-bf16 --speed 10
  curl -X POST 127.0.0.1:9001/emulator/faults -d '{\"request\": {\"kind\": \"hang_before_head\"}}'

It answers like vLLM: chat, completions, responses, messages, embeddings, rerank, models, tokenize, metrics.
Its text means nothing; its scheduling, prefix cache and timing are modelled.")]
pub(crate) struct Arguments {
    /// Address to listen on
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,

    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 8000)]
    port: u16,

    /// Environment variable that holds a key which clients must send as bearer token
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,

    #[command(flatten)]
    engine: EngineFlags,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let api_key = arguments.api_key_env.as_deref().map(read_key).transpose()?;
    let listen = SocketAddr::new(arguments.host, arguments.port);
    let config = EmulatorConfig { listen, api_key, ..arguments.engine.config()? };
    let summary = config.summary();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::running("runtime", error))?;
    runtime.block_on(async {
        let mut termination = Termination::listen().map_err(|error| Failure::running("signals", error))?;
        let engine = isotherm_emulator::start(config).map_err(|error| Failure::running(listen, error))?;
        output::print(&format!("emulated engine  {summary}\nready http://{}\n", engine.address()))?;
        termination.wait().await;
        engine.shutdown(GRACE).await;
        Ok(())
    })
}

fn read_key(name: &str) -> Result<ApiKey, Failure> {
    match std::env::var(name) {
        Ok(key) if !key.is_empty() => Ok(ApiKey::new(key)),
        _ => Err(Failure::Usage(format!("--api-key-env {name}: the environment variable {name} is not set"))),
    }
}
