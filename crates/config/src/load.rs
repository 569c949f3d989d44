//! Puts a configuration together: the file, then the environment over it, then the flags over both.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use isotherm_core::HashSeed;
use isotherm_tls::Protocols;

use crate::auth::AuthElement;
use crate::context::Context;
use crate::endpoints::{self, TrafficWeight, Variant};
use crate::file::File;
use crate::instances::{self, InstanceEntry, Seen};
use crate::name::Name;
use crate::overrides::{AuthSetting, Given, Settings};
use crate::problem::{Origin, Place, Problems};
use crate::routing::RoutingElement;
use crate::yaml::{self, Located};
use crate::{
    Admin, Auth, Config, ConfigError, Diagnostics, Endpoint, EngineMetrics, Environment, Health, Overrides, aws,
    hash_seed,
};

impl Config {
    /// Loads a configuration: `file` when there is one, the environment over it, the flags over both. Reads the files
    /// that it names (keys, seed), so that what it returns is ready for use; relative paths in a file count from the
    /// file's directory, those in flags and environment from the working directory.
    ///
    /// # Errors
    ///
    /// Everything that is wrong. First come values that are wrong by themselves, all of them; only where there are none
    /// is it told how values contradict each other.
    pub fn load(file: Option<&Path>, environment: &Environment, overrides: &Overrides) -> Result<Config, ConfigError> {
        let mut problems = Problems::default();
        let settings = Settings::read(overrides, environment, &mut problems);
        let written = file.and_then(|path| read(path, &mut problems));
        problems.check()?;
        let mut loader =
            Loader { context: Context { path: file, environment, problems, instances_tls: None }, settings };
        let config = loader.config(written.unwrap_or_default());
        loader.context.problems.into_result().map(|()| config)
    }
}

fn read(path: &Path, problems: &mut Problems) -> Option<File> {
    let whole_file = Origin::File { path: path.to_owned(), place: None };
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"));
    yaml::read(path, &problems.take(&whole_file, text)?, problems)
}

/// Puts the parts of the file together with what overrides them.
struct Loader<'a> {
    context: Context<'a>,
    settings: Settings,
}

impl Loader<'_> {
    /// The configuration; only of use when no problem was noted.
    fn config(&mut self, mut file: File) -> Config {
        let (listen, listen_origin) = self.listen(&file);
        let admin = self.admin(&mut file, listen);
        let tls = file.tls.take().and_then(|tls| tls.value.read(tls.place, Protocols::Http2And1, &mut self.context));
        let instances_tls = file.instances_tls.take().and_then(|tls| tls.value.read(tls.place, &mut self.context));
        self.context.instances_tls.clone_from(&instances_tls);
        let auth = self.auth(file.auth, listen, &listen_origin);
        let hash_seed = self.hash_seed(file.hash_seed, file.hash_seed_env, file.hash_seed_file);
        for variant in file.endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.value.variants) {
            self.override_routing(&mut variant.value.routing);
        }
        let directory = self.context.directory();
        let access_log = value_of(&self.settings.access_log).unwrap_or_else(|| file.access_log.relative_to(directory));
        let written = endpoints::endpoints(file.endpoints, &mut self.context);
        let mut endpoints = self.endpoints(written, file.aws.is_some());
        let variants = endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.variants);
        let shared = instances::share_tls(variants.flat_map(|variant| &mut variant.instances), instances_tls.as_ref());
        if let Err(message) = shared {
            self.context.problems.add(self.context.whole(), message);
        }
        Config {
            listen,
            tls,
            admin,
            auth,
            hash_seed,
            expose_decisions: value_of(&self.settings.expose_decisions).unwrap_or(file.expose_decisions),
            inject_include_usage: file.inject_include_usage,
            inject_cache_salt: file.inject_cache_salt,
            allow_paths: file.allow_paths,
            access_log,
            access_log_prompts: file.access_log_prompts,
            diagnostics: self.diagnostics(file.diagnostics),
            otlp: file.otlp,
            timeouts: file.timeouts,
            limits: file.limits,
            guards: file.guards,
            alerts: file.alerts,
            instances_tls,
            endpoints,
            aws: file.aws.map(|element| aws::aws(element, &mut self.context)),
        }
    }

    /// Where the data plane listens, and what said so.
    fn listen(&self, file: &File) -> (SocketAddr, Origin) {
        let written = file.listen.map(|listen| (listen.value.0, self.context.at(listen.place)));
        let (address, place) = written.unwrap_or((Config::DEFAULT_LISTEN, Origin::Nowhere));
        let place = self.settings.host.as_ref().map_or(place, |host| host.origin.clone());
        (overridden(address, &self.settings.host, &self.settings.port), place)
    }

    fn admin(&mut self, file: &mut File, data_plane: SocketAddr) -> Admin {
        let written = file.admin.listen.map_or(Admin::DEFAULT_LISTEN, |listen| listen.value.0);
        let listen = overridden(written, &self.settings.admin_host, &self.settings.admin_port);
        let one_host =
            listen.ip() == data_plane.ip() || listen.ip().is_unspecified() || data_plane.ip().is_unspecified();
        if listen.port() == data_plane.port() && listen.port() != 0 && one_host {
            let place = file.admin.listen.map_or(Origin::Nowhere, |listen| self.context.at(listen.place));
            let port = self.settings.admin_port.as_ref().or(self.settings.port.as_ref());
            let place = port.map_or(place, |port| port.origin.clone());
            let message =
                format!("the admin plane ({listen}) and the data plane ({data_plane}) need ports of their own");
            self.context.problems.add(place, message);
        }
        let tls = file.admin.tls.take();
        Admin {
            listen,
            token_file: file.admin.token_file.as_ref().map(|path| self.context.directory().join(path)),
            tls: tls.and_then(|tls| tls.value.read(tls.place, Protocols::Http1, &mut self.context)),
            hosts: std::mem::take(&mut file.admin.hosts),
        }
    }

    /// Who may call. Beyond loopback, "anyone" must be written out.
    fn auth(&mut self, written: Option<Located<AuthElement>>, listen: SocketAddr, listen_origin: &Origin) -> Auth {
        let setting = self.settings.auth.clone().or_else(|| {
            let Located { value, place } = written?;
            let value = match value {
                AuthElement::None => AuthSetting::None,
                AuthElement::Keys(keys) => AuthSetting::KeysFile(self.context.directory().join(&keys.keys_file.value)),
            };
            Some(Given { value, origin: self.context.at(place) })
        });
        match setting {
            Some(Given { value: AuthSetting::KeysFile(file), origin }) => {
                Auth::from_keys_file(&file, &origin, &mut self.context.problems).unwrap_or(Auth::None)
            }
            Some(Given { value: AuthSetting::None, .. }) => Auth::None,
            None => {
                if !listen.ip().to_canonical().is_loopback() {
                    let message = format!(
                        "{listen} is reachable from other machines, and no keys are set; \
                         allowed: `auth: {{ keys_file: PATH }}` or --keys-file PATH to let key holders in, \
                         `auth: none` or --auth none to let anyone in, or a loopback address"
                    );
                    self.context.problems.add(listen_origin.clone(), message);
                }
                Auth::None
            }
        }
    }

    /// What is kept of requests: a flag turns it on or off, the file says how.
    fn diagnostics(&self, written: Option<Diagnostics>) -> Option<Diagnostics> {
        match value_of(&self.settings.diagnostics) {
            Some(true) => Some(written.unwrap_or_default()),
            Some(false) => None,
            None => written,
        }
    }

    fn hash_seed(
        &mut self,
        number: Option<Located<u64>>,
        variable: Option<Located<String>>,
        file: Option<Located<PathBuf>>,
    ) -> HashSeed {
        let places = [number.map(|n| n.place), variable.as_ref().map(|v| v.place), file.as_ref().map(|f| f.place)];
        if let Some(second) = places.into_iter().flatten().nth(1) {
            self.context.refuse(second, "give one of hash_seed, hash_seed_env and hash_seed_file");
        }
        if let Some(number) = number {
            return HashSeed(number.value);
        }
        if let Some(Located { value: name, place }) = variable {
            return self.seed_from(
                self.context.environment.get(&name),
                &format!("hash_seed_env: the environment variable {name}"),
                place,
            );
        }
        if let Some(Located { value: file, place }) = file {
            let text = std::fs::read_to_string(self.context.directory().join(&file)).ok();
            return self.seed_from(text.as_deref(), &format!("hash_seed_file: {}", file.display()), place);
        }
        HashSeed::default()
    }

    fn seed_from(&mut self, text: Option<&str>, source: &str, place: Place) -> HashSeed {
        text.and_then(hash_seed::from_secret).unwrap_or_else(|| {
            self.context.refuse(place, format!("{source} holds no seed or cannot be read"));
            HashSeed::default()
        })
    }

    /// Flags and environment speak of the routing of every variant.
    fn override_routing(&self, routing: &mut RoutingElement) {
        if let Some(strategy) = &self.settings.strategy {
            routing.strategy = strategy.value;
        }
        if let Some(length) = &self.settings.prefix_length {
            routing.prefix_length = length.value;
        }
        if let Some(threshold) = &self.settings.concurrency_threshold {
            routing.concurrency_threshold = threshold.value;
        }
    }

    /// The endpoints of the file, with the instances of the flags in place of its own when there are any.
    fn endpoints(&mut self, mut written: Vec<Endpoint>, may_be_none: bool) -> Vec<Endpoint> {
        let Some(first) = self.settings.instances.first() else {
            if written.is_empty() && !may_be_none {
                let message = "no endpoint is configured; allowed: `endpoints` in a file, or --instance URL";
                self.context.problems.add(self.context.whole(), message);
            }
            return written;
        };
        let first_origin = first.origin.clone();
        let given = self.given_instances();
        match written.as_mut_slice() {
            [] => return vec![self.endpoint_of_flags(given)],
            [Endpoint { variants, .. }] if variants.len() == 1 => variants[0].instances = given,
            _ => {
                let message =
                    "replaces the instances of the file, which needs exactly one endpoint with one variant for that";
                self.context.problems.add(first_origin, message);
            }
        }
        written
    }

    fn given_instances(&mut self) -> Vec<InstanceEntry> {
        let mut seen = Seen::default();
        let mut entries = Vec::new();
        for Given { value, origin } in std::mem::take(&mut self.settings.instances) {
            let entry = InstanceEntry::from(value);
            match seen.again(&entry.source, origin.clone()) {
                Some(message) => self.context.problems.add(origin, message),
                None => entries.push(entry),
            }
        }
        entries
    }

    /// The endpoint of a fleet that is given by flags alone.
    fn endpoint_of_flags(&self, instances: Vec<InstanceEntry>) -> Endpoint {
        let mut routing = RoutingElement::default();
        self.override_routing(&mut routing);
        let variant = Variant {
            name: Name::constant("AllTraffic"),
            weight: TrafficWeight::default(),
            routing: routing.into(),
            health: Health::default(),
            engine_metrics: EngineMetrics::default(),
            instances,
        };
        Endpoint { name: Name::constant("default"), variants: vec![variant] }
    }
}

fn value_of<T: Clone>(given: &Option<Given<T>>) -> Option<T> {
    given.as_ref().map(|given| given.value.clone())
}

fn overridden(address: SocketAddr, host: &Option<Given<IpAddr>>, port: &Option<Given<u16>>) -> SocketAddr {
    SocketAddr::new(value_of(host).unwrap_or(address.ip()), value_of(port).unwrap_or(address.port()))
}
