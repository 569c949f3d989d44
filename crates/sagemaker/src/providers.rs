//! Providers decide what an instance is: a process, an engine that runs already, an emulated one.

mod call;
pub mod process;
mod ready;
pub mod selection;
pub mod stationary;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use isotherm_config::{ApiKey, ClientTls, InstanceUrl, ProbePath};
use tokio::sync::watch;

pub use self::call::{CallError, call};
pub use self::process::ProcessProvider;
pub use self::selection::{NoProvider, Providers};
pub use self::stationary::StaticProvider;

/// Where containers for language models are told which model to serve, in the order in which they are believed.
const MODEL_VARIABLES: [&str; 5] =
    ["SM_VLLM_SERVED_MODEL_NAME", "SM_VLLM_MODEL", "HF_MODEL_ID", "OPTION_MODEL_ID", "MODEL_ID"];

/// The model that a container's environment names, and the variable that does.
pub(crate) fn named_model(environment: &BTreeMap<String, String>) -> Option<(&'static str, &str)> {
    let named = |name: &&'static str| Some((*name, environment.get(*name)?.as_str()));
    MODEL_VARIABLES.iter().filter_map(named).find(|(_, model)| !model.is_empty())
}

/// What is to be started: an instance of a variant, or a copy of an inference component.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceOrder {
    /// Names it among everything that was ever ordered; letters, digits, hyphens and dots.
    pub key: String,
    /// The endpoint's name.
    pub endpoint: String,
    /// The variant's name.
    pub variant: String,
    /// The id under which requests are routed to it.
    pub instance: String,
    /// The kind of instance that was asked for.
    pub instance_type: String,
    /// The image of the container, where there is one.
    pub image: Option<String>,
    /// The model that it shall serve, as far as the endpoint says.
    pub model: Option<String>,
    /// Where the model's data lies, where that was said.
    pub model_data: Option<String>,
    /// The container's environment.
    pub environment: BTreeMap<String, String>,
    /// How long it may take until it answers; the provider's own bound when `None`.
    pub start_timeout: Option<Duration>,
    /// Where it was reached before this process started, if it was there already.
    pub previous: Option<InstanceUrl>,
}

/// How an ordered instance stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// It is coming, or coming back.
    Starting,
    /// It answers.
    Running(Reached),
    /// It will not come. The text says why and what to do, for `FailureReason`.
    Failed(String),
}

/// Where a running instance is reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    /// Its URL.
    pub url: InstanceUrl,
    /// The key that it wants.
    pub api_key: Option<ApiKey>,
    /// TLS to it, where its URL is one of TLS.
    pub tls: Option<ClientTls>,
    /// What its probes ask for, where that is not found out by trying.
    pub health: Option<ProbePath>,
}

/// Something that is done when it resolves.
pub type Doing<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Makes instances.
pub trait Provider: Send + Sync + fmt::Debug {
    /// Begins to start an instance; what comes of it shows in the receiver, for as long as the instance is not stopped.
    ///
    /// An order for a key that is there already changes nothing.
    fn start(&self, order: InstanceOrder) -> watch::Receiver<Standing>;

    /// Ends an instance; resolves when nothing of it is left. Unknown keys are ended already.
    fn stop(&self, key: String) -> Doing<'_>;

    /// Ends what an earlier life of this process left running and nobody wants: all but these keys.
    fn retain(&self, wanted: &HashSet<String>) -> Doing<'_>;

    /// Ends everything, since this process ends.
    fn shutdown(&self) -> Doing<'_>;

    /// Whether engines load adapters while they run, by vLLM's `POST /v1/load_lora_adapter`.
    fn loads_adapters(&self) -> bool {
        true
    }
}
