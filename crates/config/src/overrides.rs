//! What flags and environment variables say: each setting once, flags first.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use isotherm_core::{ConcurrencyThreshold, PrefixLength, StrategyName};

use crate::access_log::AccessLogTarget;
use crate::address::parse_host;
use crate::environment::Environment;
use crate::instances::NamedUrl;
use crate::problem::{Origin, Problems};

/// The flags of the command line, as the user typed them. A flag that was not given stays `None`; then the environment
/// variable of its name counts (`ISOTHERM_PREFIX_LENGTH` for `--prefix-length`), then the file, then the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--instance [ID=]URL`, repeated. In `ISOTHERM_INSTANCE`, separated by commas or spaces.
    pub instances: Vec<String>,
    /// `--strategy`.
    pub strategy: Option<String>,
    /// `--prefix-length`.
    pub prefix_length: Option<String>,
    /// `--concurrency-threshold`.
    pub concurrency_threshold: Option<String>,
    /// `--host`, the address that the data plane listens on.
    pub host: Option<String>,
    /// `--port`, the port that the data plane listens on.
    pub port: Option<String>,
    /// `--admin-host`, the address that the admin plane listens on.
    pub admin_host: Option<String>,
    /// `--admin-port`, the port that the admin plane listens on.
    pub admin_port: Option<String>,
    /// `--keys-file`.
    pub keys_file: Option<String>,
    /// `--auth`, which can only be `none`.
    pub auth: Option<String>,
    /// `--access-log`.
    pub access_log: Option<String>,
    /// `--expose-decisions`, `true` or `false`.
    pub expose_decisions: Option<String>,
    /// `--diagnostics`, `true` or `false`.
    pub diagnostics: Option<String>,
}

/// A setting from a flag or a variable, and which of them.
#[derive(Debug, Clone)]
pub(crate) struct Given<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// What flags and environment say together, parsed.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) instances: Vec<Given<NamedUrl>>,
    pub(crate) strategy: Option<Given<StrategyName>>,
    pub(crate) prefix_length: Option<Given<PrefixLength>>,
    pub(crate) concurrency_threshold: Option<Given<ConcurrencyThreshold>>,
    pub(crate) host: Option<Given<IpAddr>>,
    pub(crate) port: Option<Given<u16>>,
    pub(crate) admin_host: Option<Given<IpAddr>>,
    pub(crate) admin_port: Option<Given<u16>>,
    pub(crate) auth: Option<Given<AuthSetting>>,
    pub(crate) access_log: Option<Given<AccessLogTarget>>,
    pub(crate) expose_decisions: Option<Given<bool>>,
    pub(crate) diagnostics: Option<Given<bool>>,
}

/// Who may call, as a flag says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuthSetting {
    None,
    KeysFile(PathBuf),
}

impl Settings {
    /// Flags before environment; what cannot be read is noted as problems.
    pub(crate) fn read(overrides: &Overrides, environment: &Environment, problems: &mut Problems) -> Settings {
        let mut reader = Reader { environment, problems };
        Settings {
            instances: reader.instances(&overrides.instances),
            strategy: reader.setting("--strategy", &overrides.strategy, str::parse),
            prefix_length: reader.setting("--prefix-length", &overrides.prefix_length, |text| {
                PrefixLength::new(whole(text)?).map_err(|error| error.to_string())
            }),
            concurrency_threshold: reader.setting(
                "--concurrency-threshold",
                &overrides.concurrency_threshold,
                |text| ConcurrencyThreshold::new(whole(text)?).map_err(|error| error.to_string()),
            ),
            host: reader.setting("--host", &overrides.host, parse_host),
            port: reader.setting("--port", &overrides.port, port),
            admin_host: reader.setting("--admin-host", &overrides.admin_host, parse_host),
            admin_port: reader.setting("--admin-port", &overrides.admin_port, port),
            auth: reader.auth(overrides),
            access_log: reader.setting("--access-log", &overrides.access_log, str::parse),
            expose_decisions: reader.setting("--expose-decisions", &overrides.expose_decisions, truth),
            diagnostics: reader.setting("--diagnostics", &overrides.diagnostics, truth),
        }
    }
}

fn truth(text: &str) -> Result<bool, String> {
    bool::from_str(text).map_err(|_| format!("{text:?} is not allowed; allowed: true, false"))
}

/// Looks each setting up in flags and environment.
struct Reader<'a> {
    environment: &'a Environment,
    problems: &'a mut Problems,
}

impl Reader<'_> {
    fn setting<T, E: ToString>(
        &mut self,
        flag: &str,
        given: &Option<String>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<Given<T>> {
        let (text, origin) = match given {
            Some(text) => (text.clone(), Origin::Flag(flag.to_owned())),
            None => self.variable(flag)?,
        };
        match parse(&text) {
            Ok(value) => Some(Given { value, origin }),
            Err(error) => {
                self.problems.add(origin, error.to_string());
                None
            }
        }
    }

    /// The variable of a flag; an empty one counts as not set. So does what Kubernetes puts into every container beside
    /// a service called `isotherm` or `isotherm-admin`: `ISOTHERM_PORT=tcp://10.96.0.1:8080`.
    fn variable(&self, flag: &str) -> Option<(String, Origin)> {
        let name = variable_name(flag);
        let text = self.environment.get(&name)?.trim();
        let of_kubernetes = name.ends_with("_PORT") && (text.starts_with("tcp://") || text.starts_with("udp://"));
        (!text.is_empty() && !of_kubernetes).then(|| (text.to_owned(), Origin::Environment(name)))
    }

    fn instances(&mut self, given: &[String]) -> Vec<Given<NamedUrl>> {
        let flag = "--instance";
        let texts: Vec<(String, Origin)> = if given.is_empty() {
            let listed = self.variable(flag).into_iter().flat_map(|(list, origin)| {
                let urls = list.split([',', ' ', '\n', '\t']).filter(|url| !url.is_empty()).map(str::to_owned);
                urls.map(|url| (url, origin.clone())).collect::<Vec<_>>()
            });
            listed.collect()
        } else {
            given.iter().map(|text| (text.clone(), Origin::Flag(flag.to_owned()))).collect()
        };
        texts
            .into_iter()
            .filter_map(|(text, origin)| Some(Given { value: self.problems.take(&origin, text.parse())?, origin }))
            .collect()
    }

    /// `--auth none` and `--keys-file` answer one question, so flags beat the environment for both together.
    fn auth(&mut self, overrides: &Overrides) -> Option<Given<AuthSetting>> {
        let flag = |given: &Option<String>, flag: &str| given.clone().map(|text| (text, Origin::Flag(flag.to_owned())));
        let flags = (flag(&overrides.keys_file, "--keys-file"), flag(&overrides.auth, "--auth"));
        let (keys_file, auth) = match flags {
            (None, None) => (self.variable("--keys-file"), self.variable("--auth")),
            flags => flags,
        };
        match (keys_file, auth) {
            (None, None) => None,
            (Some((path, origin)), None) => Some(Given { value: AuthSetting::KeysFile(path.into()), origin }),
            (None, Some((word, origin))) if word == "none" => Some(Given { value: AuthSetting::None, origin }),
            (None, Some((word, origin))) => {
                let message = format!("{word:?} is not allowed; allowed: none (keys are given by --keys-file)");
                self.problems.add(origin, message);
                None
            }
            (Some((_, keys_file)), Some((_, origin))) => {
                self.problems.add(origin, format!("contradicts {keys_file}; give one of them"));
                None
            }
        }
    }
}

/// `ISOTHERM_PREFIX_LENGTH` for `--prefix-length`.
fn variable_name(flag: &str) -> String {
    format!("ISOTHERM_{}", flag.trim_start_matches('-').replace('-', "_").to_ascii_uppercase())
}

fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is no whole number"))
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("{text:?} is no port; allowed: 0 to 65535, where 0 lets the system choose"))
}
