//! The curve against a cache that is really simulated, whole and sampled.

use super::*;
use crate::chain::{extend_by_id, units};

fn block(hash: u64, tokens: u32) -> Block {
    Block { hash, units: units(tokens), characters: 0, generated: false }
}

/// Requests for documents of 8 blocks of 16 tokens; some documents are asked for much more than others.
fn requests(count: u64) -> Vec<Vec<Block>> {
    (0..count)
        .map(|number| {
            let random = extend_by_id(7, number);
            let document = (random % 60).min((random >> 20) % 60);
            (0..8).map(|place| block(extend_by_id(document + 1, place), 16)).collect()
        })
        .collect()
}

fn watched(requests: &[Vec<Block>], most_blocks: usize) -> Reuse {
    let mut reuse = Reuse::new(most_blocks);
    requests.iter().for_each(|request| reuse.take(request, None));
    reuse
}

/// Hit rate of a cache that evicts the least recently used block, the end of a prompt first.
fn simulated(requests: &[Vec<Block>], cache_tokens: u32) -> f64 {
    let (mut order, mut hits, mut uses): (Vec<u64>, u32, u32) = (Vec::new(), 0, 0);
    for request in requests {
        hits += request.iter().filter(|block| order.contains(&block.hash)).count() as u32;
        uses += request.len() as u32;
        for block in request.iter().rev() {
            order.retain(|hash| *hash != block.hash);
            order.push(block.hash);
        }
        let most = cache_tokens as usize / 16;
        order.drain(..order.len().saturating_sub(most));
    }
    f64::from(hits) / f64::from(uses)
}

#[test]
fn the_curve_is_what_caches_of_these_sizes_hit() {
    let requests = requests(600);
    let reuse = watched(&requests, 1_000);
    assert!(reuse.is_exact());
    for cache_tokens in [128, 512, 1_024, 2_048, 4_096, 8_192] {
        let (found, expected) = (reuse.hit_rate(f64::from(cache_tokens)), simulated(&requests, cache_tokens));
        assert!((found.value - expected).abs() < 1e-9, "{cache_tokens}: {found:?}, simulated {expected}");
        assert_eq!(found.error, 0.0);
    }
    let curve = reuse.curve(1.0);
    assert!(curve.windows(2).all(|pair| pair[0].hit_rate.value <= pair[1].hit_rate.value));
    assert_eq!(curve.last().unwrap().hit_rate, reuse.hit_rate(f64::INFINITY));
}

#[test]
fn a_sample_tells_the_same_within_its_error() {
    let requests = requests(20_000);
    let (whole, sample) = (watched(&requests, 1_000), watched(&requests, 130));
    assert!(!sample.is_exact() && sample.blocks.len() <= 130 && sample.sampled_share() < 0.6);
    for cache_tokens in [1_024.0, 2_048.0, f64::INFINITY] {
        let (found, expected) = (sample.hit_rate(cache_tokens), whole.hit_rate(cache_tokens).value);
        assert!((found.value - expected).abs() <= 1.5 * found.error.max(0.01), "{found:?}, {expected}");
    }
}

#[test]
fn positions_that_run_out_are_given_anew() {
    // 16 positions for 8 blocks: renumbered at almost every request.
    let requests: Vec<Vec<Block>> = (0..50_u64).map(|number| vec![block(extend_by_id(1, number % 4), 16)]).collect();
    let reuse = watched(&requests, 8);
    assert!((reuse.hit_rate(64.0).value - 46.0 / 50.0).abs() < 1e-9);
    assert_eq!(reuse.hit_rate(48.0).value, 0.0);
}

#[test]
fn an_answer_that_comes_back_counts_as_computed() {
    let mut reuse = Reuse::new(100);
    let prompt = [block(extend_by_id(1, 1), 100)];
    let answer = Block { generated: true, ..block(extend_by_id(1, 2), 50) };
    reuse.take(&prompt, Some(0));
    reuse.take(&[prompt[0], answer, block(extend_by_id(1, 3), 50)], Some(4_000_000));
    assert_eq!(reuse.hit_rate(f64::INFINITY).value, 0.5);
    let seconds = reuse.seconds().unwrap();
    assert!((3.7..4.3).contains(&seconds.p50), "{seconds:?}");
}
