//! Resolves names as the operating system is configured to: name servers and search list of `/etc/resolv.conf`, and
//! `/etc/hosts`.

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::rdata::SRV;
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use hickory_resolver::{ResolverBuilder, TokioResolver};
use isotherm_config::{DnsName, Records};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::{Answer, Resolve, ResolveError, Resolving};

/// A resolver without a cache: how long an answer is believed is for whoever asks.
#[derive(Debug, Default)]
pub struct SystemResolver {
    /// Made at the first question, and anew after a failure: the system's configuration may have changed.
    built: Mutex<Option<TokioResolver>>,
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a DnsName) -> Resolving<'a> {
        Box::pin(async {
            let answer = resolve(&self.resolver()?, name).await;
            if answer.is_err() {
                *self.built.lock() = None;
            }
            Ok(answer?)
        })
    }
}

impl SystemResolver {
    fn resolver(&self) -> Result<TokioResolver, ResolveError> {
        let mut built = self.built.lock();
        if let Some(resolver) = &*built {
            return Ok(resolver.clone());
        }
        let resolver = uncached(TokioResolver::builder_tokio()?)?;
        *built = Some(resolver.clone());
        Ok(resolver)
    }
}

fn uncached(mut builder: ResolverBuilder<TokioRuntimeProvider>) -> Result<TokioResolver, NetError> {
    builder.options_mut().cache_size = 0;
    builder.build()
}

impl From<NetError> for ResolveError {
    fn from(error: NetError) -> ResolveError {
        ResolveError(error.to_string())
    }
}

async fn resolve(resolver: &TokioResolver, name: &DnsName) -> Result<Answer, NetError> {
    match name.records() {
        Records::Addresses { port } => {
            let found = addresses(resolver, name.name()).await?;
            let addresses = found.values.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
            Ok(Answer { addresses, time_to_live: found.time_to_live })
        }
        Records::Services => services(resolver, name.name()).await,
    }
}

/// The targets of SRV records of the lowest priority (RFC 2782: the others are for when those are all gone), each at
/// its own port. The records' weights are not used: instances have weights of their own.
async fn services(resolver: &TokioResolver, name: &str) -> Result<Answer, NetError> {
    let service = |data: &RData| match data {
        RData::SRV(service) => Some(service.clone()),
        _ => None,
    };
    let found: Found<SRV> = lookup(resolver, name, RecordType::SRV, service).await?;
    let priority = found.values.iter().map(|service| service.priority).min();
    let mut lookups = JoinSet::new();
    for service in found.values.into_iter().filter(|service| Some(service.priority) == priority) {
        let resolver = resolver.clone();
        lookups.spawn(async move { (addresses(&resolver, &service.target.to_utf8()).await, service.port) });
    }
    let mut answer = Answer { addresses: Vec::new(), time_to_live: found.time_to_live };
    while let Some(joined) = lookups.join_next().await {
        let Ok((target, port)) = joined else { return Err(NetError::Message("a lookup was cancelled")) };
        let target = target?;
        // A target without an address is an instance that is being replaced.
        if !target.values.is_empty() {
            answer.time_to_live = answer.time_to_live.min(target.time_to_live);
        }
        answer.addresses.extend(target.values.into_iter().map(|ip| SocketAddr::new(ip, port)));
    }
    Ok(answer)
}

/// The IPv4 addresses of a name, or its IPv6 addresses where it has no others: in a network with both, the two mostly
/// lead to the same machines, and each must be one instance.
async fn addresses(resolver: &TokioResolver, name: &str) -> Result<Found<IpAddr>, NetError> {
    let address = |data: &RData| data.ip_addr();
    let found = lookup(resolver, name, RecordType::A, address).await?;
    if found.values.is_empty() { lookup(resolver, name, RecordType::AAAA, address).await } else { Ok(found) }
}

/// What records of one type say.
struct Found<T> {
    values: Vec<T>,
    time_to_live: Duration,
}

/// A name that does not exist has no records; anything else that goes wrong is an error.
async fn lookup<T>(
    resolver: &TokioResolver,
    name: &str,
    record_type: RecordType,
    value: impl Fn(&RData) -> Option<T>,
) -> Result<Found<T>, NetError> {
    let records = match resolver.lookup(name, record_type).await {
        Ok(lookup) => lookup.answers().to_vec(),
        Err(error) if error.is_no_records_found() => Vec::new(),
        Err(error) => return Err(error),
    };
    let relevant = |record: &&Record| record.record_type() == record_type;
    let shortest = records.iter().map(|record| record.ttl).min().unwrap_or_default();
    let values = records.iter().filter(relevant).filter_map(|record| value(&record.data)).collect();
    Ok(Found { values, time_to_live: Duration::from_secs(shortest.into()) })
}
