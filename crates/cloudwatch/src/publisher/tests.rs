//! Tests of the publisher over a fleet of its own.

use isotherm_config::{Config, Environment, Health, Name, Overrides, TrafficWeight};
use isotherm_core::{InstanceId, Routing};
use isotherm_fleet::{Clock, ComponentKind, ManagedComponent, ManagedEndpoint, ManagedInstance, ManagedVariant};
use isotherm_telemetry::{Invocation, Metrics, Outcome};

use super::*;
use crate::{Dimension, Limits, Statistic, Window};

const ACCOUNT: &str = "123456789012";
const NOON: u64 = 1_795_953_600;

fn fleet() -> Fleet {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("isotherm.yaml");
    let instances = "[{url: 'http://10.0.0.1:1'}, {url: 'http://10.0.0.2:1'}]";
    let yaml = format!("endpoints: [{{name: chat, variants: [{{name: blue, instances: {instances}}}]}}]");
    std::fs::write(&file, yaml).expect("a written file");
    let config = Config::load(Some(&file), &Environment::default(), &Overrides::default());
    Fleet::new(&config.expect("a valid configuration"), Arc::new(Metrics::new("test")), Clock::start())
}

fn publisher() -> Publisher {
    let cloudwatch = CloudWatch::open(None, Limits::default()).expect("no store to read");
    Publisher::new(cloudwatch, fleet(), ACCOUNT)
}

fn invocation() -> Invocation {
    Invocation {
        status: 200,
        outcome: Outcome::Ok,
        spilled: false,
        overhead: Some(Duration::from_micros(200)),
        model: Some(Duration::from_millis(400)),
        first_token: Some(Duration::from_millis(100)),
        cached_of_prompt: Some((1000, 800)),
    }
}

/// Requests that end on the first instance.
fn serve(fleet: &Fleet, invocations: &[Invocation]) {
    let topology = fleet.topology();
    let variant = topology.variants().next().expect("a variant");
    let instance = &variant.instances(fleet.clock().now())[0].instance;
    for invocation in invocations {
        variant.metrics().invocations().count(invocation);
        instance.metrics().invocations().count(invocation);
    }
}

fn publish(publisher: &mut Publisher, now: u64) {
    let readings = reading::readings(&publisher.fleet, &publisher.account);
    publisher.sample(&readings);
    publisher.publish(&readings, now);
}

fn value(
    publisher: &Publisher,
    namespace: &str,
    name: &str,
    instance: Option<&str>,
    statistic: Statistic,
) -> Option<f64> {
    let mut dimensions = vec![Dimension::new("EndpointName", "chat"), Dimension::new("VariantName", "blue")];
    dimensions.extend(instance.map(|instance| Dimension::new("InstanceId", instance)));
    let metric = Metric::new(ACCOUNT, namespace, name, dimensions);
    let periods =
        publisher.cloudwatch.metrics().periods(&metric, None, Window { start: NOON, end: NOON + 60, period: 60 });
    periods.first().and_then(|(_, values)| statistic.of(values))
}

#[test]
fn what_was_added_becomes_metrics_once() {
    let mut publisher = publisher();
    serve(
        &publisher.fleet,
        &[
            invocation(),
            Invocation { spilled: true, ..invocation() },
            Invocation { status: 500, cached_of_prompt: None, first_token: None, ..invocation() },
            Invocation { status: 429, cached_of_prompt: Some((1000, 0)), ..invocation() },
        ],
    );
    publish(&mut publisher, NOON + 10);
    serve(&publisher.fleet, &[invocation()]);
    publish(&mut publisher, NOON + 20);
    publish(&mut publisher, NOON + 30);
    use Statistic::{Average, Percentile, SampleCount, Sum};
    for (namespace, name, statistic, expected) in [
        ("AWS/SageMaker", "Invocations", Sum, 5.0),
        ("AWS/SageMaker", "Invocations", SampleCount, 5.0),
        ("AWS/SageMaker", "InvocationsPerInstance", Sum, 2.5),
        ("AWS/SageMaker", "Invocation4XXErrors", Average, 0.2),
        ("AWS/SageMaker", "Invocation5XXErrors", Sum, 1.0),
        ("AWS/SageMaker", "InvocationModelErrors", Sum, 2.0),
        ("AWS/SageMaker", "MidStreamErrors", Sum, 0.0),
        ("AWS/SageMaker", "ModelLatency", Average, 400_000.0),
        ("AWS/SageMaker", "OverheadLatency", Sum, 1000.0),
        ("AWS/SageMaker", "FirstChunkLatency", SampleCount, 4.0),
        ("AWS/SageMaker", "ConcurrentRequestsPerModel", SampleCount, 6.0),
        ("AWS/SageMaker", "ConcurrentRequestsPerModel", Average, 0.0),
        ("Isotherm", "KVCacheHitRate", Average, 0.6),
        ("Isotherm", "Spills", Average, 0.2),
    ] {
        let found = value(&publisher, namespace, name, None, statistic);
        assert!(found.is_some_and(|found| (found - expected).abs() < 1e-9), "{name} {statistic}: {found:?}");
    }
    let p90 = value(&publisher, "Isotherm", "TimeToFirstToken", None, Percentile(90.0)).expect("first tokens");
    assert!((p90 / 0.1 - 1.0).abs() < 0.0251, "{p90}");
}

#[test]
fn how_busy_machines_are_stands_under_sagemakers_names() {
    use isotherm_fleet::Machine;
    let mut publisher = publisher();
    let mut readings = reading::readings(&publisher.fleet, &publisher.account);
    let two = Machine { cpu: Some(10.0), memory: Some(30.0), gpu: Some(150.0), gpu_memory: Some(40.0), gpus: 2 };
    let silent = Machine { memory: Some(50.0), ..Machine::default() };
    readings.iter_mut().for_each(|reading| reading.machines = vec![two, silent]);
    publisher.publish(&readings, NOON + 10);
    let of = |name, statistic| value(&publisher, "/aws/sagemaker/Endpoints", name, None, statistic);
    for (name, average, count) in [
        ("CPUUtilizationNormalized", 10.0, 1.0),
        ("MemoryUtilization", 40.0, 2.0),
        ("GPUUtilization", 150.0, 1.0),
        ("GPUUtilizationNormalized", 75.0, 1.0),
        ("GPUMemoryUtilization", 40.0, 1.0),
        ("GPUMemoryUtilizationNormalized", 20.0, 1.0),
    ] {
        let told = (of(name, Statistic::Average), of(name, Statistic::SampleCount));
        assert_eq!(told, (Some(average), Some(count)), "{name}");
    }
    let of_instance =
        value(&publisher, "/aws/sagemaker/Endpoints", "GPUUtilization", Some("http://10.0.0.1:1"), Statistic::Maximum);
    assert_eq!(of_instance, Some(150.0));
}

#[test]
fn instances_have_metrics_of_their_own() {
    let mut publisher = publisher();
    serve(&publisher.fleet, &[invocation(), invocation()]);
    publish(&mut publisher, NOON + 10);
    let of_instance =
        |namespace, name, statistic| value(&publisher, namespace, name, Some("http://10.0.0.1:1"), statistic);
    assert_eq!(of_instance("AWS/SageMaker", "Invocations", Statistic::Sum), Some(2.0));
    assert_eq!(of_instance("AWS/SageMaker", "MidStreamErrors", Statistic::SampleCount), Some(2.0));
    assert_eq!(of_instance("AWS/SageMaker", "FirstChunkModelLatency", Statistic::SampleCount), Some(2.0));
    assert_eq!(of_instance("Isotherm", "KVCacheHitRate", Statistic::Average), Some(0.8));
    assert_eq!(value(&publisher, "AWS/SageMaker", "Invocations", Some("http://10.0.0.2:1"), Statistic::Sum), None);
}

fn instance(id: &str, host: Option<&str>) -> ManagedInstance {
    let instance = ManagedInstance::new(id, format!("http://{id}:1").parse().expect("a URL"));
    ManagedInstance { host: host.map(InstanceId::from), ..instance }
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

/// An endpoint of another account, whose two instances hold a component in one copy.
fn endpoint_with_component() -> ManagedEndpoint {
    let variant = ManagedVariant {
        name: name("all"),
        revision: 1,
        weight: TrafficWeight::new(1.0).expect("a weight"),
        routing: Routing::default(),
        health: Health::default(),
        instances: vec![instance("i-0", None), instance("i-1", None)],
    };
    let copies = vec![instance("c-0", Some("i-0"))];
    let kind = ComponentKind::Base { routing: Routing::default(), health: Health::default(), copies };
    let component = ManagedComponent { name: name("llama"), production_variant: name("all"), kind };
    ManagedEndpoint {
        name: "210987654321/ics".into(),
        variants: vec![variant],
        shadow: None,
        components: Some(vec![component]),
        async_output: None,
    }
}

#[test]
fn a_components_requests_are_its_variants_too_and_end_with_neither() {
    let mut publisher = publisher();
    let mut wanted = endpoint_with_component();
    publisher.fleet.put_endpoint(&wanted).expect("an endpoint");
    let component = {
        let topology = publisher.fleet.topology();
        let endpoint = topology.endpoint("210987654321/ics").expect("the endpoint");
        Arc::clone(&endpoint.component("llama").expect("the component").variant)
    };
    let copy = Arc::clone(&component.instances(publisher.fleet.clock().now())[0].instance);
    for _ in 0..4 {
        component.metrics().invocations().count(&invocation());
        copy.metrics().invocations().count(&invocation());
    }
    publish(&mut publisher, NOON + 10);
    wanted.components = Some(Vec::new());
    publisher.fleet.put_endpoint(&wanted).expect("the same endpoint");
    publish(&mut publisher, NOON + 20);

    let of_component = || vec![Dimension::new("InferenceComponentName", "llama")];
    let of_variant = || vec![Dimension::new("EndpointName", "ics"), Dimension::new("VariantName", "all")];
    let metrics = publisher.cloudwatch.metrics();
    let window = Window { start: NOON, end: NOON + 60, period: 60 };
    let sum = |name, dimensions| {
        let metric = Metric::new("210987654321", "AWS/SageMaker", name, dimensions);
        metrics.periods(&metric, None, window).first().map(|(_, values)| (values.sum(), values.count()))
    };
    assert_eq!(sum("Invocations", of_component()), Some((4.0, 4.0)));
    let of_copy = || {
        let of_host = [Dimension::new("InferenceComponentName", "llama"), Dimension::new("InstanceId", "i-0")];
        of_variant().into_iter().chain(of_host).chain([Dimension::new("ContainerId", "c-0")]).collect()
    };
    assert_eq!(sum("Invocations", of_copy()), Some((4.0, 4.0)));
    assert_eq!(sum("FirstChunkLatency", of_copy()).map(|(_, count)| count), Some(4.0));
    assert_eq!(sum("InvocationsPerCopy", of_component()), Some((4.0, 4.0)));
    assert_eq!(sum("ConcurrentRequestsPerCopy", of_component()), Some((0.0, 1.0)));
    assert_eq!(sum("Invocations", of_variant()), Some((4.0, 4.0)), "once, also after the component is gone");
    assert_eq!(sum("InvocationsPerInstance", of_variant()), Some((2.0, 4.0)));
    assert_eq!(sum("ConcurrentRequestsPerModel", of_variant()), Some((0.0, 1.0)), "of copies, not of their hosts");
}

#[test]
fn the_values_lie_in_the_ten_seconds_that_have_just_passed() {
    let mut publisher = publisher();
    serve(&publisher.fleet, &[invocation()]);
    publish(&mut publisher, NOON + 10);
    let dimensions = vec![Dimension::new("EndpointName", "chat"), Dimension::new("VariantName", "blue")];
    let metric = Metric::new(ACCOUNT, "AWS/SageMaker", "Invocations", dimensions);
    let window = Window { start: NOON, end: NOON + 60, period: 10 };
    let times: Vec<u64> =
        publisher.cloudwatch.metrics().periods(&metric, None, window).iter().map(|(t, _)| *t).collect();
    assert_eq!(times, [NOON]);
}
