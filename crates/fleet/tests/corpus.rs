//! Replays the saved corpus of the fuzz target `metrics_page`.

#[expect(unreachable_pub, reason = "for the fuzz targets it is a library")]
#[path = "../../../fuzz/src/metrics_page.rs"]
mod fuzz;
#[expect(unreachable_pub, reason = "it stands beside the fuzz targets' library")]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn every_page_is_read_or_left() {
    replay::replay("metrics_page", fuzz::check_metrics_page);
}
