//! Sticky sessions: on which instance each lives, and until when.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::SystemTime;

use isotherm_core::Time;
use parking_lot::Mutex;

use crate::latest::Latest;
use crate::{Instance, Location, Topology, Variant};

/// How many sessions are remembered when nothing else is said.
const DEFAULT_CAPACITY: usize = 100_000;

/// The sessions that containers have begun and not ended, within a bound.
///
/// Ids are kept as hashes under a key of this process. What was used least recently is forgotten first; a session that
/// was forgotten is one that never was. Shared by all threads.
#[derive(Debug)]
pub struct Sessions {
    hasher: RandomState,
    pins: Mutex<Latest<Pin>>,
}

/// Where a session lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The instance's place.
    pub location: Arc<Location>,
    /// Its life: another one knows nothing of the session.
    pub serial: u64,
    /// When the session ends by itself.
    pub expires: SystemTime,
}

/// What is known of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Session {
    /// Nothing: it never was, was closed, or was forgotten.
    Unknown,
    /// It has come to its end.
    Expired,
    /// It lives there.
    At(Pin),
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions::with_capacity(DEFAULT_CAPACITY)
    }
}

impl Sessions {
    /// Remembers at most `capacity` sessions, and at least one.
    pub fn with_capacity(capacity: usize) -> Sessions {
        Sessions { hasher: RandomState::new(), pins: Mutex::new(Latest::with_capacity(capacity)) }
    }

    /// An instance has begun a session of its endpoint.
    pub fn begin(&self, id: &str, instance: &Instance, expires: SystemTime) {
        let location = Arc::clone(instance.location());
        let hash = self.hash(&location.endpoint, id);
        self.pins.lock().insert(hash, Pin { location, serial: instance.serial(), expires });
    }

    /// Where a session of an endpoint lives.
    pub fn find(&self, endpoint: &str, id: &str, now: SystemTime) -> Session {
        let hash = self.hash(endpoint, id);
        let mut pins = self.pins.lock();
        match pins.get(hash) {
            None => Session::Unknown,
            Some(pin) if pin.expires <= now => {
                pins.remove(hash);
                Session::Expired
            }
            Some(pin) => Session::At(pin),
        }
    }

    /// The container has ended a session of an endpoint; false when it was not known.
    pub fn close(&self, endpoint: &str, id: &str) -> bool {
        let hash = self.hash(endpoint, id);
        self.pins.lock().remove(hash).is_some()
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.pins.lock().len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn hash(&self, endpoint: &str, id: &str) -> u64 {
        self.hasher.hash_one((endpoint, id))
    }
}

impl Topology {
    /// The variant in which the instance of a session lives; `None` when it does not any more.
    pub fn variant_of_session(&self, pin: &Pin) -> Option<&Arc<Variant>> {
        let variant = self.variant_at(&pin.location)?;
        variant.instances(Time::ZERO).iter().any(|now| now.instance.serial() == pin.serial).then_some(variant)
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Fleet;
    use crate::testing::{fleet, one_variant, variant};

    fn with_an_instance() -> (Fleet, Arc<Instance>) {
        let fleet = fleet(&one_variant("", &["{ url: 'http://10.0.0.1', id: a }"]));
        let instance = Arc::clone(&variant(&fleet).instances(Time::ZERO)[0].instance);
        (fleet, instance)
    }

    #[test]
    fn a_session_lives_on_its_instance_until_it_expires() {
        let (_fleet, instance) = with_an_instance();
        let (sessions, now) = (Sessions::default(), SystemTime::now());
        sessions.begin("s1", &instance, now + Duration::from_secs(60));
        let pin = Pin {
            location: Arc::clone(instance.location()),
            serial: instance.serial(),
            expires: now + Duration::from_secs(60),
        };
        let endpoint = Arc::clone(&pin.location.endpoint);
        assert_eq!(sessions.find(&endpoint, "s1", now), Session::At(pin.clone()));
        assert_eq!(sessions.find("other", "s1", now), Session::Unknown);
        assert_eq!(sessions.find(&endpoint, "s1", pin.expires), Session::Expired);
        assert_eq!(sessions.find(&endpoint, "s1", pin.expires), Session::Unknown);
        assert!(sessions.is_empty());
    }

    #[test]
    fn a_closed_session_is_unknown() {
        let (_fleet, instance) = with_an_instance();
        let (sessions, now) = (Sessions::default(), SystemTime::now());
        sessions.begin("s1", &instance, now + Duration::from_secs(60));
        let endpoint = &instance.location().endpoint;
        assert!(sessions.close(endpoint, "s1") && !sessions.close(endpoint, "s1"));
        assert_eq!(sessions.find(endpoint, "s1", now), Session::Unknown);
    }

    #[test]
    fn a_session_ends_with_the_life_of_its_instance() {
        let (fleet, instance) = with_an_instance();
        let pin = |serial| Pin { location: Arc::clone(instance.location()), serial, expires: SystemTime::now() };
        let topology = fleet.topology();
        assert!(topology.variant_of_session(&pin(instance.serial())).is_some());
        assert!(topology.variant_of_session(&pin(instance.serial() + 1_000_000)).is_none());
    }
}
