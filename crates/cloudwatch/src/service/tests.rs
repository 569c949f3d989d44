//! Stories of the service, told in JSON.

use http::Request;
use isotherm_wire::aws::Caller;
use serde_json::{Value, json};

use super::*;

/// 2026-11-29 12:00:00.
const NOON: u64 = 1_795_953_600;

fn service() -> CloudWatch {
    CloudWatch::open(None, Limits::default()).expect("no store to read")
}

/// The answer's status and body, which is null when empty.
fn ask_as(account: &str, service: &CloudWatch, now: u64, operation: &str, input: &Value) -> (u16, Value) {
    let target = format!("GraniteServiceVersion20100801.{operation}");
    let (head, ()) = Request::post("/").header("x-amz-target", target).body(()).expect("a valid head").into_parts();
    let caller = Caller { account: account.to_owned(), region: "eu-west-1".to_owned(), access_key: None, name: None };
    let response = service.answer(&AwsRequest { head, body: input.to_string().into(), caller }, now);
    let body = serde_json::from_slice(response.body()).map_or(Value::Null, whole);
    (response.status().as_u16(), body)
}

fn ask(service: &CloudWatch, now: u64, operation: &str, input: Value) -> Value {
    let (status, body) = ask_as("123456789012", service, now, operation, &input);
    assert_eq!(status, 200, "{operation}: {body}");
    body
}

/// The same with `2.0` as `2`, so that it compares with what is written in tests.
fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(number) if number.fract() == 0.0 => json!(number as i64),
            _ => Value::Number(number),
        },
        Value::Array(values) => values.into_iter().map(whole).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, whole(value))).collect(),
        other => other,
    }
}

/// The message of a refusal.
fn refused(service: &CloudWatch, operation: &str, input: Value) -> String {
    let (status, body) = ask_as("123456789012", service, NOON, operation, &input);
    assert!(status >= 400, "{operation} {input} was not refused");
    format!("{}: {}", body["__type"].as_str().unwrap_or_default(), body["message"].as_str().unwrap_or_default())
}

fn put(service: &CloudWatch, time: u64, name: &str, city: &str, value: f64) {
    let dimensions = json!([{"Name": "City", "Value": city}]);
    let datum =
        json!({"MetricName": name, "Dimensions": dimensions, "Timestamp": time, "Value": value, "Unit": "Count"});
    ask(service, time, "PutMetricData", json!({"Namespace": "Shop", "MetricData": [datum]}));
}

fn stat(id: &str, city: &str, stat: &str) -> Value {
    let metric = json!({"Namespace": "Shop", "MetricName": "Orders", "Dimensions": [{"Name": "City", "Value": city}]});
    json!({"Id": id, "MetricStat": {"Metric": metric, "Period": 60, "Stat": stat}})
}

fn shop() -> CloudWatch {
    let service = service();
    for minute in 0..5 {
        put(&service, NOON + minute * 60, "Orders", "Kiel", minute as f64);
        put(&service, NOON + minute * 60 + 5, "Orders", "Bonn", 10.0);
    }
    put(&service, NOON, "Returns", "Kiel", 1.0);
    service
}

#[test]
fn what_was_put_is_listed_and_read_again() {
    let shop = shop();
    let listed = ask(&shop, NOON, "ListMetrics", json!({"Namespace": "Shop", "Dimensions": [{"Name": "City"}]}));
    let names: Vec<_> =
        listed["Metrics"].as_array().expect("a list").iter().map(|metric| &metric["MetricName"]).collect();
    assert_eq!(names, ["Orders", "Orders", "Returns"]);
    let one =
        json!({"MetricName": "Orders", "Dimensions": [{"Name": "City", "Value": "Kiel"}], "RecentlyActive": "PT3H"});
    let one = ask(&shop, NOON + 3600, "ListMetrics", one);
    assert_eq!(
        one["Metrics"],
        json!([{"Namespace": "Shop", "MetricName": "Orders",
        "Dimensions": [{"Name": "City", "Value": "Kiel"}]}])
    );

    let asked = json!({"Namespace": "Shop", "MetricName": "Orders", "Dimensions": [{"Name": "City", "Value": "Kiel"}],
        "StartTime": NOON, "EndTime": NOON + 300, "Period": 300, "Statistics": ["Sum", "Average", "SampleCount"],
        "ExtendedStatistics": ["p100"]});
    let statistics = ask(&shop, NOON + 300, "GetMetricStatistics", asked);
    assert_eq!(
        statistics,
        json!({"Label": "Orders", "Datapoints": [{"Timestamp": NOON, "Unit": "Count", "Sum": 10,
        "Average": 2, "SampleCount": 5, "ExtendedStatistics": {"p100": 4}}]})
    );
}

#[test]
fn accounts_do_not_see_each_other() {
    let shop = shop();
    let (status, other) = ask_as("999999999999", &shop, NOON, "ListMetrics", &json!({}));
    assert_eq!((status, &other["Metrics"]), (200, &json!([])));
    let query = json!({"MetricDataQueries": [stat("m", "Kiel", "Sum"), {"Id": "s", "Expression": "SEARCH('Orders','Sum')"}],
        "StartTime": NOON, "EndTime": NOON + 300});
    let (_, data) = ask_as("999999999999", &shop, NOON, "GetMetricData", &query);
    assert_eq!(data["MetricDataResults"].as_array().map(Vec::len), Some(1), "the search finds nothing: {data}");
    assert_eq!(data["MetricDataResults"][0]["Values"], json!([]));
}

#[test]
fn expressions_go_over_several_metrics() {
    let shop = shop();
    let queries = json!([
        stat("kiel", "Kiel", "Sum"),
        {"Id": "hidden", "MetricStat": stat("x", "Bonn", "Sum")["MetricStat"], "ReturnData": false},
        {"Id": "all", "Expression": "SUM(METRICS())", "Label": "everything"},
        {"Id": "found", "Expression": "SEARCH('{Shop,City} MetricName=\"Orders\"', 'Maximum', 300)"},
    ]);
    let input = json!({"MetricDataQueries": queries, "StartTime": NOON, "EndTime": NOON + 300,
        "ScanBy": "TimestampAscending"});
    let results = ask(&shop, NOON + 300, "GetMetricData", input);
    let results: Vec<(&Value, &Value, &Value)> = results["MetricDataResults"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|result| (&result["Id"], &result["Label"], &result["Values"]))
        .collect();
    assert_eq!(
        results,
        [
            (&json!("kiel"), &json!("Orders"), &json!([0, 1, 2, 3, 4])),
            (&json!("all"), &json!("everything"), &json!([10, 11, 12, 13, 14])),
            (&json!("found"), &json!("Bonn Orders"), &json!([10])),
            (&json!("found"), &json!("Kiel Orders"), &json!([4])),
        ]
    );
}

#[test]
fn long_answers_come_in_pages() {
    let shop = shop();
    let mut input = json!({"MetricDataQueries": [stat("a", "Kiel", "Sum"), stat("b", "Bonn", "Sum")],
        "StartTime": NOON, "EndTime": NOON + 300, "MaxDatapoints": 3});
    let (mut pages, mut values) = (0, Vec::new());
    loop {
        let page = ask(&shop, NOON + 300, "GetMetricData", input.clone());
        for result in page["MetricDataResults"].as_array().expect("a list") {
            values.extend(result["Values"].as_array().expect("a list").iter().filter_map(Value::as_f64));
        }
        pages += 1;
        match page["NextToken"].as_str() {
            Some(token) => input["NextToken"] = json!(token),
            None => break,
        }
    }
    assert_eq!((pages, values), (4, vec![4.0, 3.0, 2.0, 1.0, 0.0, 10.0, 10.0, 10.0, 10.0, 10.0]));
    input["NextToken"] = json!("made up");
    assert!(refused(&shop, "GetMetricData", input).contains("InvalidNextToken"));

    let data: Vec<Value> = (0..501).map(|n| json!({"MetricName": format!("M{n:03}"), "Value": 1})).collect();
    ask(&shop, NOON, "PutMetricData", json!({"Namespace": "Many", "MetricData": data}));
    let first = ask(&shop, NOON, "ListMetrics", json!({"Namespace": "Many"}));
    let second = ask(&shop, NOON, "ListMetrics", json!({"Namespace": "Many", "NextToken": first["NextToken"]}));
    assert_eq!(first["Metrics"].as_array().map(Vec::len), Some(500));
    assert_eq!((&second["Metrics"][0]["MetricName"], &second["NextToken"]), (&json!("M500"), &Value::Null));
}

#[test]
fn bad_requests_are_refused_in_awss_words() {
    let shop = shop();
    let datum = |datum: Value| json!({"Namespace": "Shop", "MetricData": [datum]});
    let data = |query: Value| json!({"MetricDataQueries": [query], "StartTime": NOON, "EndTime": NOON + 60});
    let statistics = |period: u32, end: u64| {
        json!({"Namespace": "N", "MetricName": "M", "StartTime": NOON, "EndTime": end, "Period": period,
            "Statistics": ["Sum"]})
    };
    for (operation, input, expected) in [
        ("PutMetricData", json!({"MetricData": []}), "The parameter Namespace is required."),
        ("PutMetricData", json!({"Namespace": "AWS/SageMaker"}), "The value AWS/ for parameter Namespace is invalid."),
        ("PutMetricData", json!({"Namespace": "Shop"}), "The parameter MetricData is required."),
        ("PutMetricData", datum(json!({"Value": 1})), "The parameter MetricData.member.1.MetricName is required."),
        ("PutMetricData", datum(json!({"MetricName": "M"})), "The parameter MetricData.member.1.Value is required."),
        (
            "PutMetricData",
            datum(json!({"MetricName": "M", "Value": 1, "Values": [1]})),
            "The parameters MetricData.member.1.Value and MetricData.member.1.Values are mutually exclusive and you \
             have specified both.",
        ),
        (
            "PutMetricData",
            datum(json!({"MetricName": "M", "Value": "NaN"})),
            "The value NaN for parameter MetricData.member.1.Value is invalid.",
        ),
        (
            "PutMetricData",
            datum(json!({"MetricName": "M", "Values": [1, 2], "Counts": [1]})),
            "MetricData.member.1.Values and MetricData.member.1.Counts must be of the same size.",
        ),
        (
            "PutMetricData",
            datum(json!({"MetricName": "M", "Value": 1, "Timestamp": NOON - 15 * 86_400})),
            "no more than two weeks in the past",
        ),
        (
            "PutMetricData",
            datum(json!({"MetricName": "M", "Value": 1, "Unit": "Apples"})),
            "ValidationException: 1 validation error detected: Value 'Apples' at 'metricData.1.member.unit' failed",
        ),
        ("GetMetricStatistics", json!({"Namespace": "N"}), "The parameter MetricName is required."),
        ("GetMetricStatistics", statistics(61, NOON + 60), "Member must be 10, 20, 30 or a multiple of 60"),
        ("GetMetricStatistics", statistics(60, NOON), "StartTime must be less than the parameter EndTime."),
        (
            "GetMetricStatistics",
            statistics(60, NOON + 86_460),
            "You have requested up to 1441 datapoints, which exceeds",
        ),
        ("GetMetricData", json!({}), "3 validation errors detected: Value null at 'metricDataQueries' failed"),
        (
            "GetMetricData",
            data(json!({"Id": "A"})),
            "The value A for parameter MetricDataQueries.member.1.Id is invalid",
        ),
        ("GetMetricData", data(json!({"Id": "a"})), "Either MetricDataQueries.member.1.MetricStat or"),
        ("GetMetricData", data(json!({"Id": "a", "Expression": "m1*2"})), "Error in expression 'a': 'm1' is not known"),
        ("GetMetricData", data(json!({"Id": "a", "Expression": "SUM([b])"})), "there is no query with the id 'b'"),
        ("GetMetricData", data(stat("a", "Kiel", "tm99")), "The value tm99 for parameter"),
        ("ListMetrics", json!({"NextToken": "?"}), "InvalidNextToken"),
        ("DescribeAlarms", json!({"StateValue": "BAD"}), "Member must satisfy enum value set: [OK, ALARM, INSUFF"),
        ("SetAlarmState", json!({"AlarmName": "a", "StateValue": "OK", "StateReason": "r"}), "ResourceNotFound"),
        (
            "PutDashboard",
            json!({}),
            "CloudWatch's operation \"PutDashboard\" is not known here; known are DeleteAlarms",
        ),
    ] {
        let message = refused(&shop, operation, input);
        assert!(message.contains(expected), "{operation}: {message}");
    }
}

fn alarm(name: &str) -> Value {
    json!({"AlarmName": name, "Namespace": "Shop", "MetricName": "Orders", "Statistic": "Sum", "Period": 60,
        "Dimensions": [{"Name": "City", "Value": "Kiel"}], "EvaluationPeriods": 2, "DatapointsToAlarm": 1,
        "Threshold": 3.5, "ComparisonOperator": "GreaterThanThreshold", "AlarmActions": ["arn:aws:sns:a:b:c"]})
}

fn state(service: &CloudWatch, name: &str) -> Option<AlarmState> {
    service.alarm_states("123456789012", [name])[0]
}

#[test]
fn an_alarm_follows_its_metric() {
    let shop = service();
    ask(&shop, NOON, "PutMetricAlarm", alarm("busy"));
    assert_eq!(state(&shop, "busy"), Some(AlarmState::InsufficientData));
    put(&shop, NOON + 5, "Orders", "Kiel", 1.0);
    shop.tick(NOON + 60);
    assert_eq!(state(&shop, "busy"), Some(AlarmState::Ok));
    put(&shop, NOON + 65, "Orders", "Kiel", 9.0);
    shop.tick(NOON + 110);
    assert_eq!(state(&shop, "busy"), Some(AlarmState::Ok), "the minute is not over");
    shop.tick(NOON + 120);
    assert_eq!(state(&shop, "busy"), Some(AlarmState::Alarm));
    let described = ask(&shop, NOON + 120, "DescribeAlarms", json!({"StateValue": "ALARM"}));
    let described = &described["MetricAlarms"][0];
    assert_eq!(described["AlarmArn"], "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:busy");
    let reason = described["StateReason"].as_str().expect("a reason");
    assert!(reason.starts_with("Threshold Crossed: 1 out of the last 2 datapoints [9.0, 1.0"), "{reason}");
    assert_eq!(described["StateTransitionedTimestamp"], NOON + 120);
    shop.tick(NOON + 600);
    assert_eq!(state(&shop, "busy"), Some(AlarmState::InsufficientData), "no values for long");
}

#[test]
fn an_alarm_calls_its_actions_while_it_is_off() {
    let shop = service();
    let action = "arn:aws:autoscaling:eu-west-1:123456789012:scalingPolicy:1";
    let mut alarm = alarm("busy");
    alarm["AlarmActions"] = json!([action]);
    ask(&shop, NOON, "PutMetricAlarm", alarm.clone());
    assert_eq!(shop.alarms_calling("123456789012", action), []);
    put(&shop, NOON, "Orders", "Kiel", 9.0);
    shop.tick(NOON + 60);
    let calling = shop.alarms_calling("123456789012", action);
    assert_eq!(
        calling.iter().map(|alarm| (alarm.name.as_str(), alarm.excess)).collect::<Vec<_>>(),
        [("busy", Some(5.5))]
    );
    assert_eq!(shop.alarms_calling("123456789012", "arn:other"), []);
    alarm["ActionsEnabled"] = json!(false);
    ask(&shop, NOON + 60, "PutMetricAlarm", alarm);
    assert_eq!(shop.alarms_calling("123456789012", action), []);
}

#[test]
fn a_state_set_by_hand_stands_for_a_while() {
    let shop = service();
    ask(&shop, NOON, "PutMetricAlarm", alarm("busy"));
    shop.tick(NOON + 59);
    let set = json!({"AlarmName": "busy", "StateValue": "ALARM", "StateReason": "drill", "StateReasonData": "{}"});
    ask(&shop, NOON + 59, "SetAlarmState", set.clone());
    shop.tick(NOON + 60);
    assert_eq!(state(&shop, "busy"), Some(AlarmState::Alarm), "those who watch it have time to see it");
    shop.tick(NOON + 70);
    assert_eq!(state(&shop, "busy"), Some(AlarmState::InsufficientData));
    let mut bad = set;
    bad["StateReasonData"] = json!("{");
    assert!(refused(&shop, "SetAlarmState", bad).contains("StateReasonData was not valid JSON"));
}

#[test]
fn alarms_are_told_by_name_state_and_action() {
    let shop = service();
    for name in ["a-1", "a-2", "b-1"] {
        ask(&shop, NOON, "PutMetricAlarm", alarm(name));
    }
    let names = |input: Value| {
        let described = ask(&shop, NOON, "DescribeAlarms", input);
        let alarms = described["MetricAlarms"].as_array().expect("a list").clone();
        let names: Vec<String> =
            alarms.iter().map(|alarm| alarm["AlarmName"].as_str().unwrap_or_default().to_owned()).collect();
        (names.join(" "), described["NextToken"].clone())
    };
    assert_eq!(names(json!({"AlarmNamePrefix": "a-"})).0, "a-1 a-2");
    assert_eq!(names(json!({"AlarmNames": ["b-1", "c-1"]})).0, "b-1");
    assert_eq!(names(json!({"ActionPrefix": "arn:aws:sns"})).0, "a-1 a-2 b-1");
    assert_eq!(names(json!({"AlarmTypes": ["CompositeAlarm"]})).0, "");
    let (first, token) = names(json!({"MaxRecords": 2}));
    assert_eq!((first.as_str(), names(json!({"NextToken": token})).0.as_str()), ("a-1 a-2", "b-1"));
    ask(&shop, NOON, "DeleteAlarms", json!({"AlarmNames": ["a-1", "no such alarm"]}));
    assert_eq!(names(json!({})).0, "a-2 b-1");
}

#[test]
fn an_alarm_may_watch_an_expression() {
    let shop = service();
    let mut total = json!({"AlarmName": "total", "EvaluationPeriods": 1, "Threshold": 10,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold", "TreatMissingData": "notBreaching",
        "Metrics": [{"Id": "k", "ReturnData": false, "MetricStat": stat("k", "Kiel", "Sum")["MetricStat"]},
            {"Id": "b", "ReturnData": false, "MetricStat": stat("b", "Bonn", "Sum")["MetricStat"]},
            {"Id": "t", "Expression": "SUM([k, b])"}]});
    ask(&shop, NOON, "PutMetricAlarm", total.clone());
    shop.tick(NOON);
    assert_eq!(state(&shop, "total"), Some(AlarmState::Ok));
    put(&shop, NOON, "Orders", "Kiel", 4.0);
    put(&shop, NOON, "Orders", "Bonn", 6.0);
    shop.tick(NOON + 60);
    assert_eq!(state(&shop, "total"), Some(AlarmState::Alarm));
    let described = ask(&shop, NOON, "DescribeAlarms", json!({"AlarmNames": ["total"]}));
    assert_eq!(described["MetricAlarms"][0]["Metrics"][2]["Expression"], "SUM([k, b])");
    total["Metrics"][0]["ReturnData"] = json!(true);
    assert!(refused(&shop, "PutMetricAlarm", total).contains("exactly one of the Metrics must have ReturnData true"));
}

#[test]
fn alarms_that_cannot_be_are_refused() {
    let shop = service();
    let with = |name: &str, value: Value| {
        let mut alarm = alarm("a");
        alarm[name] = value;
        refused(&shop, "PutMetricAlarm", alarm)
    };
    assert!(with("Period", json!(61)).contains("Member must be 10, 20, 30 or a multiple of 60"));
    assert!(with("DatapointsToAlarm", json!(3)).contains("must not be greater than EvaluationPeriods"));
    assert!(with("EvaluationPeriods", json!(1441)).contains("across more than a day"));
    assert!(with("ExtendedStatistic", json!("p99")).contains("mutually exclusive"));
    assert!(with("ThresholdMetricId", json!("m")).contains("The parameter ThresholdMetricId is not supported"));
    assert!(with("ComparisonOperator", json!("GreaterThanUpperThreshold")).contains("enum value set"));
    assert!(with("Threshold", Value::Null).contains("Value null at 'threshold'"));
    assert!(with("TreatMissingData", json!("sometimes")).contains("[breaching, notBreaching, ignore, missing]"));
}

#[test]
fn alarms_have_tags() {
    let shop = service();
    let mut tagged = alarm("busy");
    tagged["Tags"] = json!([{"Key": "team", "Value": "search"}]);
    ask(&shop, NOON, "PutMetricAlarm", tagged);
    let arn = "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:busy";
    let more = json!([{"Key": "stage", "Value": "prod"}, {"Key": "team", "Value": "chat"}]);
    ask(&shop, NOON, "TagResource", json!({"ResourceARN": arn, "Tags": more}));
    ask(&shop, NOON, "UntagResource", json!({"ResourceARN": arn, "TagKeys": ["stage"]}));
    ask(&shop, NOON, "PutMetricAlarm", alarm("busy"));
    let tags = ask(&shop, NOON, "ListTagsForResource", json!({"ResourceARN": arn}));
    assert_eq!(tags["Tags"], json!([{"Key": "team", "Value": "chat"}]));
    assert!(refused(&shop, "ListTagsForResource", json!({"ResourceARN": "arn:x"})).contains("No alarm has the ARN"));
}

#[test]
fn an_alarm_that_is_too_long_is_refused() {
    let mut long = alarm("long");
    let dimension = |n| json!({"Name": format!("{n}"), "Value": "v".repeat(1024)});
    let queries = (0..20).map(|n| {
        let dimensions: Vec<Value> = (0..30).map(dimension).collect();
        let metric = json!({"Namespace": "N", "MetricName": "M", "Dimensions": dimensions});
        let stat = json!({"Metric": metric, "Period": 60, "Stat": "Sum"});
        json!({"Id": format!("q{n}"), "ReturnData": n == 0, "MetricStat": stat})
    });
    for member in ["Namespace", "MetricName", "Statistic", "Period", "Dimensions"] {
        long[member] = Value::Null;
    }
    long["Metrics"] = queries.collect();
    assert!(refused(&service(), "PutMetricAlarm", long).contains("The alarm takes more than 65536 bytes"));
}

#[test]
fn no_value_of_any_member_breaks_anything() {
    let shop = shop();
    let members = "Namespace MetricName Dimensions StartTime EndTime Period Statistics ExtendedStatistics MetricDataQueries \
                   MetricData EntityMetricData NextToken ScanBy MaxDatapoints AlarmName AlarmNames AlarmTypes MaxRecords \
                   StateValue StateReason StateReasonData Threshold Metrics EvaluationPeriods DatapointsToAlarm Unit \
                   ComparisonOperator TreatMissingData Tags TagKeys ResourceARN AlarmActions RecentlyActive";
    let nested = json!({"Id": "a", "Expression": "SUM([a])", "Value": 1e300, "Timestamp": 1e300, "Values": [0, "NaN"],
        "Counts": [-1e300], "StatisticValues": {}, "MetricStat": [], "Name": "", "Key": {}, "MetricName": 7});
    let odd =
        json!(["", "x".repeat(5000), -1, 0, 1.5, 1e300, "NaN", [], {}, [[]], [{}], [nested], ["a", 1], true, u64::MAX]);
    let sound = json!({"Namespace": "Shop", "MetricName": "Orders", "StartTime": NOON, "EndTime": NOON + 60, "Period": 60,
        "Statistics": ["Sum"], "AlarmName": "a", "StateValue": "OK", "StateReason": "r", "Statistic": "Sum",
        "EvaluationPeriods": 1, "Threshold": 1, "ComparisonOperator": "LessThanThreshold"});
    for (operation, _) in OPERATIONS {
        for member in members.split(' ') {
            for value in odd.as_array().expect("a list") {
                let mut input = sound.clone();
                input[member] = value.clone();
                let (status, answer) = ask_as("123456789012", &shop, NOON, operation, &input);
                assert!(matches!(status, 200 | 400 | 404), "{operation} {member}={value}: {status} {answer}");
            }
        }
    }
    shop.tick(NOON + 60);
}

#[test]
fn an_account_has_a_bound_of_alarms_and_takes_nothing_from_another() {
    let service = service();
    for n in 0..2_000 {
        ask(&service, NOON, "PutMetricAlarm", alarm(&format!("a{n}")));
    }
    let refused = refused(&service, "PutMetricAlarm", alarm("one-more"));
    assert!(refused.ends_with("There are 2000 alarms already, which is the most; delete some."), "{refused}");
    ask(&service, NOON, "PutMetricAlarm", alarm("a1999"));
    assert_eq!(ask_as("999999999999", &service, NOON, "PutMetricAlarm", &alarm("one-more")).0, 200);
}

#[test]
fn alarms_outlive_the_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let open = || CloudWatch::open(Some(Arc::new(Store::open(directory.path()).expect("a store"))), Limits::default());
    let before = open().expect("an empty store");
    ask(&before, NOON, "PutMetricAlarm", alarm("busy"));
    ask(&before, NOON, "PutMetricAlarm", alarm("gone"));
    put(&before, NOON, "Orders", "Kiel", 9.0);
    before.tick(NOON + 60);
    ask(&before, NOON, "DeleteAlarms", json!({"AlarmNames": ["gone"]}));
    let described = ask(&before, NOON, "DescribeAlarms", json!({}));
    drop(before);
    let after = open().expect("a store with an alarm");
    assert_eq!(state(&after, "busy"), Some(AlarmState::Alarm));
    assert_eq!(ask(&after, NOON, "DescribeAlarms", json!({})), described);
}

#[test]
fn promql_is_refused_with_what_to_use() {
    let (head, ()) = Request::get("/api/v1/query?query=up").body(()).expect("a valid head").into_parts();
    let caller = Caller { account: "1".into(), region: "r".into(), access_key: None, name: None };
    let response = service().answer(&AwsRequest { head, body: Bytes::new(), caller }, NOON);
    let body: Value = serde_json::from_slice(response.body()).expect("JSON");
    assert_eq!((response.status().as_u16(), &body["status"]), (501, &json!("error")));
    assert!(body["error"].as_str().is_some_and(|error| error.contains("/metrics")));
}
