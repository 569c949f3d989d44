//! What the data plane is told by the configuration: the part that stands for its life, and the part that a reload
//! changes.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use isotherm_config::{
    AccountId, AllowedPath, Auth, Config, Diagnostics, KeyRing, Limits, Region, ServerTls, Timeouts,
};
use isotherm_core::HashSeed;
use isotherm_wire::guard::{Guards, MediaUrls};

/// Everything that the data plane is told when it starts.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens; port 0 takes any free one.
    pub listen: SocketAddr,
    /// A socket that listens already; then all threads share it, and it goes on listening when they have ended.
    pub inherited: Option<Arc<TcpListener>>,
    /// How many threads serve; 0 for one per core.
    pub threads: usize,
    /// Where inputs and answers of asynchronous invocations lie; `None`: none are accepted.
    pub async_dir: Option<PathBuf>,
    /// What a reload may change.
    pub rules: Rules,
}

/// What a reload may change. A request keeps the rules under which it arrived.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The keys that are let in; anyone when `None`.
    pub keys: Option<KeyRing>,
    /// The account of callers whose key names none.
    pub account: AccountId,
    /// The region of requests that are not signed for one.
    pub region: Region,
    /// The regions that clients may sign for; any when empty.
    pub regions: Vec<Region>,
    /// Separates the key space of this router from others'.
    pub hash_seed: HashSeed,
    /// Whether responses tell the decision in `x-isotherm-*` headers.
    pub expose_decisions: bool,
    /// What is kept of the last requests; nothing when `None`.
    pub diagnostics: Option<Diagnostics>,
    /// Whether the access log has prompts as hashes.
    pub log_prompts: bool,
    /// Whether the router asks for the token counts of streams whose client does not, and takes them out again.
    pub inject_include_usage: bool,
    /// Whether the requests of each key carry a `cache_salt` of its tenant to the engine.
    pub inject_cache_salt: bool,
    /// Further paths that pass to the default endpoint.
    pub allow_paths: Vec<AllowedPath>,
    /// TLS with clients whose connection comes from now on; in the clear when `None`.
    pub tls: Option<ServerTls>,
    /// What requests may not ask instances for; `None`: nothing is looked at.
    pub guards: Option<Guards>,
    /// How long to wait, and for what.
    pub timeouts: Timeouts,
    /// How much to take in before refusing.
    pub limits: Limits,
}

impl Settings {
    /// What a configuration says, with one thread per core.
    pub fn of(config: &Config) -> Settings {
        let async_dir = config.aws.as_ref().map(|aws| aws.async_dir.clone());
        Settings { listen: config.listen, inherited: None, threads: 0, async_dir, rules: Rules::of(config) }
    }
}

impl Rules {
    /// What a configuration says.
    pub fn of(config: &Config) -> Rules {
        let keys = match &config.auth {
            Auth::None => None,
            Auth::Keys { ring, .. } => Some(ring.clone()),
        };
        Rules {
            keys,
            hash_seed: config.hash_seed,
            expose_decisions: config.expose_decisions,
            diagnostics: config.diagnostics.clone(),
            log_prompts: config.access_log_prompts,
            inject_include_usage: config.inject_include_usage,
            inject_cache_salt: config.inject_cache_salt,
            account: config.aws.as_ref().map(|aws| aws.account_id.clone()).unwrap_or_default(),
            region: config.aws.as_ref().map(|aws| aws.region.clone()).unwrap_or_default(),
            regions: config.aws.as_ref().map(|aws| aws.regions.clone()).unwrap_or_default(),
            allow_paths: config.allow_paths.clone(),
            tls: config.tls.clone(),
            guards: guards(&config.guards),
            timeouts: config.timeouts.clone(),
            limits: config.limits.clone(),
        }
    }
}

impl Rules {
    /// Whether prompts are kept as trails of hashes.
    pub(crate) fn keep_trails(&self) -> bool {
        self.diagnostics.is_some() || self.log_prompts
    }

    /// Whether clients may sign for a region: one that can stand in an ARN, and is among those that are listed, if any are.
    pub(crate) fn serves_region(&self, name: &str) -> bool {
        let Ok(region) = name.parse::<Region>() else { return false };
        self.regions.is_empty() || self.regions.contains(&region)
    }
}

/// The guards in the words of whoever looks into bodies; `None` where there are none.
fn guards(configured: &isotherm_config::Guards) -> Option<Guards> {
    let isotherm_config::Guards { max_tokens, choices, logprobs, media_urls } = configured.clone();
    let media_urls = match media_urls {
        isotherm_config::MediaUrls::Any => MediaUrls::Any,
        isotherm_config::MediaUrls::Public => MediaUrls::Public,
        isotherm_config::MediaUrls::Data => MediaUrls::Data,
    };
    let guards = Guards { max_tokens, choices, logprobs, media_urls };
    (guards != Guards::default()).then_some(guards)
}

/// The rules in force, shared by all threads.
pub(crate) type SharedRules = Arc<ArcSwap<Rules>>;
