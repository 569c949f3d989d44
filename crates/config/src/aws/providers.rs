//! `aws.providers`: what stands behind an instance of an endpoint, by its type or its container's image.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use isotherm_tls::ClientTls;

use super::glob::Glob;
use crate::context::Context;
use crate::duration;
use crate::health::ProbePath;
use crate::instance_url::InstanceUrl;
use crate::instances::{ApiKey, api_key};
use crate::value::{number, parsed};
use crate::yaml::Located;

/// How long an engine may take to load its model, when nothing is said.
const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How long an engine may take to end after SIGTERM, when nothing is said.
const DEFAULT_STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Which instances a provider delivers, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderRule {
    /// The instance types that it is for; any when `None`.
    pub instance_type: Option<Glob>,
    /// The images of containers that it is for; any when `None`.
    pub image: Option<Glob>,
    /// What delivers them.
    pub provider: Provider,
}

impl ProviderRule {
    /// The rule for every instance that no rule before it fits.
    pub fn for_any(provider: Provider) -> ProviderRule {
        ProviderRule { instance_type: None, image: None, provider }
    }

    /// Whether the rule is for an instance of this type that runs a container of this image. A rule that names images
    /// is not for an instance without a container of its own.
    pub fn fits(&self, instance_type: &str, image: Option<&str>) -> bool {
        self.instance_type.as_ref().is_none_or(|types| types.matches(instance_type))
            && self.image.as_ref().is_none_or(|images| image.is_some_and(|image| images.matches(image)))
    }
}

/// What delivers instances.
#[derive(Debug, Clone, PartialEq)]
pub enum Provider {
    /// Emulated engines in this process.
    Emulated(EmulatedProvider),
    /// A program that is started for each.
    Process(ProcessProvider),
    /// Engines that run already.
    Static(StaticProvider),
}

/// Emulated engines in this process.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EmulatedProvider {
    /// The hardware and model whose times are emulated, as `isotherm engine --profile` names it; its default when
    /// absent.
    #[schemars(with = "String")]
    pub profile: Option<String>,
    /// How many times faster than the real thing; 1 when absent.
    #[serde(deserialize_with = "speed")]
    #[schemars(with = "f64", extend("exclusiveMinimum" = 0))]
    pub speed: Option<f64>,
    /// The model's name, when the endpoint's model does not say.
    #[schemars(with = "String")]
    pub model: Option<String>,
}

/// A program that is started for each instance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessProvider {
    /// The program and its arguments, without a shell. In each, `{port}` is replaced by the port to listen on
    /// (127.0.0.1), and `{model}`, `{image}`, `{endpoint}`, `{variant}` and `{instance}` by what the instance is for.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Environment variables beside the router's own and the container's, with the same replacements.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Where it runs; relative to the directory of this file, which it is when absent.
    #[serde(default)]
    #[schemars(with = "String")]
    pub working_directory: Option<PathBuf>,
    /// What is asked for to learn that it is ready: /health when absent.
    #[serde(default)]
    #[schemars(with = "ProbePath")]
    pub health_path: Option<ProbePath>,
    /// How long it may take to become ready; 30m when absent.
    #[serde(default = "start_timeout", with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub start_timeout: Duration,
    /// How long it may take to end after SIGTERM, before it is killed; 30s when absent.
    #[serde(default = "stop_timeout", with = "duration")]
    #[schemars(schema_with = "duration::schema")]
    pub stop_timeout: Duration,
}

/// Engines that run already and are taken in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticProvider {
    /// Where they are; at least one, each once.
    pub urls: Vec<InstanceUrl>,
    /// The key that they want from the router.
    pub api_key: Option<ApiKey>,
    /// `instances_tls`, for those of TLS.
    pub tls: Option<ClientTls>,
}

fn start_timeout() -> Duration {
    DEFAULT_START_TIMEOUT
}

fn stop_timeout() -> Duration {
    DEFAULT_STOP_TIMEOUT
}

fn speed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let checked = |speed: f64| {
        if speed.is_finite() && speed > 0.0 {
            Ok(speed)
        } else {
            Err(format!("a speed is a number above 0, not {speed}"))
        }
    };
    number(deserializer, checked).map(Some)
}

/// One of `emulated`, `process` and `static`, and what it is for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Provider", extend("oneOf" = [
    { "required": ["emulated"] }, { "required": ["process"] }, { "required": ["static"] }
]))]
pub(crate) struct ProviderElement {
    /// What it is for; everything that no entry before it is for, when absent.
    #[serde(default, rename = "match")]
    matching: MatchElement,
    /// Emulated engines in this process.
    #[serde(default)]
    #[schemars(with = "EmulatedProvider")]
    emulated: Option<EmulatedProvider>,
    /// A program that is started for each instance.
    #[serde(default)]
    #[schemars(with = "ProcessProvider")]
    process: Option<Located<ProcessProvider>>,
    /// Engines that run already.
    #[serde(default, rename = "static")]
    #[schemars(with = "StaticElement")]
    fixed: Option<Located<StaticElement>>,
}

/// What a provider is for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "ProviderMatch")]
struct MatchElement {
    /// Instance types, such as `ml.g5.*`; any when absent.
    #[schemars(with = "Glob")]
    instance_type: Option<Glob>,
    /// Images of containers, such as `*vllm*`; any when absent.
    #[schemars(with = "Glob")]
    image: Option<Glob>,
}

/// Engines that run already and are taken in turn.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StaticProvider")]
struct StaticElement {
    /// Where they are reached: http://HOST:PORT.
    #[schemars(with = "Vec<String>", length(min = 1))]
    urls: Vec<Located<UrlElement>>,
    /// The environment variable that holds the key for the engines.
    #[serde(default)]
    #[schemars(with = "String")]
    api_key_env: Option<Located<String>>,
}

#[derive(Debug)]
struct UrlElement(InstanceUrl);

impl<'de> Deserialize<'de> for UrlElement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UrlElement, D::Error> {
        parsed(deserializer).map(UrlElement)
    }
}

/// The rule, when the element's parts fit together.
pub(super) fn rule(element: Located<ProviderElement>, context: &mut Context<'_>) -> Option<ProviderRule> {
    let Located { value: ProviderElement { matching, emulated, process, fixed }, place } = element;
    let provider = match (emulated, process, fixed) {
        (Some(emulated), None, None) => Provider::Emulated(emulated),
        (None, Some(process), None) => Provider::Process(program(process, context)?),
        (None, None, Some(fixed)) => Provider::Static(running(fixed, context)?),
        _ => {
            context.refuse(place, "a provider is one of `emulated`, `process` and `static`");
            return None;
        }
    };
    Some(ProviderRule { instance_type: matching.instance_type, image: matching.image, provider })
}

fn program(element: Located<ProcessProvider>, context: &mut Context<'_>) -> Option<ProcessProvider> {
    let Located { value: mut process, place } = element;
    if process.command.first().is_none_or(String::is_empty) {
        context.refuse(place, "process.command needs a program");
        return None;
    }
    let mut texts = process.command.iter().chain(process.environment.values());
    if !texts.any(|text| text.contains("{port}")) {
        context.refuse(place, "process: `{port}` must stand in `command` or `environment`: each instance has its own");
        return None;
    }
    let directory = context.directory();
    process.working_directory = match process.working_directory {
        Some(path) => Some(directory.join(path)),
        None => Some(directory.to_owned()).filter(|path| !path.as_os_str().is_empty()),
    };
    Some(process)
}

fn running(element: Located<StaticElement>, context: &mut Context<'_>) -> Option<StaticProvider> {
    let Located { value: StaticElement { urls, api_key_env }, place } = element;
    if urls.is_empty() {
        context.refuse(place, "static.urls needs at least one URL");
        return None;
    }
    let mut known: Vec<InstanceUrl> = Vec::new();
    for Located { value: UrlElement(url), place } in urls {
        if known.contains(&url) {
            context.refuse(place, format!("{url} is given a second time"));
        } else {
            known.push(url);
        }
    }
    let api_key = match api_key_env {
        Some(variable) => Some(api_key(&variable, context)?),
        None => None,
    };
    Some(StaticProvider { urls: known, api_key, tls: context.instances_tls.clone() })
}
