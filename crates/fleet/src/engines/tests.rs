//! Metrics pages of real engines, and what must come out of them.

use super::*;

fn sample(page: &str) -> EngineFigures {
    EngineFigures::read(page).expect("an engine's page")
}

#[test]
fn a_page_of_vllm() {
    let figures = sample(include_str!("samples/vllm-0.32.txt"));
    assert_eq!(
        figures,
        EngineFigures {
            running: Some(0),
            waiting: Some(0),
            kv_cache_usage: Some(0.0),
            prefix_cache_queries: Some(6_063),
            prefix_cache_hits: Some(576),
            tokens: Some(6_063 + 172),
            started: Some(1_795_982_563.47),
            prefix_caching: Some(true),
            block_tokens: Some(32),
            cache_tokens: Some(80 * 32),
            hash_algorithm: Some("sha256".to_owned()),
            ..EngineFigures::unknown(EngineKind::Vllm)
        }
    );
}

#[test]
fn ranks_of_vllm_add_up_and_a_setting_that_is_off_is_seen() {
    let figures = sample(
        "vllm:num_requests_running{engine=\"0\"} 2\nvllm:num_requests_running{engine=\"1\"} 3\n\
         vllm:kv_cache_usage_perc{engine=\"0\"} 0.2\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.4\n\
         vllm:prefix_cache_queries_created{engine=\"0\"} 17.5\nvllm:prefix_cache_queries_created{engine=\"1\"} 18\n\
         vllm:cache_config_info{enable_prefix_caching=\"False\"} 1\n",
    );
    assert_eq!((figures.running, figures.waiting), (Some(5), None));
    assert!((figures.kv_cache_usage.unwrap() - 0.3).abs() < 1e-9);
    assert_eq!((figures.prefix_caching, figures.started), (Some(false), Some(17.5)));
}

#[test]
fn a_page_of_sglang_counts_each_replica_once() {
    let figures = sample(include_str!("samples/sglang.txt"));
    assert_eq!((figures.kind, figures.running, figures.waiting), (EngineKind::Sglang, Some(9), Some(2)));
    assert!((figures.kv_cache_usage.unwrap() - 0.38).abs() < 1e-9);
    assert_eq!((figures.prefix_cache_queries, figures.prefix_cache_hits), (Some(8_128_902), Some(5_120_000)));
    assert_eq!((figures.block_tokens, figures.cache_tokens), (Some(1), Some(454_708)));
    assert_eq!((figures.started, figures.prefix_caching), (None, None));
}

#[test]
fn pages_of_tensorrt_llm_and_of_triton() {
    let serve = sample(include_str!("samples/trtllm-serve.txt"));
    assert_eq!((serve.kind, serve.running, serve.waiting), (EngineKind::Trtllm, Some(3), Some(1)));
    assert_eq!((serve.kv_cache_usage, serve.gpu_memory_bytes), (Some(0.62), Some(72_000_000_000)));
    assert_eq!((serve.prefix_cache_queries, serve.prefix_cache_hits), (Some(400 * 32), Some(300 * 32)));
    let triton = sample(include_str!("samples/triton-trtllm.txt"));
    assert_eq!((triton.kind, triton.running, triton.waiting), (EngineKind::Trtllm, Some(5), Some(2)));
    assert_eq!((triton.kv_cache_usage, triton.gpu_memory_bytes), (Some(0.25), Some(1_610_236)));
    assert_eq!((triton.block_tokens, triton.cache_tokens), (Some(64), Some(6_239 * 64)));
    let machine = Machine { cpu: Some(12.5), memory: Some(25.0), gpu: Some(100.0), gpu_memory: Some(125.0), gpus: 2 };
    assert_eq!((triton.machine, serve.machine), (machine, Machine::default()));
}

#[test]
fn a_page_of_llama_cpp() {
    let figures = sample(include_str!("samples/llama.cpp.txt"));
    assert_eq!((figures.kind, figures.running, figures.waiting), (EngineKind::LlamaCpp, Some(0), Some(0)));
    assert_eq!((figures.prefix_cache_queries, figures.prefix_cache_hits), (Some(6_093), Some(3_048)));
    assert_eq!((figures.started, figures.kv_cache_usage), (None, None));
}

#[test]
fn pages_of_others_are_nobodys() {
    for page in ["", "process_start_time_seconds 5\n", "<html>vllm:</html>", "{\"detail\":\"Not Found\"}", "[]"] {
        assert_eq!(EngineFigures::read(page), None, "{page}");
    }
}

#[test]
fn another_process_shows_by_its_start_or_by_counters_that_fell() {
    let vllm = sample(include_str!("samples/vllm-0.32.txt"));
    let busier = EngineFigures { running: Some(9), prefix_cache_queries: Some(7_000), ..vllm.clone() };
    assert!(!busier.is_another_process(&vllm) && !vllm.is_another_process(&vllm));
    assert!(vllm.is_another_process(&busier));
    let later = EngineFigures { started: Some(1_795_982_570.0), ..vllm.clone() };
    assert!(later.is_another_process(&vllm));
    let llama = sample(include_str!("samples/llama.cpp.txt"));
    let anew = EngineFigures { tokens: Some(12), prefix_cache_queries: None, prefix_cache_hits: None, ..llama.clone() };
    assert!(anew.is_another_process(&llama));
    assert!(vllm.is_another_process(&llama));
}
