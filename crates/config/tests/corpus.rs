//! Replays the saved corpus of the fuzz target `config`.

#[expect(unreachable_pub, reason = "for the fuzz targets it is a library")]
#[path = "../../../fuzz/src/config.rs"]
mod fuzz;
#[expect(unreachable_pub, reason = "it stands beside the fuzz targets' library")]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn every_configuration_is_read_or_refused() {
    replay::replay("config", fuzz::check_config);
}
