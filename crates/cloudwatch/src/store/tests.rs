//! Tests of the store of metrics.

use super::*;
use crate::Dimension;

fn metric(name: &str) -> Metric {
    Metric::new("123456789012", "Shop", name, vec![Dimension::new("City", "Kiel")])
}

fn record(store: &mut MetricStore, name: &str, unit: Unit, time: u64, value: f64) {
    store.record(&metric(name), unit, Resolution::High, time, &Summary::of(value)).expect("room for a metric");
}

fn sums(periods: &[(u64, Summary)]) -> Vec<(u64, f64)> {
    periods.iter().map(|(start, summary)| (*start, summary.sum())).collect()
}

#[test]
fn periods_are_counted_from_the_rounded_start() {
    let mut store = MetricStore::new(Limits::default());
    for minute in 0..6 {
        record(&mut store, "Orders", Unit::Count, 1200 + minute * 60, 1.0);
    }
    let window = Window::rounded(1265, 1560, 120);
    assert_eq!((window.start, window.periods()), (1260, 3));
    assert_eq!(sums(&store.periods(&metric("Orders"), None, window)), [(1260, 2.0), (1380, 2.0), (1500, 1.0)]);
    let fine = Window::rounded(1265, 1330, 20);
    assert_eq!(sums(&store.periods(&metric("Orders"), None, fine)), [(1260, 1.0), (1320, 1.0)]);
    assert!(store.periods(&metric("Returns"), None, window).is_empty());
}

#[test]
fn units_are_kept_apart_unless_none_is_named() {
    let mut store = MetricStore::new(Limits::default());
    record(&mut store, "Size", Unit::Bytes, 60, 1.0);
    record(&mut store, "Size", Unit::Count, 60, 10.0);
    let window = Window::rounded(0, 600, 60);
    assert_eq!(sums(&store.periods(&metric("Size"), Some(Unit::Bytes), window)), [(60, 1.0)]);
    assert_eq!(sums(&store.periods(&metric("Size"), None, window)), [(60, 11.0)]);
    assert!(store.periods(&metric("Size"), Some(Unit::Percent), window).is_empty());
}

#[test]
fn a_metric_too_many_is_refused_and_known_ones_go_on() {
    let mut store = MetricStore::new(Limits { metrics: 2, ..Limits::default() });
    record(&mut store, "A", Unit::Count, 60, 1.0);
    record(&mut store, "B", Unit::Count, 60, 1.0);
    let refused = store.record(&metric("C"), Unit::Count, Resolution::Standard, 60, &Summary::of(1.0));
    assert!(refused.expect_err("no room").to_string().contains("beside 2 others"));
    record(&mut store, "A", Unit::Count, 61, 1.0);
    store.tidy(60 + 24 * 3600 + 60);
    assert_eq!(store.metrics_of("123456789012", None).count(), 0, "metrics without recent values are forgotten");
    record(&mut store, "C", Unit::Count, 90_000, 1.0);
}

#[test]
fn names_take_only_so_much() {
    let size = metric("A").size();
    let mut store = MetricStore::new(Limits { names: 2 * size, ..Limits::default() });
    record(&mut store, "A", Unit::Count, 60, 1.0);
    record(&mut store, "A", Unit::Bytes, 60, 1.0);
    record(&mut store, "B", Unit::Count, 60, 1.0);
    let refused = store.record(&metric("C"), Unit::Count, Resolution::Standard, 60, &Summary::of(1.0));
    assert!(refused.is_err());
    store.tidy(90_000);
    record(&mut store, "C", Unit::Count, 90_000, 1.0);
}

#[test]
fn many_metrics_share_the_memory() {
    let mut store = MetricStore::new(Limits { cells: 100, ..Limits::default() });
    for minute in 0..200 {
        for name in ["A", "B", "C", "D"] {
            record(&mut store, name, Unit::Count, minute * 60, 1.0);
        }
    }
    store.tidy(200 * 60);
    assert!(store.cells() <= 100, "{}", store.cells());
    let window = Window::rounded(0, 200 * 60, 60);
    let kept = store.periods(&metric("A"), None, window);
    assert_eq!(kept.last().map(|(start, _)| *start), Some(199 * 60), "the newest values are kept");
}

#[test]
fn metrics_are_listed_in_order_from_any_place() {
    let mut store = MetricStore::new(Limits::default());
    for name in ["B", "A", "C"] {
        record(&mut store, name, Unit::Count, 60, 1.0);
    }
    let names =
        |after| store.metrics_of("123456789012", after).map(|(metric, _)| metric.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(None), ["A", "B", "C"]);
    assert_eq!(names(Some(&metric("A"))), ["B", "C"]);
}

#[test]
fn what_an_account_sends_takes_nothing_from_another() {
    let mut store = MetricStore::new(Limits { metrics: 2, cells: 40, ..Limits::default() });
    let of = |account: &str, name: &str| Metric::new(account, "Shop", name, Vec::new());
    let count = |store: &mut MetricStore, metric: &Metric, time: u64| {
        store.record(metric, Unit::Count, Resolution::Standard, time, &Summary::of(1.0))
    };
    for minute in 0..40 {
        for (account, name) in [("1", "A"), ("1", "B"), ("2", "A")] {
            count(&mut store, &of(account, name), minute * 60).expect("room");
        }
    }
    assert!(count(&mut store, &of("1", "C"), 0).is_err());
    store.tidy(40 * 60);
    let window = Window::rounded(0, 40 * 60, 60);
    let kept = |account: &str| store.periods(&of(account, "A"), None, window).len();
    assert_eq!((kept("1"), kept("2")), (20, 40));
    let names = |account: &str| store.metrics_of(account, None).map(|(it, _)| it.name.to_string()).collect::<Vec<_>>();
    assert_eq!((names("1"), names("2")), (vec!["A".to_owned(), "B".to_owned()], vec!["A".to_owned()]));
    assert!(store.metrics_of("2", Some(&of("2", "A"))).next().is_none());
    assert!(count(&mut store, &of("2", "C"), 0).is_ok());
}
