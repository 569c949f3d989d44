//! Finds out how long an engine's tokens are, so that prompts have the lengths that were planned.

use std::sync::Arc;
use std::time::Duration;

use isotherm_report::Failure;
use isotherm_workload::{CHARACTERS_PER_TOKEN, Piece, PieceId, PlannedRequest, SessionId, TenantId, TextWriter};

use crate::clock::Clock;
use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::run::{RunError, current_thread_runtime, http_request};
use crate::{Options, Target, chat};

/// Lengths of the two probes, in tokens of the usual length.
const PROBES: [u32; 2] = [200, 1_200];

/// Sends two prompts of different length and compares how many tokens the engine counts: characters for each token,
/// whatever a chat template adds. `None` where the engine does not count. Blocks; must not be called inside an
/// asynchronous runtime.
///
/// # Errors
/// When a probe fails: nothing else would succeed either.
pub fn calibrate(target: &Target, text_seed: u64, options: &Options) -> Result<Option<f64>, RunError> {
    let runtime = current_thread_runtime().map_err(RunError::Runtime)?;
    let counted = runtime.block_on(count_tokens(target, text_seed, options))?;
    let [Some(short), Some(long)] = counted else { return Ok(None) };
    let characters = f64::from(PROBES[1] - PROBES[0]) * CHARACTERS_PER_TOKEN;
    Ok((long > short).then(|| characters / (long - short) as f64))
}

async fn count_tokens(target: &Target, text_seed: u64, options: &Options) -> Result<[Option<u64>; 2], RunError> {
    // Not the words of any request that will be measured.
    let writer = TextWriter::new(!text_seed);
    let clock = Clock::start(options.speed);
    let mut connection = Connection::new(Arc::new(target.clone()), options.connect_timeout);
    let mut counted = [None; 2];
    for ((counted, tokens), id) in counted.iter_mut().zip(PROBES).zip(0..) {
        let planned = PlannedRequest {
            session: SessionId(id),
            tenant: TenantId::default(),
            think: Duration::ZERO,
            prompt: vec![Piece::new(PieceId(id), tokens)],
            output: PieceId(!id),
            output_tokens: 1,
        };
        let request = http_request(target, chat::body(&planned, &writer, target.model(), options), None);
        let exchange = Exchange::perform(&mut connection, request, &clock, options.request_timeout).await;
        if let Some(Failure { kind, detail }) = exchange.failure {
            return Err(RunError::Probe { target: target.to_string(), detail: format!("{kind}: {detail}") });
        }
        *counted = exchange.usage.prompt_tokens;
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::calibrate;
    use crate::run::mock::{Answer, Mock, stream};
    use crate::{Options, Target};

    fn calibrated(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Result<Option<f64>, String> {
        let mock = Mock::start(move |_, body| answer(body["messages"][0]["content"].as_str().unwrap().len()));
        let target = Target::new(&format!("http://{}", mock.address), "m").unwrap();
        calibrate(&target, 1, &Options::for_users(1)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_template_of_an_engine_does_not_count() {
        let found = calibrated(|characters| Answer::sse(stream(1, characters as u64 / 3 + 500, 0))).unwrap().unwrap();
        assert!((found - 3.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn an_engine_that_does_not_count_leaves_it_open() {
        let json = r#"{"choices":[{"message":{"content":"a"}}]}"#;
        assert_eq!(calibrated(|_| Answer::json(200, json)).unwrap(), None);
    }

    #[test]
    fn an_engine_that_refuses_is_an_error_that_says_why() {
        let error = calibrated(|_| Answer::json(404, r#"{"error":"no model m"}"#)).unwrap_err();
        assert!(error.contains("status") && error.contains("no model m"), "{error}");
    }
}
