//! What the checks find, and that they find nothing where all is well.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use isotherm_config::{Config, Environment, Overrides};
use isotherm_fleet::{EngineFigures, EngineReport};
use isotherm_telemetry::InstanceCounts;
use isotherm_tls::Validity;

use super::*;
use crate::alerts::{BaseModel, InstanceReading, VariantReading};
use crate::observer::Short;

fn config(text: &str) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("isotherm.yaml");
    std::fs::write(&path, text).unwrap();
    std::fs::write(folder.path().join("keys"), "").unwrap();
    let instances = "endpoints: [{ name: e, variants: [{ name: v, instances: [{ url: 'http://a' }] }] }]\n";
    std::fs::write(&path, format!("{instances}{text}")).unwrap();
    load(&path)
}

fn load(path: &Path) -> Config {
    Config::load(Some(path), &Environment::default(), &Overrides::default()).unwrap()
}

fn model(id: &str) -> BaseModel {
    BaseModel { id: id.to_owned(), root: None, context: None }
}

fn instance(id: &str) -> InstanceReading {
    let page = "vllm:cache_config_info{block_size=\"16\",enable_prefix_caching=\"True\"} 1\n";
    InstanceReading {
        id: id.to_owned(),
        availability: "up",
        counts: InstanceCounts {
            requests: 100,
            prompt_tokens: 100_000,
            cached_tokens: 80_000,
            cache_reported_prompt_tokens: 100_000,
            ..InstanceCounts::default()
        },
        engine: EngineReport {
            figures: Some((Arc::new(EngineFigures::read(page).unwrap()), SystemTime::UNIX_EPOCH)),
            clock_ahead: Some(0.4),
            ..EngineReport::default()
        },
        models: Some(BTreeSet::from([model("llama")])),
        ..InstanceReading::default()
    }
}

fn facts() -> Facts {
    let variant = VariantReading {
        endpoint: "e".to_owned(),
        variant: "v".to_owned(),
        prefix_length: Some(4_096),
        short: Short { prompts: 100, short: 5, tokens: 200_000 },
        instances: vec![instance("i"), instance("j")],
        ..VariantReading::default()
    };
    Facts { now: SystemTime::UNIX_EPOCH, variants: vec![variant], most_files: Some(1 << 20) }
}

/// What is not as it should be: check, verdict, subject.
fn wrong(config: &Config, facts: &Facts) -> Vec<(String, Verdict, String)> {
    let findings = checks::all(config, facts);
    for finding in &findings {
        assert_eq!(finding.fix.is_empty(), finding.verdict == Verdict::Ok, "{finding:?}");
    }
    let wrong = findings.into_iter().filter(|finding| finding.verdict != Verdict::Ok);
    wrong.map(|finding| (finding.check, finding.verdict, finding.subject)).collect()
}

fn of_instance(change: impl FnOnce(&mut InstanceReading)) -> Vec<(String, Verdict, String)> {
    let mut facts = facts();
    change(&mut facts.variants[0].instances[1]);
    wrong(&config(""), &facts)
}

fn one(check: &str, verdict: Verdict, subject: &str) -> Vec<(String, Verdict, String)> {
    vec![(check.to_owned(), verdict, subject.to_owned())]
}

#[test]
fn all_is_well_and_every_check_says_so() {
    assert_eq!(wrong(&config(""), &facts()), []);
    let checks: Vec<String> = checks::all(&config(""), &facts()).into_iter().map(|finding| finding.check).collect();
    let expected = [
        "instances",
        "replicas",
        "prefix caching",
        "cached tokens",
        "engine metrics",
        "clocks",
        "prefix length",
        "limits",
        "file descriptors",
        "security",
    ];
    assert_eq!(checks, expected);
}

#[test]
fn every_illness_of_an_instance_is_found_once() {
    assert_eq!(of_instance(|i| i.availability = "down"), one("instances", Verdict::Problem, "j"));
    assert_eq!(of_instance(|i| i.availability = "ejected"), one("instances", Verdict::Warning, "j"));
    assert_eq!(of_instance(|i| i.models = None), one("instances", Verdict::Warning, "j"));
    let other = Some(BTreeSet::from([model("qwen")]));
    assert_eq!(of_instance(|i| i.models = other), one("replicas", Verdict::Problem, "e/v"));
    assert_eq!(of_instance(|i| i.engine.clock_ahead = Some(-90.0)), one("clocks", Verdict::Warning, "j"));
    let silent = |i: &mut InstanceReading| {
        (i.counts.cached_tokens, i.counts.cache_reported_prompt_tokens) = (0, 0);
    };
    assert_eq!(of_instance(silent), one("cached tokens", Verdict::Warning, "j"));
    let without_usage = |i: &mut InstanceReading| {
        silent(i);
        i.counts.prompt_tokens = 0;
    };
    assert_eq!(of_instance(without_usage), one("cached tokens", Verdict::Warning, "j"));
    let without_metrics = |i: &mut InstanceReading| {
        (i.engine.figures, i.engine.problem) = (None, Some("GET /metrics was answered with 404 Not Found".into()));
    };
    assert_eq!(of_instance(without_metrics), one("engine metrics", Verdict::Warning, "j"));
    let off = |i: &mut InstanceReading| {
        i.repeated = crate::observer::Repeated { requests: 20, misses: 20 };
        (i.counts.cached_tokens, i.engine.figures) = (0, None);
    };
    assert_eq!(of_instance(off), one("prefix caching", Verdict::Problem, "j"));
}

#[test]
fn a_certificate_is_told_of_before_it_ends_and_when_it_has() {
    const DAY: Duration = Duration::from_secs(86_400);
    let at = |day: u32| SystemTime::UNIX_EPOCH + day * DAY;
    let until = |day: u32, availability: &'static str| {
        let mut facts = Facts { now: at(1_000), ..facts() };
        let validity = Validity { from: at(900), until: at(day) };
        let instance = &mut facts.variants[0].instances[1];
        (instance.certificate, instance.availability) = (Some(validity), availability);
        facts
    };
    let told_of = |facts: Facts| {
        let mut findings = checks::all(&config(""), &facts).into_iter();
        let Finding { verdict, subject, finding, fix, .. } = findings.find(|one| one.check == "TLS").unwrap();
        assert_eq!((&*subject, fix.is_empty()), if verdict == Verdict::Ok { ("e/v", true) } else { ("j", false) });
        (verdict, finding)
    };
    let well = "certificates of 1 of 2: the first expires in 20 days".to_owned();
    assert_eq!(told_of(until(1_020, "up")), (Verdict::Ok, well));
    assert_eq!(told_of(until(1_013, "up")), (Verdict::Warning, "its certificate expires in 13 days".to_owned()));
    let expired = || "its certificate has expired 3 days ago".to_owned();
    assert_eq!(told_of(until(997, "down")), (Verdict::Problem, expired()));
    assert_eq!(told_of(until(997, "up")), (Verdict::Warning, expired()), "verify: false");
}

#[test]
fn a_variant_without_instances_and_prompts_below_the_prefix_length() {
    let mut facts = facts();
    facts.variants[0].short.short = 80;
    assert_eq!(wrong(&config(""), &facts), one("prefix length", Verdict::Warning, "e/v"));
    facts.variants[0].short.prompts = 3;
    facts.variants[0].instances.clear();
    assert_eq!(wrong(&config(""), &facts), one("instances", Verdict::Problem, "e/v"));
}

#[test]
fn settings_that_do_not_suit() {
    let small = config("limits: { body: 64KiB }\n");
    assert_eq!(wrong(&small, &facts()), one("limits", Verdict::Warning, "router"));
    let keeps = config("timeouts: { pool_idle: 10s }\n");
    assert_eq!(wrong(&keeps, &facts()), one("limits", Verdict::Warning, "router"));
    let few = Facts { most_files: Some(1_024), ..facts() };
    assert_eq!(wrong(&config(""), &few), one("file descriptors", Verdict::Warning, "router"));
    let open = wrong(&config("listen: 0.0.0.0:8080\nauth: none\n"), &facts());
    assert_eq!(
        open,
        [one("security", Verdict::Warning, "router"), one("security", Verdict::Warning, "router")].concat()
    );
    assert_eq!(wrong(&config("listen: 0.0.0.0:8080\nauth: none\nhash_seed: 7\n"), &facts()).len(), 1);
}

#[test]
fn routers_that_stand_beside_each_other_must_agree() {
    let checkup = |seed: &str, length: u32| Checkup {
        version: "1".to_owned(),
        routing: json!({ "hash_seed": seed, "variants": { "e/v": {
            "strategy": "PREFIX_AWARE", "prefix_length": length, "rollout": 100, "instances": ["i ×1"] } } }),
        findings: Vec::new(),
    };
    let of = |routers: &[(&str, Checkup)]| {
        let routers: Vec<_> = routers.iter().map(|(name, checkup)| ((*name).to_owned(), checkup.clone())).collect();
        Checkup::disagreements(&routers)
            .into_iter()
            .map(|finding| (finding.subject, finding.finding))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&[("a", checkup("1", 4_096))]), []);
    let agree = of(&[("a", checkup("1", 4_096)), ("b", checkup("1", 4_096))]);
    assert_eq!(agree, [("a".to_owned(), "2 routers agree on seed, strategy and instances".to_owned())]);
    let differ = of(&[("a", checkup("1", 4_096)), ("b", checkup("2", 1_024))]);
    assert_eq!(
        differ,
        [
            ("b".to_owned(), "hash_seed differs from that of a".to_owned()),
            ("b".to_owned(), "e/v: prefix_length differs from that of a".to_owned()),
        ]
    );
}
