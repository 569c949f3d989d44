//! The configuration file as it is written: every key that may stand at its top.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::access_log::AccessLogTarget;
use crate::address;
use crate::admin::{AdminElement, ListenAddress};
use crate::alerts::Alerts;
use crate::allow_paths::AllowedPath;
use crate::auth::AuthElement;
use crate::aws::AwsElement;
use crate::diagnostics::Diagnostics;
use crate::endpoints::EndpointElement;
use crate::guards::Guards;
use crate::limits::Limits;
use crate::otlp::Otlp;
use crate::timeouts::Timeouts;
use crate::tls::{InstancesTlsElement, TlsElement};
use crate::yaml::Located;

/// The configuration of an Isotherm router.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "Isotherm")]
pub(crate) struct File {
    /// Address and port of the data plane; 127.0.0.1:8080 when absent. Beyond loopback only with `auth`.
    #[schemars(schema_with = "address::schema")]
    pub(crate) listen: Option<Located<ListenAddress>>,
    /// TLS of the data plane; in the clear when absent.
    #[schemars(with = "TlsElement")]
    pub(crate) tls: Option<Located<TlsElement>>,
    /// The admin plane: metrics, health, changes of the fleet.
    pub(crate) admin: AdminElement,
    /// Who may call: a mapping with `keys_file`, or `none` for anyone.
    #[schemars(with = "AuthElement")]
    pub(crate) auth: Option<Located<AuthElement>>,
    /// Separates the key space of this router from others'; routers with one seed agree on every prefix's home. Set it
    /// from a secret (`hash_seed_env`, `hash_seed_file`) where clients are not trusted.
    #[schemars(with = "u64")]
    pub(crate) hash_seed: Option<Located<u64>>,
    /// The environment variable that holds the seed, in place of `hash_seed`: a number, or any other text, which is
    /// hashed.
    #[schemars(with = "String")]
    pub(crate) hash_seed_env: Option<Located<String>>,
    /// The file that holds the seed, in place of `hash_seed`; relative to the directory of this file.
    #[schemars(with = "String")]
    pub(crate) hash_seed_file: Option<Located<PathBuf>>,
    /// Whether responses tell the decision in `x-isotherm-*` headers.
    pub(crate) expose_decisions: bool,
    /// Whether the router asks for the token counts of streams whose client does not (`stream_options.include_usage`),
    /// and takes them out again: so it learns the hit rate of every stream.
    pub(crate) inject_include_usage: bool,
    /// Whether the requests of each key carry a `cache_salt` of its tenant to the engine, so that no two tenants share
    /// its cache. For engines that know the field: vLLM, SGLang.
    pub(crate) inject_cache_salt: bool,
    /// Further paths that pass to the default endpoint: /path, or /path/* for all paths below.
    pub(crate) allow_paths: Vec<AllowedPath>,
    /// Where the line of each finished request goes: `off`, `stderr`, or a file's path with a slash in it, relative to
    /// the directory of this file.
    #[schemars(extend("default" = "off"))]
    pub(crate) access_log: AccessLogTarget,
    /// Whether its lines have the prompts as hashes, keyed with the hash seed, for `isotherm analyze`: some kilobytes a
    /// line.
    pub(crate) access_log_prompts: bool,
    /// What is kept of the last requests, as hashes: for `isotherm explain --request`, shadow strategies and `isotherm
    /// analyze --router`. Off when absent; `{}` turns it on.
    #[schemars(with = "Diagnostics")]
    pub(crate) diagnostics: Option<Diagnostics>,
    /// How long the router waits, and for what.
    pub(crate) timeouts: Timeouts,
    /// How much the router takes in before it refuses.
    pub(crate) limits: Limits,
    /// The most that a request may ask an engine for.
    pub(crate) guards: Guards,
    /// TLS to instances with an `https://` URL; without it, their certificates are checked as this machine does it.
    #[schemars(with = "InstancesTlsElement")]
    pub(crate) instances_tls: Option<Located<InstancesTlsElement>>,
    /// What the router itself warns of, and whom it tells.
    pub(crate) alerts: Alerts,
    /// Where traces and metrics are sent in OpenTelemetry's protocol; nowhere when absent. Read at start.
    #[schemars(with = "Otlp")]
    pub(crate) otlp: Option<Otlp>,
    /// What clients call by name; the first is the default one.
    pub(crate) endpoints: Vec<Located<EndpointElement>>,
    /// SageMaker's control plane: models, endpoints and what else is made through AWS's APIs; none when absent.
    #[schemars(with = "AwsElement")]
    pub(crate) aws: Option<AwsElement>,
}
