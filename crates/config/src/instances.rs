//! `instances`: the replicas of a variant, each by its URL, or many behind a DNS name.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use isotherm_core::{InstanceId, Weight};
use isotherm_tls::ClientTls;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::context::Context;
use crate::dns_name::{DnsName, Records};
use crate::duration;
use crate::instance_url::{InstanceUrl, Scheme, UrlError};
use crate::problem::{Origin, Place};
use crate::tls::InstancesTlsElement;
use crate::value::{in_range, number, parsed, text, whole};
use crate::yaml::Located;

/// How often a DNS name is resolved when nothing is said.
const DEFAULT_RESOLVE_INTERVAL: Duration = Duration::from_secs(10);

/// One entry of `instances`: an instance, or all instances behind a DNS name.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceEntry {
    /// Where the instance or the instances are.
    pub source: InstanceSource,
    /// The share of each relative to the other instances of the variant.
    pub weight: Weight,
    /// The most requests that this router keeps in flight on each; no bound when `None`.
    pub max_in_flight: Option<NonZeroU32>,
    /// The key that the engine wants from the router.
    pub api_key: Option<ApiKey>,
    /// TLS to it, as it or `instances_tls` says, else as this machine does it; `None` for `http://` only.
    pub tls: Option<ClientTls>,
}

/// Where instances are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceSource {
    /// One instance.
    Url {
        /// Its stable name; the normalised URL where none was given. Unique within the variant.
        id: InstanceId,
        /// Where it is reached.
        url: InstanceUrl,
    },
    /// One instance for every record of a DNS name; each is called by its URL at the resolved address.
    Dns {
        /// The name.
        name: DnsName,
        /// How often it is resolved.
        resolve_interval: Duration,
    },
}

impl InstanceSource {
    /// Whether its instances are spoken to within TLS.
    pub(crate) fn is_secure(&self) -> bool {
        let scheme = match self {
            InstanceSource::Url { url, .. } => url.scheme(),
            InstanceSource::Dns { name, .. } => name.scheme(),
        };
        scheme == Scheme::Https
    }
}

impl fmt::Display for InstanceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstanceSource::Url { url, .. } => url.fmt(f),
            InstanceSource::Dns { name, .. } => name.fmt(f),
        }
    }
}

/// The key that an engine wants: a secret, which no `Debug` output tells.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Arc<str>);

impl ApiKey {
    /// The key in the clear, for the `authorization` header.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// An instance as a flag names it: `URL`, or `ID=URL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedUrl {
    pub(crate) id: Option<InstanceId>,
    pub(crate) url: InstanceUrl,
}

/// A text that names no instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NamedUrlError {
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error(transparent)]
    Id(#[from] IdError),
}

impl FromStr for NamedUrl {
    type Err = NamedUrlError;

    fn from_str(text: &str) -> Result<NamedUrl, NamedUrlError> {
        let scheme = text.find("://").unwrap_or(text.len());
        match text[..scheme].split_once('=') {
            Some((id, _)) => Ok(NamedUrl { id: Some(parse_id(id)?), url: text[id.len() + 1..].parse()? }),
            None => Ok(NamedUrl { id: None, url: text.parse()? }),
        }
    }
}

impl From<NamedUrl> for InstanceEntry {
    fn from(named: NamedUrl) -> InstanceEntry {
        let id = named.id.unwrap_or_else(|| InstanceId::new(named.url.to_string()));
        InstanceEntry {
            source: InstanceSource::Url { id, url: named.url },
            weight: Weight::ONE,
            max_in_flight: None,
            api_key: None,
            tls: None,
        }
    }
}

/// A text that cannot name an instance in headers and metrics.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no id; allowed: 1 to 255 visible ASCII characters, no spaces")]
pub struct IdError(String);

/// An id that can stand in a header and in a metric's label.
pub(crate) fn parse_id(text: &str) -> Result<InstanceId, IdError> {
    if (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(InstanceId::new(text))
    } else {
        Err(IdError(text.to_owned()))
    }
}

/// An instance by `url`, or all instances behind a name by `dns`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Instance", extend("oneOf" = [{ "required": ["url"] }, { "required": ["dns"] }]))]
pub(crate) struct InstanceElement {
    /// Where the instance is reached: http://HOST:PORT or https://HOST:PORT, with a path if every request's path shall follow one.
    #[serde(default, deserialize_with = "some_parsed")]
    #[schemars(schema_with = "url_schema")]
    url: Option<InstanceUrl>,
    /// A name that is resolved again and again: http://NAME:PORT by A and AAAA records, srv+http://NAME by SRV records,
    /// https:// and srv+https:// alike.
    #[serde(default, deserialize_with = "some_parsed")]
    #[schemars(schema_with = "dns_schema")]
    dns: Option<DnsName>,
    /// The instance's stable name, which decides its place among the others; the URL when absent. With `url` only.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    id: Option<Located<Id>>,
    /// The share relative to the other instances.
    #[serde(default, deserialize_with = "weight")]
    #[schemars(with = "f64", extend("exclusiveMinimum" = 0, "default" = 1))]
    weight: Weight,
    /// The most requests in flight at once; no bound when absent.
    #[serde(default, deserialize_with = "max_in_flight")]
    #[schemars(schema_with = "max_in_flight_schema")]
    max_in_flight: Option<NonZeroU32>,
    /// The environment variable that holds the key for the engine.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    api_key_env: Option<Located<String>>,
    /// How often the name is resolved; 10s when absent. With `dns` only.
    #[serde(default, with = "duration::optional")]
    #[schemars(schema_with = "duration::schema")]
    resolve_interval: Option<Duration>,
    /// TLS to this instance, in place of `instances_tls`.
    #[serde(default)]
    #[schemars(with = "InstancesTlsElement")]
    tls: Option<Located<InstancesTlsElement>>,
}

#[derive(Debug)]
struct Id(InstanceId);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        parse_id(&text(deserializer, "text; a number needs quotes")?).map(Id).map_err(serde::de::Error::custom)
    }
}

impl InstanceElement {
    /// The entry, when the element's parts fit together.
    fn into_entry(self, place: Place, context: &mut Context<'_>) -> Option<InstanceEntry> {
        let source = match (self.url, self.dns) {
            (Some(url), None) => {
                if self.resolve_interval.is_some() {
                    context.refuse(place, "`resolve_interval` goes with `dns`, not with `url`");
                }
                let id = self.id.map_or_else(|| InstanceId::new(url.to_string()), |id| id.value.0);
                Some(InstanceSource::Url { id, url })
            }
            (None, Some(name)) => {
                if let Some(id) = self.id {
                    let message = "`id` goes with `url`: instances behind a DNS name are called by their addresses";
                    context.refuse(id.place, message);
                }
                let resolve_interval = self.resolve_interval.unwrap_or(DEFAULT_RESOLVE_INTERVAL);
                Some(InstanceSource::Dns { name, resolve_interval })
            }
            (Some(_), Some(_)) => {
                context.refuse(place, "an instance has either `url` or `dns`, not both");
                None
            }
            (None, None) => {
                context.refuse(place, "an instance needs `url` or `dns`");
                None
            }
        };
        let api_key = match self.api_key_env {
            Some(variable) => Some(api_key(&variable, context)?),
            None => None,
        };
        let source = source?;
        let tls = match self.tls {
            Some(Located { value: element, place }) if source.is_secure() => Some(element.read(place, context)?),
            Some(Located { place, .. }) => {
                context.refuse(place, "`tls` goes with an https:// URL");
                return None;
            }
            None => None,
        };
        Some(InstanceEntry { source, weight: self.weight, max_in_flight: self.max_in_flight, api_key, tls })
    }
}

/// Entries that say nothing of their own take the configuration's TLS. What SRV records name is told apart by addresses
/// alone, so that within TLS it needs a name to prove.
pub(crate) fn share_tls<'e>(
    entries: impl Iterator<Item = &'e mut InstanceEntry>,
    shared: Option<&ClientTls>,
) -> Result<(), String> {
    for entry in entries.filter(|entry| entry.source.is_secure()) {
        let tls = entry.tls.get_or_insert_with(|| shared.cloned().unwrap_or_else(ClientTls::of_this_machine));
        let InstanceSource::Dns { name, .. } = &entry.source else { continue };
        if name.records() == Records::Services && tls.server_name().is_none() && tls.verifies() {
            return Err(format!(
                "{name}: needs `tls: {{ server_name: NAME }}`, the name in its instances' certificates"
            ));
        }
    }
    Ok(())
}

/// The entries of a variant, each once.
pub(crate) fn entries(elements: Vec<Located<InstanceElement>>, context: &mut Context<'_>) -> Vec<InstanceEntry> {
    let mut seen = Seen::default();
    let mut entries = Vec::new();
    for Located { value: element, place } in elements {
        let Some(entry) = element.into_entry(place, context) else { continue };
        match seen.again(&entry.source, context.at(place)) {
            Some(message) => context.refuse(place, message),
            None => entries.push(entry),
        }
    }
    entries
}

/// Which ids, URLs and names a variant has already, and where they stand.
#[derive(Default)]
pub(crate) struct Seen {
    first: HashMap<String, Origin>,
}

impl Seen {
    /// What is wrong when something of the source was there before.
    pub(crate) fn again(&mut self, source: &InstanceSource, origin: Origin) -> Option<String> {
        let names = match source {
            InstanceSource::Url { id, url } => vec![format!("instance {url}"), format!("instance id {id}")],
            InstanceSource::Dns { name, .. } => vec![format!("DNS name {name}")],
        };
        let repeated = names.iter().find_map(|name| self.first.get(name).map(|first| (name, first)));
        if let Some((name, first)) = repeated {
            return Some(format!("{name} is given a second time in this variant; the first is at {first}"));
        }
        self.first.extend(names.into_iter().map(|name| (name, origin.clone())));
        None
    }
}

/// The key that an environment variable holds.
pub(crate) fn api_key(variable: &Located<String>, context: &mut Context<'_>) -> Option<ApiKey> {
    let refusal = match context.environment.get(&variable.value) {
        None => "is not set",
        Some(key) if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) => {
            "holds no key: visible ASCII characters without spaces"
        }
        Some(key) => return Some(ApiKey(key.into())),
    };
    context.refuse(variable.place, format!("api_key_env: the environment variable {} {refusal}", variable.value));
    None
}

fn some_parsed<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    parsed(deserializer).map(Some)
}

fn weight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Weight, D::Error> {
    number(deserializer, Weight::new)
}

fn max_in_flight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroU32>, D::Error> {
    whole(deserializer, |given| in_range(given, 1, 1_000_000)).map(NonZeroU32::new)
}

fn url_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[hH][tT][tT][pP][sS]?://" })
}

fn dns_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^([sS][rR][vV]\\+)?[hH][tT][tT][pP][sS]?://" })
}

fn max_in_flight_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": 1_000_000 })
}
