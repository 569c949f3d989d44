//! `isotherm bench`: the gain over random routing, in the form that programs read.

use isotherm_tests::run;
use serde_json::Value;

#[test]
fn prefix_aware_finds_warm_caches_where_random_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (json, csv) = (folder.path().join("report.json"), folder.path().join("requests.csv"));
    let (json, csv) = (json.display().to_string(), csv.display().to_string());
    let workload = ["--engines", "4", "--users", "8", "--document-tokens", "4000", "--output-tokens", "8"];
    let run_options = ["--requests", "160", "--think", "0.5", "--speed", "10", "--json", &json, "--requests-csv", &csv];
    let ended = run(&[&["bench"], &workload[..], &run_options[..]].concat());
    // 3: the machine was too busy for the times to count. What the caches held counts all the same.
    assert!(matches!(ended.code, Some(0 | 3)), "{:?}\n{}{}", ended.code, ended.stdout, ended.stderr);
    for word in ["RANDOM", "PREFIX_AWARE", "TTFT P50", "Hit rate", "1 - 1/m"] {
        assert!(ended.stdout.contains(word), "no {word} in\n{}", ended.stdout);
    }
    let report: Value = serde_json::from_str(&std::fs::read_to_string(json).expect("the report")).expect("JSON");
    let [random, prefix_aware] = report["strategies"].as_array().expect("strategies").as_slice() else {
        panic!("{report}");
    };
    assert_eq!((&random["strategy"], &prefix_aware["strategy"]), (&"RANDOM".into(), &"PREFIX_AWARE".into()));
    for strategy in [random, prefix_aware] {
        assert_eq!(strategy["requests"], 160);
        assert_eq!(strategy["errors"], 0);
    }
    let hit_rate = |strategy: &Value| strategy["hit_rate"].as_f64().expect("a hit rate");
    assert!(hit_rate(prefix_aware) > 0.7, "{report}");
    assert!(hit_rate(prefix_aware) > hit_rate(random) + 0.15, "{report}");
    // Under each strategy the warm-up of three for each user, and the heading.
    let rows = std::fs::read_to_string(csv).expect("the requests").lines().count();
    assert_eq!(rows, 1 + 2 * (160 + 3 * 8));
}
