//! Predicts hit rates by counting alone: how often each beginning was sent before, caches without limit.
//!
//! With `m` uses of a beginning over `n` instances, perfect affinity hits `1 − 1/m` of them and a random choice
//! `1 − n(1 − (1 − 1/n)^m)/m`: use `k + 1` finds its beginning on a random instance unless all `k` before it went to
//! others, which has the probability `(1 − 1/n)^k`. The sum over `k` is the formula above.

use std::collections::HashMap;

use crate::seed::mix;
use crate::{PieceId, PlannedRequest};

/// Counts the uses of every beginning while requests are sent.
#[derive(Clone, Debug)]
pub struct Counter {
    instances: u32,
    uses: HashMap<u64, u32>,
    requests: u64,
    tokens: u64,
    affinity: Sums,
    random: Sums,
}

/// Expected hits, as requests that find the first piece of their prompt and as tokens found.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    requests: f64,
    tokens: f64,
}

impl Counter {
    /// For a fleet of that many equal instances; 0 counts as 1.
    pub fn new(instances: u32) -> Counter {
        Counter {
            instances: instances.max(1),
            uses: HashMap::new(),
            requests: 0,
            tokens: 0,
            affinity: Sums::default(),
            random: Sums::default(),
        }
    }

    /// Takes note of the next request. It always warms the caches, also with its answer, and enters the prediction when
    /// it is `measured`.
    pub fn count(&mut self, request: &PlannedRequest, measured: bool) {
        self.requests += u64::from(measured);
        let mut beginning = 0;
        for (place, piece) in request.prompt.iter().enumerate() {
            beginning = extend(beginning, piece.id);
            let before = self.uses.entry(beginning).or_default();
            if measured {
                let weight = Sums { requests: f64::from(place == 0), tokens: f64::from(piece.tokens) };
                self.tokens += u64::from(piece.tokens);
                self.affinity.add(if *before > 0 { 1.0 } else { 0.0 }, weight);
                self.random.add(found_at_random(*before, self.instances), weight);
            }
            *before += 1;
        }
        *self.uses.entry(extend(beginning, request.output)).or_default() += 1;
    }

    /// What the measured requests should hit; `None` before the first one.
    pub fn prediction(&self) -> Option<Prediction> {
        let share = |sums: Sums| HitRate {
            of_requests: sums.requests / self.requests as f64,
            of_tokens: sums.tokens / self.tokens as f64,
        };
        (self.requests > 0).then(|| Prediction { affinity: share(self.affinity), random: share(self.random) })
    }
}

impl Sums {
    fn add(&mut self, probability: f64, weight: Sums) {
        self.requests += probability * weight.requests;
        self.tokens += probability * weight.tokens;
    }
}

/// What counting predicts under the two extremes of routing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Every beginning always to the same instance.
    pub affinity: HitRate,
    /// Every request to any instance, all equally likely.
    pub random: HitRate,
}

/// A predicted hit rate, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HitRate {
    /// Share of the requests that find the first piece of their prompt.
    pub of_requests: f64,
    /// Share of the prompt tokens found; below the other, because questions are never found. Engines report this one.
    pub of_tokens: f64,
}

/// The probability that at least one of `uses` earlier requests went to the same instance.
fn found_at_random(uses: u32, instances: u32) -> f64 {
    1.0 - (1.0 - 1.0 / f64::from(instances)).powf(f64::from(uses))
}

/// Names the beginning that continues another by one piece.
fn extend(beginning: u64, piece: PieceId) -> u64 {
    mix(beginning ^ mix(piece.0))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use rand::RngExt;

    use super::{Counter, Prediction};
    use crate::seed::{Purpose, stream};
    use crate::{Documents, NoSharing, Piece, PieceId, Plan, PlannedRequest, SessionId, TenantId};

    fn piece(id: u64, tokens: u32) -> Piece {
        Piece::new(PieceId(id), tokens)
    }

    /// A request whose answer nobody ever sends back.
    fn request(prompt: Vec<Piece>) -> PlannedRequest {
        let (session, tenant, output) = (SessionId(0), TenantId(0), PieceId(u64::MAX));
        PlannedRequest { session, tenant, think: Duration::ZERO, prompt, output, output_tokens: 1 }
    }

    fn uses_of_one_document(uses: u32, instances: u32) -> Prediction {
        let mut counter = Counter::new(instances);
        for question in 0..uses {
            counter.count(&request(vec![piece(1, 900), piece(100 + u64::from(question), 100)]), true);
        }
        counter.prediction().unwrap()
    }

    #[test]
    fn agrees_with_the_closed_formulas() {
        for (m, affinity, random) in [(5, 0.800, 0.248), (6, 0.833, 0.296)] {
            let prediction = uses_of_one_document(m, 7);
            assert!((prediction.affinity.of_requests - affinity).abs() < 5e-4, "{prediction:?}");
            assert!((prediction.random.of_requests - random).abs() < 5e-4, "{prediction:?}");
        }
        for (m, n) in [(1, 2), (2, 2), (7, 3), (40, 20)] {
            let (uses, instances) = (f64::from(m), f64::from(n));
            let prediction = uses_of_one_document(m, n);
            let random = 1.0 - instances * (1.0 - (1.0 - 1.0 / instances).powf(uses)) / uses;
            assert!((prediction.affinity.of_requests - (1.0 - 1.0 / uses)).abs() < 1e-12);
            assert!((prediction.random.of_requests - random).abs() < 1e-12);
            assert!((prediction.random.of_tokens - 0.9 * random).abs() < 1e-12);
        }
    }

    #[test]
    fn one_instance_makes_both_equal_and_nothing_measured_predicts_nothing() {
        let prediction = uses_of_one_document(5, 1);
        assert_eq!(prediction.affinity, prediction.random);
        assert_eq!(Counter::new(7).prediction(), None);
    }

    #[test]
    fn a_piece_counts_only_after_the_same_beginning() {
        let piece = |id| piece(id, 10);
        let mut counter = Counter::new(2);
        counter.count(&request(vec![piece(1), piece(2)]), false);
        counter.count(&request(vec![piece(3), piece(2)]), true);
        assert_eq!(counter.prediction().unwrap().affinity.of_tokens, 0.0);
        counter.count(&request(vec![piece(1), piece(2), piece(4)]), true);
        let affinity = counter.prediction().unwrap().affinity;
        assert_eq!((affinity.of_requests, affinity.of_tokens), (0.5, 0.4));
    }

    /// Routes the plan through caches that forget nothing and counts what they hit.
    fn simulate(requests: &[PlannedRequest], warm_up: usize, mut route: impl FnMut(&PlannedRequest) -> u32) -> f64 {
        let mut cached: HashSet<(u32, PieceId)> = HashSet::new();
        let (mut hit, mut tokens) = (0, 0);
        for (place, request) in requests.iter().enumerate() {
            let instance = route(request);
            for piece in &request.prompt {
                let found = !cached.insert((instance, piece.id));
                if place >= warm_up {
                    hit += if found { u64::from(piece.tokens) } else { 0 };
                    tokens += u64::from(piece.tokens);
                }
            }
        }
        hit as f64 / tokens as f64
    }

    #[test]
    fn simulated_infinite_caches_hit_what_is_predicted() {
        let plan = Plan::new(Documents::for_instances(7), 9).unwrap();
        let (requests, warm_up) = (plan.in_turn(40_000), 138);
        let mut counter = Counter::new(7);
        for (place, request) in requests.iter().enumerate() {
            counter.count(request, place >= warm_up);
        }
        let predicted = counter.prediction().unwrap();
        let affinity = simulate(&requests, warm_up, |request| (request.prompt[0].id.0 % 7) as u32);
        assert!((affinity - predicted.affinity.of_tokens).abs() < 1e-9, "{affinity} {predicted:?}");
        let mut rng = stream(1, Purpose::User, 0);
        let random = simulate(&requests, warm_up, |_| rng.random_range(0..7));
        assert!((random - predicted.random.of_tokens).abs() < 0.01, "{random} {predicted:?}");
        assert!((predicted.affinity.of_requests - 0.818).abs() < 0.003, "{predicted:?}");
        assert!((predicted.random.of_requests - 0.273).abs() < 0.003, "{predicted:?}");
    }

    #[test]
    fn prompts_that_share_nothing_hit_nothing() {
        let mut counter = Counter::new(7);
        let plan = Plan::new(NoSharing::for_instances(7), 1).unwrap();
        plan.in_turn(500).iter().for_each(|request| counter.count(request, true));
        let prediction = counter.prediction().unwrap();
        assert_eq!((prediction.affinity.of_tokens, prediction.random.of_tokens), (0.0, 0.0));
    }
}
