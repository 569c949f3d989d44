//! One replica of an engine, as the data plane sees it: where it is reached, and when it was last heard of.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use http::HeaderValue;
use isotherm_config::{ApiKey, ClientTls, DnsName, InstanceUrl};
use isotherm_core::{InstanceId, Time};
use isotherm_telemetry::InstanceMetrics;
use isotherm_tls::Validity;
use parking_lot::Mutex;

use crate::dial::TlsSlot;
use crate::listing::Listing;
use crate::{Address, EngineReport, InstanceTls, Model, Problem};

/// Bytes that follow each other faster than this are noted once: the note is shared by all threads.
const NOTE_EVERY: Duration = Duration::from_millis(100);

static NEXT_SERIAL: AtomicU64 = AtomicU64::new(1);

/// One life of a replica: made when it is added, the same until it is removed.
pub struct Instance {
    serial: u64,
    location: Arc<Location>,
    /// What it lies on, where it is a copy of a component.
    host: Option<InstanceId>,
    address: Address,
    tls: TlsSlot,
    api_key: Option<ApiKey>,
    authorization: Option<HeaderValue>,
    origin: Origin,
    since: SystemTime,
    metrics: Arc<InstanceMetrics>,
    listing: ArcSwapOption<Listing>,
    answered_probe: AtomicBool,
    /// What was wrong with the last probe.
    problem: Mutex<Option<Problem>>,
    /// Until when the certificate counts that it last showed.
    certificate: Mutex<Option<Validity>>,
    engine: Mutex<EngineReport>,
    /// Nanoseconds of the clock at the last response byte; 0 before the first one.
    last_byte: AtomicU64,
}

/// Where an instance stands in the topology: names only, so that it can be kept without keeping the instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Location {
    /// The endpoint's name.
    pub endpoint: Arc<str>,
    /// The variant's name.
    pub variant: Arc<str>,
    /// The instance's id.
    pub instance: InstanceId,
}

/// Who brought an instance in, and so who may take it out again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A URL in the configuration; a reload removes it when the file no longer lists it.
    File,
    /// The answer for this DNS name of the configuration; removed when it leaves the answer.
    Dns(DnsName),
    /// The admin API; stays until it is removed there or the process ends.
    Api,
    /// Isotherm started the process itself.
    Started,
}

impl Origin {
    /// The word in listings.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Origin::File => "file",
            Origin::Dns(_) => "dns",
            Origin::Api => "api",
            Origin::Started => "started",
        }
    }

    /// The name that was resolved to it.
    pub(crate) fn name(&self) -> Option<&DnsName> {
        match self {
            Origin::Dns(name) => Some(name),
            Origin::File | Origin::Api | Origin::Started => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Instance {
    /// The same as a copy on this instance.
    pub(crate) fn on(self, host: Option<InstanceId>) -> Instance {
        Instance { host, ..self }
    }

    /// The instance that it lies on, where it is a copy of a component.
    pub fn host(&self) -> Option<&InstanceId> {
        self.host.as_ref()
    }

    pub(crate) fn new(
        location: Location,
        url: &InstanceUrl,
        api_key: Option<ApiKey>,
        tls: Option<ClientTls>,
        origin: Origin,
        metrics: Arc<InstanceMetrics>,
    ) -> Instance {
        let address = Address::of(url.clone());
        let address = match origin.name() {
            Some(name) => address.called(name),
            None => address,
        };
        Instance {
            serial: NEXT_SERIAL.fetch_add(1, Ordering::Relaxed),
            location: Arc::new(location),
            host: None,
            tls: TlsSlot::of(tls, &address, origin.name()),
            address,
            authorization: api_key.as_ref().and_then(bearer),
            api_key,
            origin,
            since: SystemTime::now(),
            metrics,
            listing: ArcSwapOption::empty(),
            answered_probe: AtomicBool::new(false),
            problem: Mutex::new(None),
            certificate: Mutex::new(None),
            engine: Mutex::default(),
            last_byte: AtomicU64::new(0),
        }
    }

    /// A number that no other instance of this process has or had: another life of the same id has another.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Its stable name, unique within its variant.
    pub fn id(&self) -> &InstanceId {
        &self.location.instance
    }

    /// Its endpoint, variant and id.
    pub fn location(&self) -> &Arc<Location> {
        &self.location
    }

    /// Where it is reached.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// TLS to it; `None` in the clear.
    pub fn tls(&self) -> Option<Arc<InstanceTls>> {
        self.tls.get()
    }

    /// Makes new connections by these settings, where its URL is one of TLS.
    pub(crate) fn set_tls(&self, tls: Option<ClientTls>) {
        self.tls.set(tls, &self.address, self.origin.name());
    }

    /// The engine's own credential, sent in place of the client's; marked sensitive.
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Who brought it in.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// What is counted for it. The fleet itself keeps how many requests are in flight and whether it is up, ejected or
    /// draining; the rest is for whoever serves requests.
    pub fn metrics(&self) -> &Arc<InstanceMetrics> {
        &self.metrics
    }

    /// When it was added.
    pub fn since(&self) -> SystemTime {
        self.since
    }

    /// Notes that a byte of a response came at `now`: proof of life while probes time out.
    ///
    /// Cheap enough for every chunk; accurate to 100 ms.
    pub fn note_byte(&self, now: Time) {
        let noted = Time::from_nanoseconds(self.last_byte.load(Ordering::Relaxed));
        if noted == Time::ZERO || now.since(noted) >= NOTE_EVERY {
            self.last_byte.store(now.as_nanoseconds().max(1), Ordering::Relaxed);
        }
    }

    /// When a byte of a response last came from it.
    pub fn last_byte(&self) -> Option<Time> {
        let nanoseconds = self.last_byte.load(Ordering::Relaxed);
        (nanoseconds > 0).then(|| Time::from_nanoseconds(nanoseconds))
    }

    /// Whether it is reached at this URL with this key.
    pub(crate) fn is_reached_by(&self, url: &InstanceUrl, api_key: Option<&ApiKey>) -> bool {
        self.address.is_at(url) && self.api_key.as_ref() == api_key
    }

    /// Whether a probe or a request was ever answered.
    pub(crate) fn was_heard_of(&self) -> bool {
        self.answered_probe.load(Ordering::Relaxed) || self.last_byte().is_some()
    }

    pub(crate) fn note_answered_probe(&self) {
        self.answered_probe.store(true, Ordering::Relaxed);
    }

    /// What it last listed; `None` while it has not said.
    pub(crate) fn listing(&self) -> Option<Arc<Listing>> {
        self.listing.load_full()
    }

    /// The models that it last listed; `None` while it has not said.
    pub fn models(&self) -> Option<Vec<Arc<Model>>> {
        self.listing().map(|listing| listing.models().to_vec())
    }

    pub(crate) fn set_listing(&self, listing: Arc<Listing>) {
        self.listing.store(Some(listing));
    }

    /// What was wrong with the last probe.
    pub fn problem(&self) -> Option<Problem> {
        self.problem.lock().clone()
    }

    /// From when until when the certificate counts that it has shown, or for which it was refused; `None` while it has shown
    /// none.
    pub fn certificate(&self) -> Option<Validity> {
        *self.certificate.lock()
    }

    /// What a connection has shown; one that came to nothing before leaves what was known.
    pub(crate) fn note_certificate(&self, validity: Option<Validity>) {
        if validity.is_some() {
            *self.certificate.lock() = validity;
        }
    }

    /// What its engine told of itself.
    pub fn engine(&self) -> EngineReport {
        self.engine.lock().clone()
    }

    pub(crate) fn change_engine(&self, change: impl FnOnce(&mut EngineReport)) {
        change(&mut self.engine.lock());
    }

    pub(crate) fn set_problem(&self, problem: Option<Problem>) {
        *self.problem.lock() = problem;
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Location { endpoint, variant, instance } = &*self.location;
        write!(f, "Instance({endpoint}/{variant}/{instance}, serial {}, at {})", self.serial, self.address.url())
    }
}

/// The header that carries a key, kept out of debug output.
fn bearer(key: &ApiKey) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose())).ok()?;
    value.set_sensitive(true);
    Some(value)
}
