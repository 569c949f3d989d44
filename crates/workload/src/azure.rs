//! Requests of two services of Azure as recorded in 2023: times and lengths; what they had in common is not known.

use std::time::Duration;

use jiff::civil::DateTime;

use crate::generator::{Generator, NumberedSessions, single};
use crate::{
    Arrival, InvalidWorkload, OpenLoop, Piece, PieceId, PlannedRequest, SessionId, TenantId, TraceError, TraceSource,
};

/// The first line of a trace.
const HEADER: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";

/// A trace of comma-separated lines: time, tokens of the prompt, tokens of the answer. No two prompts share anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Azure {
    pub trace: TraceSource,
}

impl Azure {
    /// A service that writes code: 8,819 requests of an hour; long prompts, short answers.
    pub fn code() -> Azure {
        let gzip = include_bytes!("../../../data/azure-2023-code.csv.gz");
        Azure { trace: TraceSource::shipped("the Azure 2023 code trace", gzip) }
    }

    /// A service that talks: 19,366 requests of an hour.
    pub fn conversation() -> Azure {
        let gzip = include_bytes!("../../../data/azure-2023-conversation.csv.gz");
        Azure { trace: TraceSource::shipped("the Azure 2023 conversation trace", gzip) }
    }

    /// The requests with their times since the first, in the trace's order.
    fn requests(&self) -> impl Iterator<Item = Result<(Duration, PlannedRequest), TraceError>> + Send + use<> {
        let (mut number, mut first, mut before) = (0, None, Duration::ZERO);
        self.trace.records(move |line| {
            if line.trim_start_matches('\u{feff}') == HEADER {
                return Ok(None);
            }
            let record = Record::parse(line)?;
            let first = *first.get_or_insert(record.time);
            let at = Duration::try_from(record.time.duration_since(first)).unwrap_or_default();
            if record.time < first || at < before {
                return Err(format!("the time goes back to {}; sort the trace by time", record.time));
            }
            before = at;
            number += 1;
            Ok(Some((at, record.request(number))))
        })
    }
}

struct Record {
    time: DateTime,
    context_tokens: u32,
    generated_tokens: u32,
}

impl Record {
    fn parse(line: &str) -> Result<Record, String> {
        let mut fields = line.split(',');
        let (Some(time), Some(context), Some(generated), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(format!("{} fields; the three of a trace are {HEADER}", line.split(',').count()));
        };
        let tokens = |what: &str, text: &str| {
            text.trim().parse().map_err(|_| format!("{what} is {text:?}; it must be a whole number of tokens"))
        };
        Ok(Record {
            time: time.trim().parse().map_err(|error| format!("TIMESTAMP is {time:?}: {error}"))?,
            context_tokens: tokens("ContextTokens", context)?,
            generated_tokens: tokens("GeneratedTokens", generated)?,
        })
    }

    /// Engines read and generate at least one token.
    fn request(&self, number: u64) -> PlannedRequest {
        PlannedRequest {
            session: SessionId(number),
            tenant: TenantId::default(),
            think: Duration::ZERO,
            prompt: vec![Piece::new(PieceId(2 * number), self.context_tokens.max(1))],
            output: PieceId(2 * number + 1),
            output_tokens: self.generated_tokens.max(1),
        }
    }
}

impl Generator for Azure {
    fn name(&self) -> &'static str {
        "azure"
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
    use crate::{Arrival, Arrivals, Azure, Plan};

    fn arrivals(azure: Azure, arrivals: Arrivals) -> Vec<Arrival> {
        let plan = Plan::with_arrivals(azure, arrivals, 1).unwrap();
        plan.open_loop().unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn the_shipped_traces_are_whole_and_last_an_hour() {
        for (azure, count, last) in
            [(Azure::code(), 8_819, 3_435.948_056), (Azure::conversation(), 19_366, 3_501.721_937)]
        {
            let arrivals = arrivals(azure, Arrivals::Recorded { rate: 1.0 });
            assert_eq!(arrivals.len(), count);
            assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
            assert_eq!(arrivals[0].at.as_nanos(), 0);
            assert!((arrivals[count - 1].at.as_secs_f64() - last).abs() < 1e-6, "{:?}", arrivals[count - 1].at);
        }
    }

    #[test]
    fn lengths_are_the_recorded_ones() {
        let mut arrivals = arrivals(Azure::code(), Arrivals::Recorded { rate: 1.0 });
        let request = arrivals[1].requests.next().unwrap();
        assert_eq!((request.prompt_tokens(), request.output_tokens), (3_180, 8));
        assert_eq!(arrivals[1].at.as_micros(), 52_000);
    }

    #[test]
    fn its_lengths_can_arrive_at_random() {
        let arrivals = arrivals(Azure::code(), Arrivals::Poisson { per_second: 5.0 });
        assert_eq!(arrivals.len(), 8_819, "the end of the trace ends the plan");
        assert!((arrivals[8_818].at.as_secs_f64() / (8_819.0 / 5.0) - 1.0).abs() < 0.04);
    }
}
