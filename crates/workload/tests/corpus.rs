//! Replays the saved corpus of the fuzz target `trace`.

#[expect(unreachable_pub, reason = "for the fuzz targets it is a library")]
#[path = "../../../fuzz/src/trace.rs"]
mod fuzz;
#[expect(unreachable_pub, reason = "it stands beside the fuzz targets' library")]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn every_trace_is_read_or_refused() {
    replay::replay("trace", fuzz::check_trace);
}
