//! The one configuration: a YAML file, overridden by the environment, overridden by flags, parsed into types that are
//! valid by construction. What is wrong is told with its place and what would be right, and all of it at once.
//!
//! Each element of the file has its module, which holds both how it is written and what it means; the JSON Schema is
//! generated from the same types.

mod access_log;
mod address;
mod admin;
mod alerts;
mod allow_paths;
mod auth;
mod aws;
mod byte_size;
mod context;
mod diagnostics;
mod dns_name;
mod duration;
mod endpoints;
mod engine_metrics;
mod environment;
mod file;
mod guards;
mod hash_seed;
mod health;
mod instance_url;
mod instances;
mod keys;
mod limits;
mod load;
mod name;
mod otlp;
mod overrides;
mod problem;
mod routing;
mod schema;
mod suggest;
mod timeouts;
mod tls;
mod value;
mod warnings;
mod yaml;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use isotherm_core::HashSeed;
pub use isotherm_tls::{ClientTls, ServerTls};

pub use access_log::{AccessLogError, AccessLogTarget};
pub use address::AddressError;
pub use admin::Admin;
pub use alerts::{
    Above, Alerts, CacheRule, DisagreementRule, FirstTokenRule, HitRateRule, HotPrefixRule, IllRule, OffRule,
    RestartRule, WebhookUrl, WebhookUrlError,
};
pub use allow_paths::{AllowedPath, AllowedPathError};
pub use auth::Auth;
pub use aws::{
    AccountId, AccountIdError, Aws, EmulatedProvider, Glob, GlobError, ProcessProvider, Provider, ProviderRule, Quotas,
    Region, RegionError, StaticProvider,
};
pub use byte_size::ByteSizeError;
pub use diagnostics::Diagnostics;
pub use dns_name::{DnsName, DnsNameError, HostName, Records};
pub use duration::DurationError;
pub use endpoints::{Endpoint, TrafficWeight, TrafficWeightError, Variant};
pub use engine_metrics::EngineMetrics;
pub use environment::Environment;
pub use guards::{Guards, MediaUrls};
pub use health::{Health, ProbePath, ProbePathError};
pub use instance_url::{Host, InstanceUrl, Scheme, UrlError};
pub use instances::{ApiKey, IdError, InstanceEntry, InstanceSource};
pub use keys::{KeyHolder, KeyName, KeyNameError, KeyRing, NewKey, NewSigningKey, SigningKey};
pub use limits::{Limits, Queue};
pub use name::{Name, NameError};
pub use otlp::Otlp;
pub use overrides::Overrides;
pub use problem::{ConfigError, Origin, Place, Problem};
pub use schema::schema;
pub use timeouts::Timeouts;
pub use warnings::CERTIFICATE_ENDS_SOON;

/// Everything that a router is told; made by [`Config::load`].
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where the data plane listens.
    pub listen: SocketAddr,
    /// TLS of the data plane; in the clear when `None`.
    pub tls: Option<ServerTls>,
    /// The admin plane.
    pub admin: Admin,
    /// Who may call the data plane.
    pub auth: Auth,
    /// Separates the key space of this router from others'; 0 when nothing is said.
    pub hash_seed: HashSeed,
    /// Whether responses tell the decision in `x-isotherm-*` headers.
    pub expose_decisions: bool,
    /// Whether the router asks for the token counts of streams whose client does not, and takes them out again.
    pub inject_include_usage: bool,
    /// Whether the requests of each key carry a `cache_salt` of its tenant to the engine.
    pub inject_cache_salt: bool,
    /// Further paths that pass to the default endpoint.
    pub allow_paths: Vec<AllowedPath>,
    /// Where the line of each finished request goes.
    pub access_log: AccessLogTarget,
    /// Whether its lines have the prompts as hashes, too.
    pub access_log_prompts: bool,
    /// What is kept of the last requests; nothing when `None`.
    pub diagnostics: Option<Diagnostics>,
    /// Where traces and metrics are sent; nowhere when `None`.
    pub otlp: Option<Otlp>,
    /// How long the router waits, and for what.
    pub timeouts: Timeouts,
    /// How much the router takes in before it refuses.
    pub limits: Limits,
    /// What requests may not ask engines for.
    pub guards: Guards,
    /// TLS to instances with an `https://` URL that say nothing of their own; as this machine does it when `None`.
    pub instances_tls: Option<ClientTls>,
    /// What the router itself warns of.
    pub alerts: Alerts,
    /// At least one unless `aws` is there; the first is the default one.
    pub endpoints: Vec<Endpoint>,
    /// SageMaker's control plane; none when `None`.
    pub aws: Option<Aws>,
}

impl Config {
    /// Where the data plane listens when nothing is said.
    pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
}

#[cfg(test)]
mod tests;
