//! Each rule fires on what it was made for, and on nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use isotherm_config::Alerts;
use isotherm_fleet::{EngineFigures, EngineReport};
use isotherm_telemetry::InstanceCounts;
use serde_json::{Value, json};

use super::readings::{BaseModel, InstanceReading, VariantReading};
use super::rules;
use crate::observer::{Repeated, Short};

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn vllm(extra: &str) -> EngineFigures {
    EngineFigures::read(&format!("vllm:num_requests_running 1\n{extra}")).unwrap()
}

fn model(id: &str) -> BaseModel {
    BaseModel { id: id.to_owned(), root: None, context: Some(8_192) }
}

/// A replica that does well.
fn instance(id: &str) -> InstanceReading {
    let config = "vllm:cache_config_info{block_size=\"16\",enable_prefix_caching=\"True\"} 1\n";
    InstanceReading {
        id: id.to_owned(),
        availability: "up",
        problem: None,
        certificate: None,
        fair_share: 0.25,
        counts: InstanceCounts {
            requests: 250,
            prompt_tokens: 2_000_000,
            cached_tokens: 1_600_000,
            cache_reported_prompt_tokens: 2_000_000,
            ..InstanceCounts::default()
        },
        repeated: Repeated { requests: 200, misses: 4 },
        engine: EngineReport {
            figures: Some((Arc::new(vllm(config)), now())),
            version: Some("0.32.0".into()),
            template: Some(7 << 32),
            ..EngineReport::default()
        },
        models: Some(BTreeSet::from([model("llama")])),
    }
}

/// A variant that does well, busy enough for every rule.
fn well() -> VariantReading {
    VariantReading {
        endpoint: "chat".to_owned(),
        variant: "a".to_owned(),
        requests: 1_000,
        spilled: 20,
        hit_rate: Some(0.8),
        repeat_share: Some(0.9),
        prefix_length: Some(4_096),
        short: Short { prompts: 1_000, short: 10, tokens: 1_000_000 },
        first_token_p95: Some(0.9),
        first_tokens: 1_000,
        hottest: Some(("ab".repeat(16), 0.2)),
        instances: ["i", "j", "k", "l"].map(instance).into(),
    }
}

/// What fires, by name and instance.
fn fires(variant: VariantReading) -> Vec<(&'static str, Option<String>)> {
    let conditions = rules::check(&[variant], &Alerts::default(), now());
    conditions
        .into_iter()
        .map(|condition| {
            assert!(rules::NAMES.contains(&condition.rule));
            assert!(condition.description.ends_with('.'), "{}", condition.description);
            (condition.rule, condition.labels.get("instance").cloned())
        })
        .collect()
}

fn changed(change: impl FnOnce(&mut VariantReading)) -> Vec<(&'static str, Option<String>)> {
    let mut variant = well();
    change(&mut variant);
    fires(variant)
}

fn of_instance(change: impl FnOnce(&mut InstanceReading)) -> Vec<(&'static str, Option<String>)> {
    changed(|variant| change(&mut variant.instances[1]))
}

fn only(rule: &'static str) -> Vec<(&'static str, Option<String>)> {
    vec![(rule, None)]
}

fn at_j(rule: &'static str) -> Vec<(&'static str, Option<String>)> {
    vec![(rule, Some("j".to_owned()))]
}

#[test]
fn nothing_fires_where_all_is_well_or_nothing_happens() {
    assert_eq!(fires(well()), []);
    assert_eq!(fires(VariantReading::default()), []);
    let silent = |variant: &mut VariantReading| {
        (variant.hit_rate, variant.repeat_share, variant.first_token_p95) = (None, None, None);
        for instance in &mut variant.instances {
            (instance.counts, instance.repeated) = (InstanceCounts::default(), Repeated::default());
            (instance.engine, instance.models) = (EngineReport::default(), None);
        }
    };
    assert_eq!(changed(silent), []);
}

#[test]
fn a_low_hit_rate_fires_only_where_prefixes_repeat_and_make_up_enough_of_the_prompts() {
    assert_eq!(changed(|variant| variant.hit_rate = Some(0.2)), only("IsothermLowHitRate"));
    assert_eq!(changed(|variant| (variant.hit_rate, variant.repeat_share) = (Some(0.0), Some(0.1))), []);
    let long = |variant: &mut VariantReading| {
        (variant.hit_rate, variant.short.tokens) = (Some(0.1), 30_000_000);
    };
    assert_eq!(changed(long), [], "4,096 characters of 30,000 tokens promise nothing");
    assert_eq!(changed(|variant| (variant.hit_rate, variant.requests) = (Some(0.2), 10)), [], "too few to tell");
}

#[test]
fn a_full_cache_fires_by_missed_repeats_or_by_what_adaptive_believed() {
    let missed = |instance: &mut InstanceReading| instance.repeated = Repeated { requests: 40, misses: 20 };
    assert_eq!(of_instance(missed), at_j("IsothermCachePressure"));
    let few = |instance: &mut InstanceReading| instance.repeated = Repeated { requests: 6, misses: 5 };
    assert_eq!(of_instance(few), []);
    let believed = |instance: &mut InstanceReading| instance.counts.expected_cached_tokens = Some(2_000_000 * 9 / 10);
    assert_eq!(of_instance(believed), [], "1.6 of 1.8 million");
    let lost = |instance: &mut InstanceReading| {
        (instance.counts.expected_cached_tokens, instance.counts.cached_tokens) = (Some(1_500_000), 900_000);
    };
    assert_eq!(of_instance(lost), at_j("IsothermCachePressure"));
}

#[test]
fn a_hot_prefix_fires_only_where_its_home_is_full() {
    let hot = |variant: &mut VariantReading| {
        (variant.hottest, variant.spilled) = (Some(("ab".repeat(16), 0.6)), 100);
        variant.instances[0].counts.requests = 1_000;
    };
    assert_eq!(changed(hot), only("IsothermHotPrefix"));
    assert_eq!(changed(|variant| (hot(variant), variant.spilled = 0).1), [], "it fits");
    assert_eq!(changed(|variant| (hot(variant), variant.instances[0].counts.requests = 250).1), [], "it is spread");
}

#[test]
fn spills_ill_instances_and_slow_first_tokens() {
    assert_eq!(changed(|variant| variant.spilled = 250), only("IsothermSpills"));
    for word in ["down", "ejected"] {
        assert_eq!(of_instance(|instance| instance.availability = word), at_j("IsothermInstanceIll"));
    }
    assert_eq!(of_instance(|instance| instance.availability = "draining"), []);
    let mut all_down = well();
    all_down.instances.iter_mut().for_each(|instance| instance.availability = "down");
    let conditions = rules::check(&[all_down], &Alerts::default(), now());
    assert!(conditions.iter().all(|condition| condition.severity == "critical") && conditions.len() == 4);
    assert_eq!(changed(|variant| variant.first_token_p95 = Some(6.0)), only("IsothermSlowFirstToken"));
    assert_eq!(changed(|variant| (variant.first_token_p95, variant.first_tokens) = (Some(6.0), 3)), []);
}

#[test]
fn an_engine_that_caches_nothing_fires_once_and_is_not_called_too_small() {
    let off = |instance: &mut InstanceReading| {
        instance.repeated = Repeated { requests: 40, misses: 40 };
        instance.counts.cached_tokens = 0;
        instance.engine.figures = None;
    };
    assert_eq!(of_instance(off), at_j("IsothermPrefixCachingOff"));
    let few = |instance: &mut InstanceReading| {
        off(instance);
        instance.repeated = Repeated { requests: 3, misses: 3 };
    };
    assert_eq!(of_instance(few), []);
    // By its word, even without traffic.
    let config = "vllm:cache_config_info{block_size=\"16\",enable_prefix_caching=\"False\"} 1\n";
    let says_so = |instance: &mut InstanceReading| {
        instance.repeated = Repeated::default();
        instance.engine.figures = Some((Arc::new(vllm(config)), now()));
    };
    assert_eq!(of_instance(says_so), at_j("IsothermPrefixCachingOff"));
    // One that says that it caches has lost what it had.
    let lost = |instance: &mut InstanceReading| {
        instance.repeated = Repeated { requests: 40, misses: 40 };
        instance.counts.cached_tokens = 0;
    };
    assert_eq!(of_instance(lost), at_j("IsothermCachePressure"));
}

#[test]
fn replicas_that_differ_fire_by_what_both_say() {
    let page = |text| Some((Arc::new(vllm(text)), now()));
    let on = "enable_prefix_caching=\"True\"";
    let blocks = page(&format!("vllm:cache_config_info{{block_size=\"32\",{on}}} 1\n"));
    assert_eq!(of_instance(|instance| instance.engine.figures = blocks), only("IsothermReplicasDisagree"));
    assert_eq!(
        of_instance(|instance| instance.engine.version = Some("0.33.0".into())),
        only("IsothermReplicasDisagree")
    );
    assert_eq!(of_instance(|instance| instance.engine.template = Some(8 << 32)), only("IsothermReplicasDisagree"));
    let other = Some(BTreeSet::from([model("qwen")]));
    assert_eq!(of_instance(|instance| instance.models = other.clone()), only("IsothermReplicasDisagree"));
    assert_eq!(of_instance(|instance| (instance.engine.version, instance.models) = (None, None)), []);
    let drained = |instance: &mut InstanceReading| {
        (instance.engine.version, instance.availability) = (Some("0.33.0".into()), "draining");
    };
    assert_eq!(of_instance(drained), [], "it goes, or is being replaced");
}

/// The values of the one alert that fires after a change.
fn values(change: impl FnOnce(&mut VariantReading)) -> Value {
    let mut variant = well();
    change(&mut variant);
    let conditions = rules::check(&[variant], &Alerts::default(), now());
    assert_eq!(conditions.len(), 1, "{conditions:?}");
    conditions[0].values.clone()
}

#[test]
fn every_alert_tells_what_its_words_are_made_of() {
    let low = values(|variant| variant.hit_rate = Some(0.25));
    assert_eq!(low, json!({ "hit_rate": 0.25, "repeats": 0.9, "goal": 0.3 }));
    let lost = values(|variant| variant.instances[1].repeated = Repeated { requests: 40, misses: 20 });
    assert_eq!(lost, json!({ "missing": 0.5, "kv_cache_usage": null }));
    let hot = values(|variant| {
        (variant.hottest, variant.spilled) = (Some(("ab".repeat(16), 0.5)), 100);
        variant.instances[0].counts.requests = 2_250;
    });
    let expected = json!({ "share": 0.5, "prefix": "ab".repeat(8), "busiest": "i", "skew": 3.0, "spilled": 0.1 });
    assert_eq!(hot, expected);
    assert_eq!(values(|variant| variant.spilled = 250), json!({ "share": 0.25 }));
    let ill = values(|variant| variant.instances[1].availability = "down");
    assert_eq!(ill, json!({ "availability": "down", "problem": null }));
    let slow = values(|variant| variant.first_token_p95 = Some(6.5));
    assert_eq!(slow, json!({ "p95_seconds": 6.5, "goal_seconds": 5.0 }));
    let off = values(|variant| {
        let instance = &mut variant.instances[1];
        (instance.repeated, instance.engine.figures) = (Repeated { requests: 40, misses: 40 }, None);
        instance.counts.cached_tokens = 0;
    });
    assert_eq!(off, json!({ "requests": 40 }));
    let disagree = values(|variant| variant.instances[3].models = Some(BTreeSet::from([model("qwen")])));
    let opinion = |id: &str, instances: &[&str]| {
        let says = json!([{ "id": id, "root": null, "context": 8_192 }]);
        json!({ "says": says, "instances": instances, "more": 0 })
    };
    let opinions = [opinion("llama", &["i", "j", "k"]), opinion("qwen", &["l"])];
    assert_eq!(disagree, json!({ "differences": [{ "aspect": "model", "opinions": opinions }] }));
    assert_eq!(values(|variant| variant.instances[1].engine.restarted = Some(now())), Value::Null);
}

#[test]
fn a_restart_is_told_for_a_while() {
    let ago = |seconds| {
        move |instance: &mut InstanceReading| {
            instance.engine.restarted = Some(now() - Duration::from_secs(seconds));
        }
    };
    assert_eq!(of_instance(ago(10)), at_j("IsothermEngineRestarted"));
    assert_eq!(of_instance(ago(301)), []);
}
