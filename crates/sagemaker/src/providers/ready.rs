//! Waiting until an instance answers that it is well.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::time::{sleep, timeout};

use super::{CallError, Reached, call};

/// The time between two questions.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(2);
/// What SageMaker asks a container for, and what engines have.
const PATHS: [&str; 2] = ["/ping", "/health"];

/// Waits until an instance answers with success, at most so long; else what the last question came to.
pub(super) async fn until_ready(reached: &Reached, limit: Duration) -> Result<(), String> {
    let mut last = String::from("it was not asked");
    let asking = async {
        loop {
            match ask(reached).await {
                Ok(()) => return,
                Err(problem) => last = problem,
            }
            sleep(ASK_EVERY).await;
        }
    };
    match timeout(limit, asking).await {
        Ok(()) => Ok(()),
        Err(_) => Err(last),
    }
}

async fn ask(reached: &Reached) -> Result<(), String> {
    let given = reached.health.as_ref().map(|path| [path.as_str()]);
    let paths: &[&str] = given.as_ref().map_or(&PATHS, |one| one);
    let mut last = String::new();
    for path in paths {
        match call(reached, Method::GET, path, Bytes::new(), ANSWER).await {
            Ok((status, _)) if status.is_success() => return Ok(()),
            Ok((status, _)) => {
                last = format!("GET {path} was answered with {status}");
                if !matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
                    break;
                }
            }
            Err(error @ CallError::Connect(_)) => return Err(error.to_string()),
            Err(error) => return Err(format!("GET {path}: {error}")),
        }
    }
    Err(last)
}
