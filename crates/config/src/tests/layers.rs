//! Tests of what is loaded: the file, the environment over it, the flags over both.

use std::num::NonZeroU32;
use std::time::Duration;

use isotherm_core::{HashSeed, InstanceId, PrefixAware, Rollout, SpillRule, Strategy, StrategyName};

use super::*;
use crate::{
    AccessLogTarget, Auth, EmulatedProvider, InstanceEntry, InstanceSource, Limits, Provider, Queue, Timeouts,
};

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn instances(urls: &[&str]) -> Overrides {
    Overrides { instances: urls.iter().map(|url| url.to_string()).collect(), ..Overrides::default() }
}

fn ids(entries: &[InstanceEntry]) -> Vec<String> {
    let id = |entry: &InstanceEntry| match &entry.source {
        InstanceSource::Url { id, .. } => id.to_string(),
        InstanceSource::Dns { name, .. } => name.to_string(),
    };
    entries.iter().map(id).collect()
}

fn strategy(config: &Config) -> StrategyName {
    config.endpoints[0].variants[0].routing.strategy.name()
}

#[test]
fn the_example_of_the_documentation_is_understood() {
    let config = load(EXAMPLE).unwrap();
    assert_eq!(config.listen, "0.0.0.0:8080".parse().unwrap());
    let Auth::Keys { ring, .. } = &config.auth else { panic!("keys") };
    assert_eq!(ring.len(), 1);
    let variant = &config.endpoints[0].variants[0];
    assert_eq!((config.endpoints[0].name.as_str(), variant.name.as_str()), ("chat", "AllTraffic"));
    assert_eq!(variant.routing.strategy, Strategy::PrefixAware(PrefixAware::default()));
    assert_eq!(ids(&variant.instances), ["http://10.0.0.1:8000", "http://vllm.internal:8000"]);
}

#[test]
fn what_is_not_said_has_its_default() {
    let config = load("endpoints: [{ name: e, variants: [{ name: v, instances: [] }] }]").unwrap();
    assert_eq!(
        (config.listen.to_string(), config.admin.listen.to_string()),
        ("127.0.0.1:8080".into(), "127.0.0.1:8081".into())
    );
    assert_eq!((config.auth, config.hash_seed, config.expose_decisions), (Auth::None, HashSeed(0), false));
    assert_eq!((config.access_log, config.allow_paths, config.admin.token_file), (AccessLogTarget::Off, vec![], None));
    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    let timeouts = Timeouts {
        connect: Duration::from_millis(1_500),
        first_byte: 10 * minute,
        idle: 2 * minute,
        total: None,
        invocation: minute,
        invocation_stream: 8 * minute,
        client_header: 10 * second,
        client_body: 30 * second,
        pool_idle: 4 * second,
        shutdown_delay: Duration::ZERO,
        shutdown_grace: 30 * second,
    };
    assert_eq!(config.timeouts, timeouts);
    let queue = Queue { max_waiting: 1_000, max_bytes: 256 << 20, timeout: 30 * second };
    let (body, invocation_body) = (33_554_432, 6_291_456);
    let limits = Limits { body, invocation_body, headers: 65_536, uri: 16_384, connections: 10_000, queue };
    assert_eq!(config.limits, limits);
    let variant = &config.endpoints[0].variants[0];
    assert_eq!((variant.weight.get(), variant.health.failures), (1.0, 3));
    assert_eq!((variant.health.interval, variant.health.timeout), (2 * second, 5 * second));
}

#[test]
fn every_key_arrives_where_it_belongs() {
    let files = Files::with(EVERY_KEY);
    let config = files.load(&environment(&[("ENGINE_KEY", "sk-engine")]), &Overrides::default()).unwrap();
    assert_eq!(
        (config.listen.to_string(), config.admin.listen.to_string()),
        ("[::1]:9000".into(), "0.0.0.0:9001".into())
    );
    assert_eq!(config.admin.token_file, Some(files.path("secrets/token")));
    assert_eq!((config.hash_seed, config.expose_decisions, config.inject_include_usage), (HashSeed(7), true, true));
    assert_eq!(config.access_log, AccessLogTarget::File(files.path("./access.log")));
    assert!(config.allow_paths[0].matches("/v1/audio/speech") && config.allow_paths[1].matches("/tokenize"));
    let seconds = Duration::from_secs;
    let timeouts = Timeouts {
        connect: Duration::from_millis(500),
        first_byte: seconds(300),
        idle: seconds(60),
        total: Some(seconds(3_600)),
        invocation: seconds(90),
        invocation_stream: seconds(900),
        client_header: seconds(5),
        client_body: seconds(6),
        pool_idle: seconds(7),
        shutdown_delay: seconds(5),
        shutdown_grace: Duration::ZERO,
    };
    assert_eq!(config.timeouts, timeouts);
    let queue = Queue { max_waiting: 0, max_bytes: 1 << 20, timeout: seconds(1) };
    let (body, invocation_body) = (64 << 20, 8 << 20);
    assert_eq!(config.limits, Limits { body, invocation_body, headers: 32 << 10, uri: 8_192, connections: 5, queue });
    let [a, b] = config.endpoints[0].variants.as_slice() else { panic!("two variants") };
    let Strategy::PrefixAware(prefix) = a.routing.strategy else { panic!("prefix aware") };
    assert_eq!((prefix.prefix_length.get(), prefix.concurrency_threshold.get()), (1_024, 4));
    assert_eq!((prefix.spill, a.routing.rollout), (SpillRule::LeastOutstanding, Rollout::new(25).unwrap()));
    assert_eq!((a.weight.get(), b.weight.get(), b.routing.strategy), (0.5, 0.0, Strategy::RoundRobin));
    assert_eq!(a.health.path.as_ref().map(|path| path.as_str()), Some("/healthz"));
    assert_eq!((a.health.interval, a.health.timeout, a.health.failures), (seconds(1), seconds(2), 5));
    let [one, behind_dns, _] = a.instances.as_slice() else { panic!("three entries") };
    let url = "http://10.0.0.1:8000".parse().unwrap();
    assert_eq!(one.source, InstanceSource::Url { id: InstanceId::new("one"), url });
    assert_eq!((one.weight.get(), one.max_in_flight), (2.0, NonZeroU32::new(16)));
    assert_eq!(one.api_key.as_ref().map(|key| key.expose()), Some("sk-engine"));
    let name = "srv+http://_vllm._tcp.internal".parse().unwrap();
    assert_eq!(behind_dns.source, InstanceSource::Dns { name, resolve_interval: seconds(30) });
    assert!(config.inject_cache_salt);
    let aws = config.aws.unwrap();
    assert_eq!((aws.account_id.as_str(), aws.region.as_str()), ("000000000042", "eu-central-1"));
    assert_eq!(aws.regions, ["eu-central-1", "eu-west-1"].map(|region| region.parse().unwrap()));
    assert_eq!((aws.data_dir, aws.async_dir), (files.path("state"), files.path("buckets")));
    let kinds: Vec<_> =
        [("ml.g5.xlarge", Some("x/vllm:1")), ("ml.g6.xlarge", Some("x/vllm:1")), ("ml.g5.xlarge", None)]
            .iter()
            .map(|(instance_type, image)| aws.providers.iter().position(|rule| rule.fits(instance_type, *image)))
            .collect();
    assert_eq!(kinds, [Some(0), Some(1), Some(2)]);
    let [Provider::Process(process), Provider::Static(running), Provider::Emulated(emulated)] =
        [0, 1, 2].map(|index| aws.providers[index].provider.clone())
    else {
        panic!("one provider of each kind")
    };
    assert_eq!(process.command, ["vllm", "serve", "{model}", "--port", "{port}"]);
    assert_eq!(process.environment.get("HF_HOME").map(String::as_str), Some("/models"));
    assert_eq!(process.working_directory, Some(files.path("work")));
    assert_eq!(process.health_path.as_ref().map(|path| path.as_str()), Some("/ping"));
    assert_eq!((process.start_timeout, process.stop_timeout), (seconds(300), seconds(10)));
    assert_eq!(running.urls, ["http://10.0.0.9:8000".parse().unwrap()]);
    assert_eq!(running.api_key.as_ref().map(|key| key.expose()), Some("sk-engine"));
    let (profile, model) = (Some("llama3.1-8b-tp1-bf16".into()), Some("m".into()));
    assert_eq!(emulated, EmulatedProvider { profile, speed: Some(2.5), model });
}

#[test]
fn endpoints_may_be_left_to_sagemakers_api() {
    let config = load("aws: { data_dir: d }").unwrap();
    assert!(config.endpoints.is_empty());
    let aws = config.aws.unwrap();
    assert_eq!((aws.account_id.as_str(), aws.region.as_str(), aws.providers), ("123456789012", "us-east-1", vec![]));
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let files = Files::with(
        "listen: 127.0.0.1:1000
access_log: stderr
endpoints: [{ name: e, variants: [{ name: v, routing: { strategy: RANDOM, prefix_length: 1 }, instances: [] }] }]
",
    );
    let variables =
        environment(&[("ISOTHERM_PORT", "2000"), ("ISOTHERM_STRATEGY", "round-robin"), ("ISOTHERM_HOST", "")]);
    let flags = Overrides { strategy: some("PREFIX_AWARE"), ..Overrides::default() };
    let nothing = (Environment::default(), Overrides::default());
    for ((environment, overrides), port, name) in [
        ((&nothing.0, &nothing.1), 1000, StrategyName::Random),
        ((&variables, &nothing.1), 2000, StrategyName::RoundRobin),
        ((&nothing.0, &flags), 1000, StrategyName::PrefixAware),
        ((&variables, &flags), 2000, StrategyName::PrefixAware),
    ] {
        let config = files.load(environment, overrides).unwrap();
        assert_eq!((config.listen.port(), strategy(&config)), (port, name));
        assert_eq!(config.access_log, AccessLogTarget::Stderr);
    }
    let prefix_length = files.load(&variables, &flags).unwrap().endpoints[0].variants[0].routing.prefix_length();
    assert_eq!(prefix_length.map(|length| length.get()), Some(1), "the file's parameters stay");
}

#[test]
fn flags_alone_make_a_fleet_on_loopback() {
    let overrides = Overrides {
        prefix_length: some("2048"),
        concurrency_threshold: some("3"),
        admin_port: some("9091"),
        access_log: some("./log"),
        expose_decisions: some("true"),
        ..instances(&["http://10.0.0.1:8000/", "gpu-2=http://10.0.0.2:8000"])
    };
    let config = load_flags(&Environment::default(), &overrides).unwrap();
    assert_eq!(
        (config.listen.to_string(), config.admin.listen.to_string()),
        ("127.0.0.1:8080".into(), "127.0.0.1:9091".into())
    );
    let endpoint = &config.endpoints[0];
    assert_eq!((endpoint.name.as_str(), endpoint.variants[0].name.as_str()), ("default", "AllTraffic"));
    assert_eq!(ids(&endpoint.variants[0].instances), ["http://10.0.0.1:8000", "gpu-2"]);
    let Strategy::PrefixAware(prefix) = endpoint.variants[0].routing.strategy else { panic!("prefix aware") };
    assert_eq!((prefix.prefix_length.get(), prefix.concurrency_threshold.get()), (2_048, 3));
    assert_eq!((config.access_log, config.expose_decisions), (AccessLogTarget::File("./log".into()), true));
}

#[test]
fn every_flag_can_be_an_environment_variable() {
    let files = Files::with("");
    let variables = environment(&[
        ("ISOTHERM_INSTANCE", "http://a:1, http://b:2 c=http://c:3"),
        ("ISOTHERM_STRATEGY", "least-outstanding-requests"),
        ("ISOTHERM_PREFIX_LENGTH", "1"),
        ("ISOTHERM_CONCURRENCY_THRESHOLD", "1"),
        ("ISOTHERM_HOST", "0.0.0.0"),
        ("ISOTHERM_PORT", "1"),
        ("ISOTHERM_ADMIN_HOST", "::"),
        ("ISOTHERM_ADMIN_PORT", "2"),
        ("ISOTHERM_KEYS_FILE", files.path("keys").to_str().unwrap()),
        ("ISOTHERM_ACCESS_LOG", "stderr"),
        ("ISOTHERM_EXPOSE_DECISIONS", "true"),
    ]);
    let config = load_flags(&variables, &Overrides::default()).unwrap();
    assert_eq!((config.listen.to_string(), config.admin.listen.to_string()), ("0.0.0.0:1".into(), "[::]:2".into()));
    assert_eq!(ids(&config.endpoints[0].variants[0].instances), ["http://a:1", "http://b:2", "c"]);
    assert_eq!(strategy(&config), StrategyName::LeastOutstandingRequests);
    assert!(matches!(config.auth, Auth::Keys { .. }));
    assert_eq!((config.access_log, config.expose_decisions), (AccessLogTarget::Stderr, true));
}

#[test]
fn what_kubernetes_puts_beside_a_service_of_our_name_is_no_port() {
    let variables =
        environment(&[("ISOTHERM_PORT", "tcp://10.96.0.1:80"), ("ISOTHERM_ADMIN_PORT", "tcp://10.96.0.2:80")]);
    let config = load_flags(&variables, &instances(&["http://a"])).unwrap();
    assert_eq!((config.listen, config.admin.listen), (Config::DEFAULT_LISTEN, crate::Admin::DEFAULT_LISTEN));
}

#[test]
fn given_instances_take_the_place_of_those_of_the_only_variant() {
    let files = Files::with(
        "endpoints: [{ name: e, variants: [{ name: v, routing: { rollout: 5 }, instances: [{ url: 'http://a' }] }] }]",
    );
    let config = files.load(&Environment::default(), &instances(&["http://b"])).unwrap();
    let variant = &config.endpoints[0].variants[0];
    assert_eq!((ids(&variant.instances), variant.routing.rollout.percent()), (vec!["http://b".to_owned()], 5));
}

#[test]
fn who_may_call_is_one_question_with_one_answer() {
    let files = Files::with(
        "listen: 0.0.0.0:1
auth: { keys_file: keys }
endpoints: [{ name: e, variants: [{ name: v, instances: [] }] }]
",
    );
    let anyone = Overrides { auth: some("none"), ..Overrides::default() };
    assert_eq!(files.load(&Environment::default(), &anyone).unwrap().auth, Auth::None);
    let variables = environment(&[("ISOTHERM_KEYS_FILE", "/nonexistent")]);
    assert_eq!(files.load(&variables, &anyone).unwrap().auth, Auth::None);
    let holders = Overrides { keys_file: files.path("keys").to_str().map(str::to_owned), ..Overrides::default() };
    let variables = environment(&[("ISOTHERM_AUTH", "none")]);
    assert!(matches!(files.load(&variables, &holders).unwrap().auth, Auth::Keys { .. }));
}

#[test]
fn a_seed_can_come_from_a_secret() {
    let endpoints = "endpoints: [{ name: e, variants: [{ name: v, instances: [] }] }]";
    let files = Files::with(&format!("hash_seed_file: seed\n{endpoints}"));
    std::fs::write(files.path("seed"), "42\n").unwrap();
    assert_eq!(files.load(&Environment::default(), &Overrides::default()).unwrap().hash_seed, HashSeed(42));
    let files = Files::with(&format!("hash_seed_env: SEED\n{endpoints}"));
    let config = files.load(&environment(&[("SEED", "secret")]), &Overrides::default()).unwrap();
    assert_eq!(config.hash_seed, HashSeed(0x2bb8_0d53_7b1d_a3e3));
}

#[test]
fn anchors_and_merges_are_understood() {
    let config = load(
        "endpoints:
  - name: e
    variants:
      - &v { name: v, routing: { strategy: RANDOM }, instances: [] }
      - { <<: *v, name: w }
",
    )
    .unwrap();
    let [v, w] = config.endpoints[0].variants.as_slice() else { panic!("two variants") };
    assert_eq!((w.name.as_str(), w.routing), ("w", v.routing));
}

#[test]
fn json_is_yaml() {
    let config = load(
        r#"{"listen": "127.0.0.1:1", "endpoints": [{"name": "e", "variants": [{"name": "v", "instances": []}]}]}"#,
    );
    assert_eq!(config.unwrap().listen.port(), 1);
}
