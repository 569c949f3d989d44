//! Requests of a chat service as recorded in the format of Mooncake: times, lengths, and which blocks were equal.

use std::time::Duration;

use serde::Deserialize;

use crate::generator::{Generator, NumberedSessions, single};
use crate::pieces::shared;
use crate::{
    Arrival, InvalidWorkload, OpenLoop, Piece, PieceId, PlannedRequest, SessionId, TenantId, TraceError, TraceSource,
};

/// Tokens in one block of the trace.
const BLOCK_TOKENS: u32 = 512;

/// A trace of one JSON object a line: `timestamp` (ms), `input_length`, `output_length` (tokens) and `hash_ids`, one
/// id for each block of 512 tokens; equal ids are equal prompts up to there. Nothing tells which request continues
/// which, so every request is a session of its own, and answers come back as blocks of the later prompt, not as pieces
/// of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mooncake {
    pub trace: TraceSource,
}

impl Mooncake {
    /// The conversations of the FAST25 release: 12,031 requests of an hour. All begin with the same block.
    pub fn conversation() -> Mooncake {
        let gzip = include_bytes!("../../../data/mooncake-conversation.jsonl.gz");
        Mooncake { trace: TraceSource::shipped("the Mooncake conversation trace", gzip) }
    }

    /// The synthetic trace of the FAST25 release: 3,993 requests of 17 minutes.
    pub fn synthetic() -> Mooncake {
        let gzip = include_bytes!("../../../data/mooncake-synthetic.jsonl.gz");
        Mooncake { trace: TraceSource::shipped("the Mooncake synthetic trace", gzip) }
    }

    /// The requests with their times, in the trace's order.
    fn requests(&self) -> impl Iterator<Item = Result<(Duration, PlannedRequest), TraceError>> + Send + use<> {
        let (mut number, mut before) = (0, 0);
        self.trace.records(move |line| {
            let record: Record = serde_json::from_str(line).map_err(|error| error.to_string())?;
            if record.timestamp < before {
                let now = record.timestamp;
                return Err(format!("the time stamp goes back from {before} to {now}; sort the trace by time"));
            }
            before = record.timestamp;
            number += 1;
            Ok(Some((Duration::from_millis(record.timestamp), record.request(number)?)))
        })
    }
}

#[derive(Deserialize)]
struct Record {
    timestamp: u64,
    input_length: u32,
    output_length: u32,
    hash_ids: Vec<u64>,
}

impl Record {
    fn request(&self, number: u64) -> Result<PlannedRequest, String> {
        let blocks = self.input_length.div_ceil(BLOCK_TOKENS) as usize;
        if self.hash_ids.len() != blocks || blocks == 0 {
            let (found, tokens) = (self.hash_ids.len(), self.input_length);
            return Err(format!(
                "hash_ids has {found} entries for an input of {tokens} tokens; it must have one for each block of \
                 {BLOCK_TOKENS}, {blocks} here, and at least one"
            ));
        }
        let piece = |(place, id): (u32, &u64)| {
            Piece::new(PieceId(*id), (self.input_length - place * BLOCK_TOKENS).min(BLOCK_TOKENS))
        };
        Ok(PlannedRequest {
            session: SessionId(number),
            tenant: TenantId::default(),
            think: Duration::ZERO,
            prompt: (0..).zip(&self.hash_ids).map(piece).collect(),
            output: shared(number),
            output_tokens: self.output_length.max(1),
        })
    }
}

impl Generator for Mooncake {
    fn name(&self) -> &'static str {
        "mooncake"
    }

    fn check(&self) -> Result<(), InvalidWorkload> {
        Ok(())
    }

    fn sessions(&self, _seed: u64) -> Option<NumberedSessions> {
        Some(Box::new(self.requests().map(|record| record.map(|(_, request)| single(request)))))
    }

    fn recorded(&self, _seed: u64) -> Option<OpenLoop> {
        let arrival = |(at, request)| Arrival { at, requests: single(request) };
        Some(Box::new(self.requests().map(move |record| record.map(arrival))))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Arrivals, Counter, Mooncake, Plan, PlannedRequest, Prediction};

    fn requests(mooncake: Mooncake) -> Vec<PlannedRequest> {
        let plan = Plan::new(mooncake, 1).unwrap();
        plan.open_loop().unwrap().map(|arrival| arrival.unwrap().requests.next().unwrap()).collect()
    }

    fn predicted(requests: &[PlannedRequest]) -> Prediction {
        let mut counter = Counter::new(7);
        requests.iter().for_each(|request| counter.count(request, true));
        counter.prediction().unwrap()
    }

    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 0.01, "{found}, expected {expected}");
    }

    #[test]
    fn token_hit_rates_of_the_conversations_agree_with_the_reference() {
        let requests = requests(Mooncake::conversation());
        assert_eq!(requests.len(), 12_031);
        assert!(requests.iter().all(|request| request.prompt[0] == requests[0].prompt[0]), "all share block 0");
        let found = predicted(&requests);
        assert_close(found.affinity.of_tokens, 0.374);
        assert_close(found.random.of_tokens, 0.145);
    }

    #[test]
    fn token_hit_rates_of_the_synthetic_trace_agree_with_the_reference() {
        let requests = requests(Mooncake::synthetic());
        assert_eq!(requests.len(), 3_993);
        let found = predicted(&requests);
        assert_close(found.affinity.of_tokens, 0.651);
        assert_close(found.random.of_tokens, 0.263);
    }

    #[test]
    fn lengths_and_times_are_the_recorded_ones() {
        let plan = Plan::with_arrivals(Mooncake::conversation(), Arrivals::Recorded { rate: 2.0 }, 1).unwrap();
        let mut last = None;
        for (place, arrival) in plan.open_loop().unwrap().map(Result::unwrap).enumerate() {
            let request = { arrival.requests }.next().unwrap();
            if place == 0 {
                assert_eq!((request.prompt_tokens(), request.prompt.len(), request.output_tokens), (6_758, 14, 500));
            }
            assert!(last <= Some(arrival.at));
            last = Some(arrival.at);
        }
        assert_eq!(last.unwrap().as_secs_f64(), 3_536.999 / 2.0);
    }
}
