//! What an emulator pretends to be and where it listens.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use isotherm_engine_model::Profile;
use thiserror::Error;

use crate::faults::Faults;

/// Settings of one emulator. The default is a Llama-3.1-70B on a free port of loopback, in real time.
#[derive(Debug, Clone)]
pub struct EmulatorConfig {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Name under which the model is served.
    pub model: String,
    /// Names of LoRA adapters served beside it; each has its own share of the cache.
    pub adapters: Vec<String>,
    /// Model, accelerators, cache size and scheduler limits.
    pub profile: Profile,
    /// Model seconds per wall second, above 0 and at most 1,000: 10 is ten times faster than the real engine. What the
    /// wall clock is late counts times the speed in model time, so watch [`RunningEmulator::lag`] at high speeds: steps
    /// are timed to some 50 µs on Linux, to 1 ms elsewhere.
    ///
    /// [`RunningEmulator::lag`]: crate::RunningEmulator::lag
    pub speed: f64,
    /// Decides texts and their lengths. Engines with equal seeds give equal answers.
    pub seed: u64,
    /// Longest sequence of prompt and answer in tokens; at most what the KV cache holds.
    pub max_model_len: u32,
    /// Bearer token that the paths below `/v1` and `/v2` require, as vLLM's `--api-key`.
    pub api_key: Option<ApiKey>,
    /// How long an idle connection is kept (uvicorn's default, which vLLM uses: 5 s).
    pub keep_alive: Duration,
    /// Larger request bodies get 413.
    pub max_body_bytes: usize,
    /// How many of the last requests `GET /emulator/requests` shows.
    pub observed_requests: usize,
    /// Bytes of conversations that `/v1/responses` remembers; the oldest go first.
    pub stored_response_bytes: usize,
    /// How long a stateful session lasts that was begun on `/invocations` (the default of AWS's containers: 20 minutes).
    pub session_lifetime: Duration,
    /// Faults in force from the start.
    pub faults: Faults,
}

impl Default for EmulatorConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            model: "llama-3.1-70b-instruct".to_owned(),
            adapters: Vec::new(),
            profile: Profile::default(),
            speed: 1.0,
            seed: 0,
            max_model_len: 131_072,
            api_key: None,
            keep_alive: Duration::from_secs(5),
            max_body_bytes: 64 << 20,
            observed_requests: 256,
            stored_response_bytes: 64 << 20,
            session_lifetime: Duration::from_secs(20 * 60),
            faults: Faults::default(),
        }
    }
}

impl EmulatorConfig {
    /// One line for people: model, profile, cache and speed.
    pub fn summary(&self) -> String {
        format!(
            "{} ({}, {} tokens of KV cache, context {}, speed {}×)",
            self.model,
            self.profile.name,
            thousands(self.profile.kv_capacity_tokens),
            thousands(u64::from(self.max_model_len)),
            self.speed,
        )
    }

    pub(crate) fn check(&self) -> Result<(), InvalidConfig> {
        if !(self.speed > 0.0 && self.speed <= 1_000.0) {
            return Err(InvalidConfig::Speed(self.speed));
        }
        if self.max_model_len < 2 || u64::from(self.max_model_len) > self.profile.kv_capacity_tokens {
            return Err(InvalidConfig::ContextLength {
                max_model_len: self.max_model_len,
                capacity: self.profile.kv_capacity_tokens,
            });
        }
        if self.model.is_empty() {
            return Err(InvalidConfig::NoModel);
        }
        Ok(())
    }
}

/// A setting out of its range.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum InvalidConfig {
    /// Speed must be positive.
    #[error("speed is {0}, but must be above 0 and at most 1000")]
    Speed(f64),
    /// The longest sequence must fit into the cache.
    #[error("max_model_len is {max_model_len}, but must be 2 to {capacity}, the tokens of KV cache of the profile")]
    ContextLength {
        /// As configured.
        max_model_len: u32,
        /// The profile's KV cache in tokens.
        capacity: u64,
    },
    /// The model needs a name.
    #[error("model is empty, but must be the name under which the model is served")]
    NoModel,
}

/// A secret that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes the key as clients send it after `Bearer `.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn matches(&self, presented: &str) -> bool {
        self.0 == presented
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(…)")
    }
}

/// 1234567 as `1,234,567`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_digits_by_thousands() {
        let grouped = [0, 999, 1_000, 131_072, 1_234_567].map(thousands);
        assert_eq!(grouped, ["0", "999", "1,000", "131,072", "1,234,567"]);
    }

    #[test]
    fn a_key_is_not_printed() {
        assert!(!format!("{:?}", ApiKey::new("secret")).contains("secret"));
    }

    #[test]
    fn the_defaults_fit_every_profile() {
        for name in Profile::names() {
            let config = EmulatorConfig { profile: Profile::named(name).unwrap(), ..EmulatorConfig::default() };
            assert_eq!(config.check(), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_context_beyond_the_cache_is_refused() {
        let mut config = EmulatorConfig::default();
        assert_eq!(config.check(), Ok(()));
        config.profile = config.profile.with_kv_capacity_tokens(1_000);
        assert_eq!(config.check(), Err(InvalidConfig::ContextLength { max_model_len: 131_072, capacity: 1_000 }));
    }
}
