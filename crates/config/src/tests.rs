//! Tests of whole configurations.

mod layers;
mod mistakes;
mod schema;
mod tls;

use std::path::PathBuf;

use tempfile::TempDir;

use crate::{Config, Environment, Overrides};

/// The example of the documentation.
const EXAMPLE: &str = r#"
# isotherm.yaml
listen: 0.0.0.0:8080
auth: { keys_file: keys }
endpoints:
  - name: chat
    variants:
      - name: AllTraffic
        routing: { strategy: PREFIX_AWARE, prefix_length: 4096, concurrency_threshold: 10 }
        instances:
          - { url: "http://10.0.0.1:8000" }
          - { dns: "http://vllm.internal:8000" }   # A/AAAA/SRV, re-resolved
"#;

/// Every key, none at its default.
const EVERY_KEY: &str = r#"
listen: "[::1]:9000"
tls: { cert: cert.pem, key: key.pem, client_ca: cert.pem }
admin: { listen: 0.0.0.0:9001, token_file: secrets/token, tls: { cert: both.pem }, hosts: [Router.internal] }
auth: none
hash_seed: 7
expose_decisions: true
inject_include_usage: true
inject_cache_salt: true
allow_paths: [/v1/audio/*, /tokenize]
access_log: ./access.log
access_log_prompts: true
diagnostics: { requests_per_second: 100, memory: 4MiB, tell_clients: true, instance_hour_price: 98.5 }
timeouts:
  connect: 500ms
  first_byte: 5m
  idle: 1m
  total: 1h
  invocation: 90s
  invocation_stream: 15m
  client_header: 5s
  client_body: 6s
  pool_idle: 7s
  shutdown_delay: 5s
  shutdown_grace: 0s
limits:
  body: 64MiB
  invocation_body: 8MiB
  headers: 32KiB
  uri: 8192
  connections: 5
  queue: { max_waiting: 0, max_bytes: 1MiB, timeout: 1s }
guards: { max_tokens: 4096, choices: 8, logprobs: 20, media_urls: public }
alerts:
  enabled: true
  webhooks: ["http://alerts.internal:9095/hook?token=secret", "https://hooks.example/x"]
  repeat: 1h
  window: 2m
  least_requests: 10
  hit_rate: { enabled: true, for: 5m, below: 0.4, repeats: 0.6 }
  cache_pressure: { for: 0s, above: 0.5 }
  hot_prefix: { above: 0.6, skew: 3 }
  spills: { above: 0.3 }
  instance_ill: { for: 2m }
  first_token: { p95: 800ms }
  prefix_caching_off: { enabled: false }
  replicas_disagree: { for: 1m }
  engine_restarted: { within: 1m }
endpoints:
  - name: chat
    variants:
      - name: a
        weight: 0.5
        routing:
          strategy: prefix-aware
          prefix_length: 1024
          concurrency_threshold: 4
          spill: least-outstanding
          rollout: 25
        health: { path: /healthz, interval: 1s, timeout: 2s, failures: 5 }
        engine_metrics: { enabled: true, path: /prometheus, interval: 10s, timeout: 1s }
        instances:
          - { url: "http://10.0.0.1:8000/", id: one, weight: 2, max_in_flight: 16, api_key_env: ENGINE_KEY }
          - { dns: "srv+http://_vllm._tcp.internal", weight: 0.5, resolve_interval: 30s }
          - { url: "https://10.0.0.2", tls: { verify: false } }
      - { name: b, weight: 0, routing: { strategy: Round_Robin }, instances: [] }
instances_tls: { ca: cert.pem, cert: cert.pem, key: key.pem, server_name: engine.internal }
aws:
  account_id: "000000000042"
  region: eu-central-1
  regions: [eu-central-1, eu-west-1]
  data_dir: state
  async_dir: buckets
  providers:
    - match: { instance_type: ml.g5.*, image: "*vllm*" }
      process:
        command: [vllm, serve, "{model}", --port, "{port}"]
        environment: { HF_HOME: /models }
        working_directory: work
        health_path: /ping
        start_timeout: 5m
        stop_timeout: 10s
    - match: { image: "*" }
      static: { urls: ["http://10.0.0.9:8000"], api_key_env: ENGINE_KEY }
    - emulated: { profile: llama3.1-8b-tp1-bf16, speed: 2.5, model: m }
"#;

/// A line of a keys file.
const KEY_LINE: &str = "alice sha256:6ca13d52ca70c883e0f0bb101e425a89e8624de51db2d2392593af6a84118090";

/// A directory with a configuration file and a keys file beside it.
struct Files {
    directory: TempDir,
}

impl Files {
    fn with(text: &str) -> Files {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("isotherm.yaml"), text).unwrap();
        std::fs::write(directory.path().join("keys"), KEY_LINE).unwrap();
        let files = Files { directory };
        if text.contains("tls:") {
            files.certify();
        }
        files
    }

    /// A certificate and its key, in two files and in one, and the key of another one.
    fn certify(&self) {
        let made = rcgen::generate_simple_self_signed(["router.internal".to_owned()]).unwrap();
        let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let both = format!("{cert}{key}");
        for (name, text) in [("cert.pem", cert), ("key.pem", key), ("both.pem", both), ("other.pem", other)] {
            std::fs::write(self.path(name), text).unwrap();
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Loads the file; an error as its lines, without the directory in them.
    fn load(&self, environment: &Environment, overrides: &Overrides) -> Result<Config, Vec<String>> {
        let error = match Config::load(Some(&self.path("isotherm.yaml")), environment, overrides) {
            Ok(config) => return Ok(config),
            Err(error) => error.to_string(),
        };
        let directory = format!("{}/", self.directory.path().display());
        Err(error.lines().map(|line| line.replace(&directory, "")).collect())
    }
}

/// Loads a file of this text alone.
fn load(text: &str) -> Result<Config, Vec<String>> {
    Files::with(text).load(&Environment::default(), &Overrides::default())
}

fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Loads without a file.
fn load_flags(environment: &Environment, overrides: &Overrides) -> Result<Config, Vec<String>> {
    Config::load(None, environment, overrides).map_err(|error| error.to_string().lines().map(str::to_owned).collect())
}
