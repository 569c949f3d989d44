//! What a simulated fleet does, seen from outside.

use crate::{Figure, InvalidScenario, Rule, Scenario, compare, shipped, simulate, size_for, tune};
use std::time::Duration;

use isotherm_report::study::text;
use isotherm_report::{Observation, Run, Study};

fn scenario(text: &str) -> Scenario {
    Scenario::parse("test", text).unwrap_or_else(|error| panic!("{error}"))
}

/// Documents for a small fleet, with more keys of the scenario appended.
fn documents(more: &str) -> Scenario {
    scenario(&format!(
        "title: t
fleet: {{ instances: 3 }}
workload:
  documents: {{ users: 12, think: 1s, document_tokens: 3000, questions: [4, 6], question_tokens: 50, output_tokens: 40 }}
strategies: [RANDOM, PREFIX_AWARE]
duration: 3m
warm_up: 20s
{more}"
    ))
}

fn run(scenario: &Scenario, rule: &str, seed: u64) -> Run {
    simulate(scenario, &rule.parse::<Rule>().unwrap(), seed, &()).unwrap().run
}

fn json(study: &Study) -> String {
    serde_json::to_string_pretty(study).unwrap()
}

#[test]
fn the_same_seeds_give_the_same_bytes_however_many_threads_run() {
    let scenario = documents("seeds: 3");
    let once = json(&compare(&scenario, 1, &()).unwrap());
    assert_eq!(once, json(&compare(&scenario, 4, &()).unwrap()));
    assert_ne!(run(&scenario, "random", 1), run(&scenario, "random", 2));
}

#[test]
fn fresh_seeds_are_other_seeds() {
    let one = |first_seed| compare(&Scenario { first_seed, ..documents("seeds: 1") }, 1, &()).unwrap().report;
    assert_eq!((one(1).seed, one(4).seed), (1, 4));
    assert_ne!(one(1).strategies, one(4).strategies);
    assert_eq!(one(4).strategies, one(4).strategies);
}

#[test]
fn every_rule_answers_every_request_and_shows_up_in_the_report() {
    let mut scenario = documents("slo: { ttft: 300ms }\nprice_per_instance_hour: 98");
    scenario.strategies = Rule::all().collect();
    let study = compare(&scenario, 2, &()).unwrap();
    let told = text(&study);
    for (rule, summary) in Rule::all().zip(&study.report.strategies) {
        assert_eq!((summary.strategy.clone(), summary.errors), (rule.to_string(), 0));
        assert!(summary.requests > 500 && told.contains(&summary.strategy));
        let hit_rate = summary.measures.hit_rate.unwrap();
        assert!(hit_rate <= study.bound.unwrap().hit_rate + 0.01, "{rule}: {hit_rate}");
        assert!(summary.measures.cost_per_million_tokens.unwrap() > 0.0);
    }
}

#[test]
fn affinity_finds_in_the_cache_what_chance_does_not() {
    let study = compare(&documents(""), 1, &()).unwrap();
    let [random, prefix_aware] = [0, 1].map(|place| study.report.strategies[place].measures.hit_rate.unwrap());
    // Counting predicts 1 - 1/5 and 1 - 3(1 - (2/3)^5)/5 of the documents' share of the tokens.
    assert!((0.74..0.80).contains(&prefix_aware) && (0.42..0.52).contains(&random), "{prefix_aware} {random}");
}

#[test]
fn a_failed_instance_loses_answers_that_began_and_nothing_else() {
    let run = run(&documents("changes:\n  - { at: 60s, fail: 1, lasts: 30s }"), "prefix-aware", 1);
    let failed: Vec<&Observation> = run.observations.iter().filter(|observation| observation.failed).collect();
    assert!(!failed.is_empty() && failed.len() <= 12, "{}", failed.len());
    assert!(failed.iter().all(|lost| lost.instance == Some(1) && lost.ttft.is_some() && lost.end == 60_000_000_000));
    let during = run.observations.iter().filter(|observation| (60..90).contains(&(observation.send / 1_000_000_000)));
    assert!(during.clone().count() > 50 && during.clone().all(|observation| observation.instance != Some(1)));
    assert!(
        run.observations.iter().any(|observation| observation.send > 90_000_000_000 && observation.instance == Some(1))
    );
}

#[test]
fn instances_that_join_serve_after_their_cold_start_and_leave_without_losing_anything() {
    let changes = "changes:\n  - { at: 40s, add: 2, cold_start: 20s }\n  - { at: 120s, remove: 2 }";
    let run = run(&documents(changes), "prefix-aware", 1);
    assert_eq!(run.instances.len(), 5);
    assert!(run.observations.iter().all(|observation| !observation.failed));
    let new = || run.observations.iter().filter(|observation| observation.instance >= Some(3));
    let seconds = |observation: &Observation| observation.send / 1_000_000_000;
    assert!(new().all(|observation| (60..120).contains(&seconds(observation))) && new().count() > 50);
    // Three instances for 160 s, two from 40 s to shortly after 120 s, of the measured 160 s from 20 s on.
    let paid: u64 = run.parts.iter().map(|part| part.instance_time).sum::<u64>() / 1_000_000_000;
    assert!((640..=645).contains(&paid), "{paid}");
}

#[test]
fn requests_that_cannot_fit_fail_and_the_rest_goes_on() {
    let mut scenario = documents("");
    scenario.fleet.groups[0].profile =
        std::sync::Arc::new(isotherm_engine_model::Profile::default().with_kv_capacity_tokens(2_000));
    let run = run(&scenario, "random", 1);
    assert!(run.observations.len() > 500 && run.observations.iter().all(|observation| observation.failed));
}

#[test]
fn the_smallest_fleet_for_a_goal_reaches_it_and_one_fewer_does_not() {
    let goal = "ttft_p90<250ms".parse().unwrap();
    for sized in size_for(&documents("").with_load(4.0), &goal, 2, &()).unwrap() {
        assert!(sized.instances.is_some_and(|instances| instances > 1) && sized.figure.unwrap() < 250.0, "{sized:?}");
        assert!(sized.figure_with_one_fewer.unwrap() >= 250.0, "{sized:?}");
    }
}

#[test]
fn two_routers_that_tell_each_other_nothing_keep_prefixes_together() {
    let one = documents("");
    let two = Scenario { routers: 2, ..one.clone() };
    let hits = |scenario: &Scenario| compare(scenario, 1, &()).unwrap().report.strategies[1].measures.hit_rate.unwrap();
    let (one, two) = (hits(&one), hits(&two));
    assert!((one - two).abs() < 0.02, "PREFIX_AWARE places by the key alone: {one} {two}");
}

#[test]
fn tuning_finds_parameters_that_keep_documents_together() {
    let tuned =
        tune(&Scenario { duration: Duration::from_secs(60), ..documents("") }, Figure::HitRate, 2, &()).unwrap();
    let (best, worst) = (tuned.first().unwrap(), tuned.last().unwrap());
    assert!(tuned.len() > 63 && best.figure.unwrap() > worst.figure.unwrap() + 0.2, "{best:?} {worst:?}");
    assert!(worst.strategy.starts_with("PREFIX_AWARE@16384/") || worst.strategy.ends_with("/3"), "{worst:?}");
    assert_eq!(best.strategy.parse::<Rule>().unwrap().to_string(), best.strategy);
}

/// AWS's published ranges, widened by two points; hit rates by three. Ten minutes instead of an hour.
#[test]
fn both_measurements_of_aws_are_reproduced() {
    let rows = [
        ("aws-long", [-0.79, -0.69], [-0.39, -0.31], [0.13, 0.18], [0.25, 0.82]),
        ("aws-sharegpt", [-0.18, -0.11], [-0.39, -0.22], [-0.003, 0.04], [0.30, 0.80]),
    ];
    for (name, p50, p90, throughput, hit_rates) in rows {
        let shipped = shipped().find(|shipped| shipped.name == name).unwrap();
        let scenario = Scenario { duration: Duration::from_secs(600), seeds: 2, ..shipped.scenario().unwrap() };
        let study = compare(&scenario, 2, &()).unwrap();
        let [random, prefix_aware] = [0, 1].map(|place| &study.report.strategies[place]);
        let change = prefix_aware.change.as_ref().unwrap().measures;
        let ttft = change.ttft_ms.unwrap();
        for (figure, [low, high]) in
            [(ttft.p50, p50), (ttft.p90, p90), (change.requests_per_second.unwrap(), throughput)]
        {
            assert!((low..=high).contains(&figure), "{name}: {figure} is not from {low} to {high}");
        }
        for (summary, expected) in [random, prefix_aware].into_iter().zip(hit_rates) {
            let hit_rate = summary.measures.hit_rate.unwrap();
            assert!((hit_rate - expected).abs() < 0.03, "{name}, {}: {hit_rate}", summary.strategy);
        }
    }
}

#[test]
fn the_example_in_the_documentation_is_a_scenario() {
    let page = include_str!("../../../docs/simulator.md");
    let examples: Vec<&str> = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        scenario(example);
    }
}

#[test]
fn mistakes_in_a_scenario_are_told_with_their_place() {
    let refuse = |from: &str, to: &str| {
        let shipped = shipped().find(|shipped| shipped.name == "aws-long").unwrap();
        let text = shipped.text.replace(from, to);
        assert_ne!(text, shipped.text);
        Scenario::parse("my.yaml", &text).map(|_| ()).map_err(|error: InvalidScenario| error.to_string()).unwrap_err()
    };
    for (from, to, told) in [
        ("think: 2s", "think: 2", "line 11"),
        ("think: 2s", "think: soon", "\"soon\" is no duration"),
        ("profile: llama3.1-70b-tp8-bf16", "profile: gpt-9", "unknown engine profile `gpt-9`"),
        ("RANDOM, ", "FASTEST, ", "\"FASTEST\" is no strategy"),
        ("document_tokens", "documnet_tokens", "documnet_tokens"),
        ("instances: 7", "instances: 0", "fleet: every group needs at least 1 instance"),
        ("warm_up: 60s", "warm_up: 2h", "warm_up: must be shorter than duration"),
        ("questions: [5, 6]", "questions: [6, 5]", "the number of questions goes from 6 to 5"),
        ("prefix_length: 4096", "prefix_length: 0", "prefix_length must be from 1 to 65536"),
    ] {
        let error = refuse(from, to);
        assert!(error.contains(told), "{error}");
    }
}
