//! Tests of expressions.

use super::*;
use crate::{Dimension, Metric, Statistic};

fn parsed(text: &str) -> Result<Expression, String> {
    Expression::try_from(text.to_owned()).map_err(|error| error.to_string())
}

fn search(text: &str) -> Search {
    match parsed(text).expect("an expression").operand {
        Operand::Search(search) => *search,
        other => panic!("{other:?} is no search"),
    }
}

fn metric(name: &str, dimensions: &[(&str, &str)]) -> Metric {
    let dimensions = dimensions.iter().map(|(name, value)| Dimension::new(name, value)).collect();
    Metric::new("123456789012", "AWS/SageMaker", name, dimensions)
}

#[test]
fn a_search_finds_by_schema_and_terms() {
    let text =
        r#"SEARCH('{AWS/SageMaker,VariantName,EndpointName} MetricName="Invocations" EndpointName=CHAT', 'Sum', 60)"#;
    let search = search(text);
    assert_eq!((search.statistic, search.period), (Statistic::Sum, Some(60)));
    assert!(search.finds(&metric("Invocations", &[("EndpointName", "my-chat"), ("VariantName", "a")])));
    for other in [
        metric("Invocations", &[("EndpointName", "code"), ("VariantName", "a")]),
        metric("InvocationsPerInstance", &[("EndpointName", "my-chat"), ("VariantName", "a")]),
        metric("Invocations", &[("EndpointName", "my-chat")]),
        metric("Invocations", &[("EndpointName", "my-chat"), ("InstanceId", "i"), ("VariantName", "a")]),
    ] {
        assert!(!search.finds(&other), "{other:?}");
    }
}

#[test]
fn words_of_a_search_may_stand_anywhere() {
    let search = search(r#"SEARCH(' "chat" AND latency', "p99")"#);
    assert_eq!(search.period, None);
    assert!(search.finds(&metric("ModelLatency", &[("EndpointName", "Chat-2")])));
    assert!(!search.finds(&metric("ModelLatency", &[("EndpointName", "code")])));
}

#[test]
fn folds_are_over_searches_metrics_and_ids() {
    let operand = |text| parsed(text).map(|expression| (expression.fold, expression.operand));
    assert_eq!(operand("SUM(METRICS())"), Ok((Some(Fold::Sum), Operand::Metrics(None))));
    assert_eq!(operand("AVG(METRICS(\"m\"))"), Ok((Some(Fold::Average), Operand::Metrics(Some("m".to_owned())))));
    let ids = Operand::Ids(vec!["m1".to_owned(), "m2".to_owned()]);
    assert_eq!(operand(" MAX( [m1 , m2] ) "), Ok((Some(Fold::Maximum), ids)));
    assert!(matches!(operand("SUM(SEARCH('x', 'Sum', 60))"), Ok((Some(Fold::Sum), Operand::Search(_)))));
    let values = [4.0, 1.0, 4.0];
    let folds = [Fold::Sum, Fold::Average, Fold::Minimum, Fold::Maximum].map(|fold| fold.of(&values));
    assert_eq!(folds, [9.0, 3.0, 1.0, 4.0]);
}

#[test]
fn what_is_not_computed_is_refused_with_what_is() {
    for (text, what) in [
        ("m1 + m2", "'m1' is not known"),
        ("m1/m2*100", "'m1' is not known"),
        ("RATE(m1)", "'RATE' is not known"),
        ("SELECT AVG(x) FROM y", "'SELECT' is not known"),
        ("", "'' begins with no function"),
        ("SUM(m1)", "'m1' is neither a SEARCH"),
        ("SUM([])", "an id is missing"),
        ("SUM(METRICS())/2", "'/2' follows the end"),
        ("SUM(METRICS()", "')' is missing at the end"),
        ("SEARCH('x')", "',' is missing before ')'"),
        ("SEARCH('', 'Sum', 60)", "the SEARCH is empty"),
        ("SEARCH('x', 'Tally', 60)", "'Tally' is no statistic"),
        ("SEARCH('x', 'Sum', 61)", "'61' is no period"),
        ("SEARCH('x, 'Sum', 60)", "',' is missing"),
        ("SEARCH('{A,B', 'Sum', 60)", "'}' is missing"),
        ("SEARCH('a OR b', 'Sum', 60)", "OR in a SEARCH is not known"),
        ("SEARCH('(a b)', 'Sum', 60)", "parentheses in a SEARCH"),
        ("SEARCH('a=\"b', 'Sum', 60)", "is not closed"),
        ("SEARCH('é\u{301}\\", "the quote ' is not closed"),
    ] {
        let message = parsed(text).expect_err(text);
        assert!(message.contains(what), "{text}: {message}");
        assert!(message.contains("Isotherm computes SEARCH('{Namespace"), "{message}");
    }
}
