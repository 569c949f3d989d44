//! Bursts of prompts that begin alike and that nobody sent before: the second cannot wait to see where the first went.

use std::ops::RangeInclusive;
use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg64;

use crate::generator::{Generator, single};
use crate::invalid::{check_count, check_range};
use crate::pieces::PieceMaker;
use crate::seed::{Purpose, stream};
use crate::{Arrival, InvalidWorkload, OpenLoop, Piece, PlannedRequest, SessionId, TenantId};

/// Every so often a new document about which many ask at once. It comes at its own times only.
#[derive(Clone, Debug, PartialEq)]
pub struct ColdBurst {
    /// How many requests a burst has, at least 1.
    pub size: u32,
    /// All requests of a burst are sent within this time.
    pub within: Duration,
    /// From the beginning of one burst to that of the next; more than nothing.
    pub every: Duration,
    /// Tokens of the document that a burst is about, at least 1.
    pub document_tokens: u32,
    /// Tokens of a question, at least 1.
    pub question_tokens: RangeInclusive<u32>,
    /// Tokens of an answer, at least 1.
    pub output_tokens: RangeInclusive<u32>,
}

impl Default for ColdBurst {
    /// 32 questions about a new document of 8,000 tokens within 10 ms, every 20 s.
    fn default() -> ColdBurst {
        ColdBurst {
            size: 32,
            within: Duration::from_millis(10),
            every: Duration::from_secs(20),
            document_tokens: 8_000,
            question_tokens: 60..=200,
            output_tokens: 100..=160,
        }
    }
}

impl ColdBurst {
    /// One burst: when its requests are sent, from its beginning on and in this order, and what they are.
    fn burst(&self, seed: u64, number: u64) -> Vec<(Duration, PlannedRequest)> {
        let mut rng = stream(seed, Purpose::Session, number);
        let mut pieces = PieceMaker::for_session(SessionId(number));
        let document = pieces.piece(self.document_tokens);
        let mut offsets: Vec<f64> = (0..self.size).map(|_| rng.random()).collect();
        offsets.sort_unstable_by(f64::total_cmp);
        offsets
            .into_iter()
            .map(|offset| (self.within.mul_f64(offset), self.request(&mut rng, &mut pieces, document)))
            .collect()
    }

    fn request(&self, rng: &mut Pcg64, pieces: &mut PieceMaker, document: Piece) -> PlannedRequest {
        let question = pieces.piece(rng.random_range(self.question_tokens.clone()));
        PlannedRequest {
            session: SessionId(question.id.0),
            tenant: TenantId::default(),
            think: Duration::ZERO,
            prompt: vec![document, question],
            output: pieces.id(),
            output_tokens: rng.random_range(self.output_tokens.clone()),
        }
    }
}

impl Generator for ColdBurst {
    fn name(&self) -> &'static str {
        "cold-burst"
    }

    fn check(&self) -> Result<(), InvalidWorkload> {
        check_count("the number of requests in a burst", self.size)?;
        check_count("the length of a document", self.document_tokens)?;
        check_range("the length of a question", &self.question_tokens)?;
        check_range("the length of an answer", &self.output_tokens)?;
        if self.every < self.within || self.every.is_zero() {
            return Err(InvalidWorkload::OverlappingBursts { every: self.every, within: self.within });
        }
        Ok(())
    }

    fn recorded(&self, seed: u64) -> Option<OpenLoop> {
        let workload = self.clone();
        Some(Box::new((0..).flat_map(move |number: u32| {
            let begin = workload.every.saturating_mul(number);
            workload.burst(seed, u64::from(number)).into_iter().map(move |(offset, request)| {
                Ok(Arrival { at: begin.saturating_add(offset), requests: single(request) })
            })
        })))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{Arrivals, ColdBurst, Plan, PlannedRequest};

    fn arrivals(plan: &Plan, count: usize) -> Vec<(Duration, PlannedRequest)> {
        let arrivals = plan.open_loop().unwrap().take(count).map(Result::unwrap);
        arrivals.map(|mut arrival| (arrival.at, arrival.requests.next().unwrap())).collect()
    }

    #[test]
    fn every_burst_is_of_equal_beginnings_that_were_never_seen() {
        let arrivals = arrivals(&Plan::new(ColdBurst::default(), 1).unwrap(), 320);
        assert!(arrivals.is_sorted_by_key(|(at, _)| *at));
        let mut documents = Vec::new();
        for (number, burst) in (0..).zip(arrivals.chunks(32)) {
            let begin = Duration::from_secs(20) * number;
            assert!(burst.iter().all(|(at, _)| (begin..=begin + Duration::from_millis(10)).contains(at)));
            let document = burst[0].1.prompt[0];
            assert!(burst.iter().all(|(_, request)| request.prompt[0] == document));
            documents.push(document.id);
        }
        documents.sort_unstable();
        documents.dedup();
        assert_eq!(documents.len(), 10);
    }

    #[test]
    fn its_times_can_be_made_faster_but_not_replaced() {
        let faster = Plan::with_arrivals(ColdBurst::default(), Arrivals::Recorded { rate: 4.0 }, 1).unwrap();
        assert_eq!(arrivals(&faster, 33)[32].0.as_secs(), 5);
        let refuse = |arrivals| Plan::with_arrivals(ColdBurst::default(), arrivals, 1).unwrap_err().to_string();
        assert_eq!(refuse(Arrivals::Users), "cold-burst has no users; give it arrivals in open loop");
        assert_eq!(
            refuse(Arrivals::Poisson { per_second: 1.0 }),
            "cold-burst comes at its own times; they can be made faster or slower, not replaced"
        );
    }

    #[test]
    fn overlapping_bursts_are_refused() {
        let burst = ColdBurst { every: Duration::from_millis(5), ..ColdBurst::default() };
        assert_eq!(
            Plan::new(burst, 1).unwrap_err().to_string(),
            "bursts come every 5ms and take 10ms; the first must not be below the second, nor 0"
        );
    }
}
