//! Any bytes as the metrics page of an engine.

use isotherm_fleet::EngineFigures;

/// A page in Prometheus' text format: no panic, and no figure that none can be.
pub fn check_metrics_page(bytes: &[u8]) {
    let page = String::from_utf8_lossy(bytes);
    // What names no engine is told to be one of each kind.
    for first in ["", "vllm:x 1\n", "sglang:x 1\n", "trtllm_x 1\n", "nv_trt_llm_x 1\n", "llamacpp:x 1\n"] {
        let Some(figures) = EngineFigures::read(&format!("{first}{page}")) else { continue };
        assert!(figures.kv_cache_usage.is_none_or(|usage| (0.0..=1.0).contains(&usage)), "{figures:?}");
        assert!(figures.started.is_none_or(f64::is_finite), "{figures:?}");
        assert!(!figures.is_another_process(&figures), "{figures:?}");
    }
}
