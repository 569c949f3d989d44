//! The second stage: who asks. Covers every path but those that only say whether the router is well.
//!
//! | credential | where |
//! |---|---|
//! | opaque key: `Authorization: Bearer KEY` or `x-api-key` | everywhere |
//! | AWS's signature | everywhere but on SageMaker's OpenAI-compatible paths; in a presigned query for AWS's services |
//! | SageMaker's bearer token | OpenAI's and Anthropic's APIs, also on SageMaker's paths |
//!
//! A signature covers the body, so of a signed request the body is read here; what its head shows to be wrong is refused
//! before that.

mod credential;

use std::sync::Arc;
use std::time::SystemTime;

use http::Method;
use http::header::ORIGIN;
use http::request::Parts;
use isotherm_config::{KeyHolder, KeyRing};
use isotherm_wire::aws::{Asked, Service};
use isotherm_wire::sigv4::{BearerToken, Claim, Refusal};

use self::credential::Credential;
use super::accept::Accepted;
use super::finish::Record;
use crate::call::name_in_topology;
use crate::rescue::Failure;
use crate::route::{Route, RuntimeApi};
use crate::upload::{Upload, body_limit};

/// The signing name of SageMaker, its runtime and its control plane.
const SAGEMAKER: &str = "sagemaker";

/// A request whose sender may ask; the record knows whose key it came with.
#[derive(Debug)]
pub(crate) struct Authenticated {
    /// What it asks for.
    pub(crate) route: Route,
    /// Its head.
    pub(crate) head: Box<Parts>,
    /// Its body, which is here if it was signed.
    pub(crate) body: Upload,
    /// Whether the client's credentials pass to the instance: only where the router does not authenticate, and never
    /// those that are meant for AWS.
    pub(crate) credentials_pass: bool,
}

/// Lets a request in, or says why not.
pub(crate) async fn authenticate(request: Accepted, record: &mut Record) -> Result<Authenticated, Failure> {
    let Accepted { route, head, body } = request;
    let Some(keys) = record.rules.keys.clone() else {
        // A page from elsewhere can make a browser send requests to loopback, but not without saying so.
        if matches!(route, Route::Aws(_)) && head.headers.contains_key(ORIGIN) {
            return Err(Failure::WebPage);
        }
        let credentials_pass = note_unproven(&head, record);
        return Ok(Authenticated { route, head, body, credentials_pass });
    };
    let mut body = body;
    if !route.is_health() {
        match Credential::of(&head)? {
            None => return Err(Failure::NoKey),
            Some(Credential::Opaque(key)) => {
                let holder = keys.authenticate(key).ok_or(Failure::UnknownKey)?;
                check_life(&holder)?;
                record.principal = Some(holder);
            }
            Some(Credential::Token(token)) => check_token(&token, &route, &keys, record)?,
            Some(Credential::Signature(claim)) => {
                body = Box::pin(check_signature(&claim, &route, &head, body, &keys, record)).await?;
            }
        }
    }
    if let Route::Runtime { endpoint, .. } = &route {
        authorize(&name_in_topology(endpoint, record), record)?;
    }
    Ok(Authenticated { route, head, body, credentials_pass: false })
}

/// Where anyone is let in, notes what AWS's clients say of themselves; whether their credentials pass to the instance.
fn note_unproven(head: &Parts, record: &mut Record) -> bool {
    let signed = match Credential::of(head) {
        Ok(Some(Credential::Signature(claim))) => (claim.access_key().into(), claim.region().into()),
        Ok(Some(Credential::Token(token))) => (token.access_key().into(), token.region().into()),
        Ok(Some(Credential::Opaque(_)) | None) => return true,
        Err(_) => return false,
    };
    record.signed = Some(signed).filter(|(_, region): &(_, Box<str>)| record.rules.serves_region(region));
    false
}

fn check_token(token: &BearerToken, route: &Route, keys: &KeyRing, record: &mut Record) -> Result<(), Failure> {
    // AWS lets its holder invoke, and that on the OpenAI-compatible paths only.
    let native = matches!(route, Route::Runtime { api, .. } if api.operation().is_some());
    if native || matches!(route, Route::Aws(_)) {
        return Err(Failure::Signature(Refusal::BadToken));
    }
    let key = keys.signing_key(token.access_key()).ok_or(Failure::Signature(Refusal::UnknownKey))?;
    check_life(key.holder())?;
    token.verify(key.expose_secret())?;
    token.check_time(SystemTime::now())?;
    check_region(token.region(), record)?;
    record.principal = Some(Arc::clone(key.holder()));
    record.signed = Some((token.access_key().into(), token.region().into()));
    Ok(())
}

/// Proves a signature; what is left is the body, whole.
async fn check_signature(
    claim: &Claim,
    route: &Route,
    head: &Parts,
    body: Upload,
    keys: &KeyRing,
    record: &mut Record,
) -> Result<Upload, Failure> {
    if let Route::Runtime { api: RuntimeApi::OpenAi { .. } | RuntimeApi::OpenAiModels { .. }, .. } = route {
        return Err(Failure::SignedNotBearer);
    }
    if claim.is_presigned() && !matches!(route, Route::Aws(_)) {
        let message = "Requests to this path are signed in their headers: their queries pass to an engine.";
        return Err(Failure::Signature(Refusal::Incomplete(message.to_owned())));
    }
    let key = keys.signing_key(claim.access_key()).ok_or(Failure::Signature(Refusal::UnknownKey))?;
    check_life(key.holder())?;
    claim.check_time(SystemTime::now())?;
    check_region(claim.region(), record)?;
    if !matches!(route, Route::Aws(_)) {
        claim.check_service(SAGEMAKER)?;
    }
    let body = body.whole(body_limit(route, &record.rules.limits), record).await?;
    claim.verify(head, &body, key.expose_secret())?;
    record.principal = Some(Arc::clone(key.holder()));
    record.signed = Some((claim.access_key().into(), claim.region().into()));
    Ok(Upload::Here(body))
}

/// A key that is over proves nothing, whatever was made with it.
fn check_life(holder: &KeyHolder) -> Result<(), Refusal> {
    if holder.has_expired(SystemTime::now()) { Err(Refusal::TokenExpired) } else { Ok(()) }
}

fn check_region(region: &str, record: &Record) -> Result<(), Refusal> {
    if record.rules.serves_region(region) { Ok(()) } else { Err(Refusal::WrongRegion(region.to_owned())) }
}

/// Whether the request's key may call an endpoint, by its name in the topology: it must be one of its account's, and of
/// those that it names.
pub(crate) fn authorize(endpoint: &str, record: &Record) -> Result<(), Failure> {
    // Endpoints of other accounts than the configured one have its number before their name.
    let (account, name) = endpoint.split_once('/').unwrap_or((record.rules.account.as_str(), endpoint));
    match &record.principal {
        Some(holder) if account != record.account().as_str() || !holder.may_call(name) => {
            let caller = record.caller();
            let (region, name) = (&caller.region, name.to_ascii_lowercase());
            let resource = format!("arn:aws:sagemaker:{region}:{account}:endpoint/{name}");
            Err(Failure::Denied { user: caller.arn(), action: "sagemaker:InvokeEndpoint".to_owned(), resource })
        }
        _ => Ok(()),
    }
}

/// Whether the request's key may ask this of a service: it was signed for that service, if it was signed, and its holder
/// is not confined to calling some endpoints.
pub(crate) fn authorize_service(head: &Parts, body: &[u8], record: &Record) -> Result<(), Failure> {
    let Asked { service, operation } = Asked::of(head, body);
    let Some(holder) = &record.principal else {
        // A page from elsewhere can make a browser load any address, and that does not even say so.
        let is_loaded = head.method != Method::POST && !operation.is_empty();
        let may_change = !matches!(service, Service::Sts | Service::Other(_));
        return if is_loaded && may_change { Err(Failure::WebPage) } else { Ok(()) };
    };
    if let (Some(claim), Some(name)) = (Claim::of(head)?, service.signing_name()) {
        claim.check_service(name)?;
    }
    // Whoever one is, one may ask who that is.
    if holder.may_administer() || service == Service::Sts {
        return Ok(());
    }
    let name = service.signing_name().unwrap_or("aws");
    let action = format!("{name}:{operation}");
    Err(Failure::Denied { user: record.caller().arn(), action, resource: "*".to_owned() })
}
