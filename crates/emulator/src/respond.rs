//! The way of one request through the emulator: observe, authenticate, read, fault or answer.

use std::future::pending;
use std::rc::Rc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Request, header};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::json;

use crate::api::{
    adapters, chat, completions, embeddings, messages, models, rerank, responses, score, sessions, tokenize,
};
use crate::call::Call;
use crate::emulator::Emulator;
use crate::failure::{Dialect, Failure};
use crate::faults::{Faults, HealthFault, RequestFault};
use crate::fields::Fields;
use crate::metrics;
use crate::observed::Observation;
use crate::reply::{self, Broken, Reply, ReplyBody};
use crate::route::{self, Api, Route};

/// Names the adapter with which a request to `/invocations` is computed (`model-hosting-container-standards`).
const ADAPTER_IDENTIFIER: &str = "x-amzn-sagemaker-adapter-identifier";

/// Answers a request. An error breaks the connection.
pub(crate) async fn respond<B>(emulator: Rc<Emulator>, request: Request<B>) -> Result<Reply, Broken>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let route = Route::parse(&parts.method, path);
    let is_observed = route.as_ref().is_ok_and(Route::is_observed);
    let observation = is_observed.then(|| Observation::begin(emulator.observed(), &parts));
    let answered = async {
        authenticate(&emulator, &parts)?;
        let body = read(body, emulator.config().max_body_bytes).await?;
        if let Some(observation) = &observation {
            observation.body(&body);
        }
        answer(&emulator, route?, &parts.headers, &body).await
    }
    .await;
    let mut reply = match answered {
        Ok(reply) => reply,
        Err(Failure::Broken) => return Err(Broken),
        Err(failure) => failure.into_reply(route::dialect(path)),
    };
    if let Some(observation) = observation {
        observation.status(reply.status());
        reply.body_mut().observe(observation);
    }
    Ok(reply)
}

fn authenticate(emulator: &Emulator, parts: &Parts) -> Result<(), Failure> {
    let Some(key) = &emulator.config().api_key else { return Ok(()) };
    let presented = parts
        .headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    if !route::needs_api_key(parts.uri.path()) || presented.is_some_and(|presented| key.matches(presented)) {
        Ok(())
    } else {
        Err(Failure::Unauthorized)
    }
}

async fn read<B>(body: B, limit: usize) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Failure::BodyTooLarge(limit)),
        Err(error) => Err(Failure::Malformed(format!("The body could not be read: {error}"))),
    }
}

async fn answer(emulator: &Rc<Emulator>, route: Route<'_>, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    Ok(match route {
        Route::Health => return health(emulator).await,
        Route::Version => reply::json(&json!({"version": "0.32.0", "emulator": env!("CARGO_PKG_VERSION")})),
        Route::Metrics => reply::text(metrics::page(emulator)),
        Route::Models => models::list(emulator),
        Route::Model(name) => return models::one(emulator, name),
        Route::GetResponse(id) => return responses::get(emulator, id),
        Route::DeleteResponse(id) => return responses::delete(emulator, id),
        Route::CancelResponse(id) => return responses::cancel(emulator, id),
        Route::Tokenize => return tokenize::answer(emulator, &Fields::parse(body)?),
        Route::LoadAdapter => return adapters::load(emulator, &Fields::parse(body)?),
        Route::UnloadAdapter => return adapters::unload(emulator, &Fields::parse(body)?),
        Route::CountTokens => return messages::count_tokens(&Fields::parse(body)?),
        Route::Generate(api) => return generate(emulator, api, headers, body).await,
        Route::ShowFaults => shown_faults(emulator),
        Route::SetFaults => {
            let faults = serde_json::from_slice(body)
                .map_err(|error| Failure::Malformed(format!("The faults cannot be read: {error}")))?;
            emulator.set_faults(faults);
            shown_faults(emulator)
        }
        Route::ClearFaults => {
            emulator.set_faults(Faults::default());
            shown_faults(emulator)
        }
        Route::ShowRequests => reply::json(&json!(emulator.observed().borrow().report())),
        Route::ClearRequests => {
            emulator.observed().borrow_mut().clear();
            reply::json(&json!(emulator.observed().borrow().report()))
        }
    })
}

fn shown_faults(emulator: &Emulator) -> Reply {
    reply::json(&json!(emulator.faults().get()))
}

async fn health(emulator: &Emulator) -> Result<Reply, Failure> {
    let fault = emulator.faults().get().health;
    match fault {
        HealthFault::Ok => Ok(Reply::new(ReplyBody::whole(""))),
        HealthFault::Failing => {
            let mut reply = Reply::new(ReplyBody::whole(""));
            *reply.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            Ok(reply)
        }
        HealthFault::Hanging => pending().await,
    }
}

async fn generate(emulator: &Rc<Emulator>, api: Api, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    let mut die_after = None;
    match emulator.take_request_fault() {
        None => {}
        Some(RequestFault::DieAfterTokens { tokens }) => die_after = Some(tokens),
        Some(RequestFault::HangBeforeHead) => return pending().await,
        Some(RequestFault::HangAfterHead) if is_streaming(body) => {
            return Ok(reply::event_stream(ReplyBody::silent()));
        }
        Some(RequestFault::HangAfterHead) => return Ok(reply::with_json_type(ReplyBody::silent())),
        Some(RequestFault::Status { code, retry_after }) => {
            return Err(Failure::OnDemand { status: code.status(), retry_after });
        }
        Some(RequestFault::ErrorEvent { code }) => {
            let failure = Failure::OnDemand { status: code.status(), retry_after: None };
            return if is_streaming(body) { Ok(error_event(&failure, api)) } else { Err(failure) };
        }
    }
    // SageMaker's containers alone know the header.
    let adapter = headers.get(ADAPTER_IDENTIFIER).filter(|_| api == Api::Invocations);
    let adapter = adapter.and_then(|value| value.to_str().ok()).filter(|name| !name.is_empty());
    let call = Call { emulator, fields: Fields::parse(body)?, adapter, die_after };
    match api {
        Api::Chat => chat::answer(&call).await,
        Api::Completions => completions::answer(&call).await,
        Api::Responses => responses::answer(&call).await,
        Api::Messages => messages::answer(&call).await,
        Api::Embeddings => embeddings::answer(&call).await,
        Api::Rerank => rerank::answer(&call).await,
        Api::Score => score::answer(&call).await,
        Api::Invocations => sessions::answer(&call, headers).await,
    }
}

fn is_streaming(body: &[u8]) -> bool {
    Fields::parse(body).and_then(|fields| fields.or_default("stream")).unwrap_or(false)
}

/// A stream that begins with the error and ends, as vLLM sends it for what fails after the head.
fn error_event(failure: &Failure, api: Api) -> Reply {
    let text = match api {
        Api::Messages => format!("event: error\ndata: {}\n\n", failure.body(Dialect::Anthropic)),
        _ => format!("data: {}\n\ndata: [DONE]\n\n", failure.body(Dialect::OpenAi)),
    };
    reply::event_stream(ReplyBody::whole(text))
}
