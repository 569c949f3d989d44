//! Points in time as SageMaker's protocol writes them.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time, to the millisecond; in JSON a number of seconds since 1970 with a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    milliseconds: u64,
}

impl Timestamp {
    /// The present, by the system's clock.
    pub fn now() -> Timestamp {
        Timestamp::from(SystemTime::now())
    }

    /// That many milliseconds after the beginning of 1970.
    pub const fn from_milliseconds(milliseconds: u64) -> Timestamp {
        Timestamp { milliseconds }
    }

    /// Milliseconds since the beginning of 1970.
    pub const fn milliseconds(self) -> u64 {
        self.milliseconds
    }

    /// Seconds since the beginning of 1970.
    pub fn seconds(self) -> f64 {
        self.milliseconds as f64 / 1_000.0
    }

    /// How long it is from this point to the later one; zero where that is not later.
    pub const fn until(self, later: Timestamp) -> Duration {
        Duration::from_millis(later.milliseconds.saturating_sub(self.milliseconds))
    }
}

impl From<SystemTime> for Timestamp {
    /// Times before 1970 become its beginning.
    fn from(time: SystemTime) -> Timestamp {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp { milliseconds: u64::try_from(since.as_millis()).unwrap_or(u64::MAX) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.seconds())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Ok(Timestamp { milliseconds: (seconds * 1_000.0).round() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_survive_json() {
        for milliseconds in [0, 1, 1_795_996_800_123, 1_795_996_800_999, 4_102_444_800_001] {
            let time = Timestamp::from_milliseconds(milliseconds);
            let json = serde_json::to_string(&time).unwrap();
            assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), time, "{json}");
        }
        assert_eq!(serde_json::to_string(&Timestamp::from_milliseconds(1_795_996_800_250)).unwrap(), "1795996800.25");
    }
}
