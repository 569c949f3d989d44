//! Two strategies over a mock that routes and caches as it is told.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::time::Duration;

use isotherm_workload::{Documents, Plan};
use serde_json::Value;

use super::{Arm, CompareError, Comparison, Fleet, compare};
use crate::run::mock::{Answer, Mock, stream};
use crate::validity::Lag;
use crate::{Options, Target};

const INSTANCES: u64 = 3;
const DOCUMENT_CHARACTERS: usize = 2_100;

/// Three instances with caches without limit.
#[derive(Default)]
struct MockFleet {
    mock: Option<Mock>,
    lag: Lag,
    refuses: bool,
}

impl Fleet for MockFleet {
    type Error = String;

    fn start(&mut self, strategy: &str) -> Result<Arm, String> {
        if self.refuses {
            return Err("no engines".to_owned());
        }
        let by_prefix = strategy == "PREFIX_AWARE";
        let cached: Mutex<HashSet<(u64, u64)>> = Mutex::default();
        let mock = Mock::start(move |number, body| {
            let content = body["messages"][0]["content"].as_str().unwrap();
            let document = hash(content.get(..DOCUMENT_CHARACTERS).unwrap_or(content));
            let instance = if by_prefix { document } else { hash(&number) } % INSTANCES;
            let found = !cached.lock().unwrap().insert((instance, document));
            let prompt_tokens = content.len() as u64 * 10 / 42;
            let mut answer = Answer::sse(stream(2, prompt_tokens, if found { 500 } else { 0 }));
            answer.headers.push(("x-isotherm-instance", format!("chat-{instance}")));
            answer.headers.push(("x-isotherm-reason", if by_prefix { "home" } else { "random" }.to_owned()));
            answer
        });
        let target = Target::new(&format!("http://{}", mock.address), "m").unwrap();
        self.mock = Some(mock);
        let instances = (0..INSTANCES).map(|instance| format!("chat-{instance}")).collect();
        Ok(Arm { target, instances, accelerators: None, text_seed: 1 })
    }

    fn stop(&mut self) -> Result<Option<Lag>, String> {
        self.mock = None;
        Ok(Some(self.lag))
    }
}

fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn compared(fleet: &mut MockFleet) -> Result<Comparison, CompareError<String>> {
    let think = Duration::from_millis(20);
    let documents = Documents { users: 12, think, document_tokens: 500, ..Documents::for_instances(3) };
    let plan = Plan::new(documents, 1).unwrap();
    let options = Options { warm_up: 30, requests: 600, speed: 4.0, ..Options::for_users(12) };
    compare(fleet, &["RANDOM", "PREFIX_AWARE"], &plan, &options, &())
}

#[test]
fn measures_each_strategy_and_predicts_its_hit_rate() {
    let comparison = compared(&mut MockFleet::default()).unwrap();
    let [random, prefix_aware] = &comparison.report.strategies[..] else { panic!("{comparison:?}") };
    assert_eq!((random.strategy.as_str(), prefix_aware.strategy.as_str()), ("RANDOM", "PREFIX_AWARE"));
    for summary in [random, prefix_aware] {
        assert_eq!((summary.requests, summary.errors), (600, 0));
        let (measured, predicted) = (summary.measures.hit_rate.unwrap(), summary.predicted_hit_rate.unwrap());
        assert!((measured - predicted).abs() < 0.06, "{} {measured} {predicted}", summary.strategy);
        let share = summary.measures.instance_share.unwrap();
        assert!(share.min > 0.15 && share.max < 0.55, "{share:?}");
        assert_eq!(summary.measures.spill_rate, Some(0.0));
    }
    assert!(prefix_aware.predicted_hit_rate > random.predicted_hit_rate);
    assert_eq!((comparison.report.baseline.as_str(), comparison.report.instances), ("RANDOM", Some(3)));
}

#[test]
fn prints_table_prediction_and_rates_within_100_columns() {
    let mut comparison = compared(&mut MockFleet::default()).unwrap();
    comparison.report.invalid.clear();
    let text = comparison.text();
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    let counting = text.lines().find(|line| line.starts_with("By counting")).unwrap();
    assert_eq!(counting, "By counting, with m uses of each beginning, n = 3 instances and caches without limit:");
    let line = |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
    assert!(line("affinity").contains("1 - 1/m ") && line("random").contains("1 - n(1 - (1 - 1/n)^m)/m "), "{text}");
    assert!(line("PREFIX_AWARE: 630 requests in").ends_with("MB of prompts a second."), "{text}");
    assert!(text.ends_with("All figures are in the engines' time: 4 x the wall clock.\n"), "{text}");
}

#[test]
fn writes_json_and_one_csv_row_for_each_request() {
    let comparison = compared(&mut MockFleet::default()).unwrap();
    let json: Value = serde_json::to_value(&comparison.report).unwrap();
    assert_eq!((json["scenario"].as_str(), json["users"].as_u64()), (Some("documents"), Some(12)));
    assert!(json["strategies"][1]["ttft_ms"]["p99"].is_number() && json["strategies"][1]["ci"].is_object());
    let mut csv = Vec::new();
    comparison.write_csv(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    assert_eq!(csv.lines().count(), 1 + 2 * 630);
    assert_eq!(csv.lines().filter(|line| line.starts_with("PREFIX_AWARE,") && line.contains(",home,")).count(), 630);
}

#[test]
fn lag_of_the_engines_makes_the_report_invalid() {
    let lag = Lag { p99: Duration::from_millis(30), max: Duration::from_millis(80) };
    let comparison = compared(&mut MockFleet { lag, ..MockFleet::default() }).unwrap();
    let engines = comparison.report.invalid.iter().filter(|sentence| sentence.contains("the emulated engines")).count();
    assert_eq!(engines, 2, "{:?}", comparison.report.invalid);
    assert!(comparison.text().contains("INVALID: RANDOM: the emulated engines lagged by 120.0 ms of engine time"));
    assert!(comparison.text().lines().all(|line| line.len() <= 100));
}

#[test]
fn a_fleet_that_does_not_start_ends_the_comparison() {
    let error = compared(&mut MockFleet { refuses: true, ..MockFleet::default() }).unwrap_err();
    assert_eq!(error.to_string(), "no engines");
}
