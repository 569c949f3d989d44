//! What each rule of others does in the situations that it was made for.

use std::time::Duration;

use isotherm_core::{HashSeed, InstanceId, Reason, Time};
use isotherm_workload::{Piece, PieceId, PlannedRequest, SessionId, TenantId};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::{Answer, CacheAware, Chwbl, LMetric, Routed, Router, SessionHash, Sticky};
use crate::prompt::beginnings;

/// A fleet of `n` under a rule, and the number of the last request.
struct Bench<R> {
    router: R,
    number: u32,
}

impl<R: Router> Bench<R> {
    fn new(mut router: R, n: u32) -> Bench<R> {
        for instance in 0..n {
            router.add(instance, &InstanceId::new(format!("instance-{instance}")), Time::ZERO);
        }
        Bench { router, number: 0 }
    }

    /// Sends pieces of 1,000 tokens each and says where they went and why.
    fn send(&mut self, session: u64, pieces: &[u64]) -> (u32, Reason) {
        let prompt: Vec<Piece> = pieces.iter().map(|&id| Piece::new(PieceId(id), 1_000)).collect();
        let mut marks = Vec::new();
        beginnings(&prompt, &mut marks);
        let request = PlannedRequest {
            session: SessionId(session),
            tenant: TenantId(0),
            think: Duration::ZERO,
            prompt,
            output: PieceId(u64::MAX),
            output_tokens: 10,
        };
        self.number += 1;
        let routed = Routed { number: self.number, request: &request, beginnings: &marks, tried: &[] };
        let placed = self.router.choose(&routed, Time::ZERO, &mut Pcg64::seed_from_u64(1)).unwrap();
        (placed.instance, placed.reason)
    }

    fn finish(&mut self, number: u32) {
        let answer = Answer { number, prompt_tokens: 0, cached_tokens: 0, output_tokens: 10, failed: false };
        self.router.first_token(&answer, None, Time::ZERO);
        self.router.finish(&answer, None, Time::ZERO);
    }
}

#[test]
fn chwbl_keeps_a_prefix_home_until_the_bound_and_then_goes_on_along_the_ring() {
    let mut bench = Bench::new(Chwbl::new(HashSeed(1)), 4);
    let (home, reason) = bench.send(1, &[7]);
    assert_eq!(reason, Reason::Home);
    assert!((0..2).all(|_| bench.send(1, &[7]).0 == home), "1 is more than 1.25 of a mean below 0.8: nobody fits");
    let (second, reason) = bench.send(1, &[7]);
    assert!(second != home && reason == Reason::Spill, "1 is at most 1.25 of the mean of 4 over 4");
    (1..=4).for_each(|number| bench.finish(number));
    assert_eq!(bench.send(9, &[7]), (home, Reason::Home));
}

#[test]
fn cache_aware_follows_the_longest_match_and_sends_the_unknown_to_the_least_loaded() {
    let mut bench = Bench::new(CacheAware::new(), 4);
    let (warm, reason) = bench.send(1, &[7, 8]);
    assert_eq!(reason, Reason::LeastOutstanding);
    assert_eq!(bench.send(2, &[7, 8, 9]), (warm, Reason::Home));
    assert_ne!(bench.send(3, &[70]).0, warm);
    assert_eq!(bench.send(4, &[7, 1, 2, 3]).1, Reason::LeastOutstanding, "a quarter is below the threshold");
}

#[test]
fn cache_aware_gives_all_affinity_up_when_one_instance_is_far_ahead() {
    let mut bench = Bench::new(CacheAware::new(), 2);
    let (warm, _) = bench.send(1, &[7]);
    assert!((0..64).all(|_| bench.send(1, &[7]) == (warm, Reason::Home)));
    assert_eq!(bench.send(1, &[7]), (1 - warm, Reason::Spill), "65 against 0");
}

#[test]
fn sticky_stays_until_the_gap_in_uncached_tokens() {
    let mut bench = Bench::new(Sticky::new(), 3);
    let document: Vec<u64> = (0..10).collect();
    let (warm, reason) = bench.send(1, &document);
    assert_eq!(reason, Reason::LeastOutstanding);
    let with_question = |question: u64| [document.clone(), vec![question]].concat();
    let stays = (100..107).all(|question| bench.send(1, &with_question(question)) == (warm, Reason::Home));
    assert!(stays, "10,000 and 7 times 1,000 uncached tokens: the seventh sees 16,000");
    let (elsewhere, reason) = bench.send(1, &with_question(200));
    assert!(elsewhere != warm && reason == Reason::Spill);
}

#[test]
fn lmetric_multiplies_so_a_hot_prefix_spreads() {
    let mut bench = Bench::new(LMetric::new(), 3);
    let (warm, _) = bench.send(1, &[1, 2, 3]);
    bench.finish(1);
    assert_eq!(bench.send(1, &[1, 2, 3, 4]), (warm, Reason::Home));
    assert_eq!(bench.send(1, &[1, 2, 3, 5]).0, warm, "2,000 times 2 against 4,000 times 1 and the order of ties");
    assert_ne!(bench.send(1, &[1, 2, 3, 6]).0, warm);
}

#[test]
fn session_hash_looks_at_nothing_else() {
    let mut bench = Bench::new(SessionHash::default(), 5);
    let (instance, reason) = bench.send(3, &[1]);
    assert_eq!(reason, Reason::Session);
    assert!((0..50).all(|id| bench.send(3, &[id]).0 == instance));
    bench.router.remove(instance, Time::ZERO);
    assert_ne!(bench.send(3, &[1]).0, instance);
}
