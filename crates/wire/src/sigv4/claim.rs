//! Reads what a request claims of its signature: from its `Authorization` header, or from a presigned query.

use std::time::Duration;

use http::header::{AUTHORIZATION, DATE};
use http::request::Parts;

use super::Claim;
use super::canonical::check_signed;
use super::instant::Instant;
use super::query::parameter;
use super::refusal::Refusal;
use super::signature::{ALGORITHM, Scope, Signature, TERMINATOR};

/// Presigned requests are good for a week at the most.
const LONGEST_LIFE: u64 = 7 * 24 * 60 * 60;

/// The claim of a head; `None` where there is none.
pub(super) fn read(head: &Parts) -> Result<Option<Claim>, Refusal> {
    let authorization = head.headers.get(AUTHORIZATION).filter(|value| value.as_bytes().starts_with(b"AWS4-"));
    let query = head.uri.query().unwrap_or("");
    let algorithm = parameter(query, "X-Amz-Algorithm");
    let claim = match (authorization, algorithm) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(incomplete("A request is signed in its headers or in its query, not in both."));
        }
        (Some(value), None) => {
            let value = value.to_str().map_err(|_| incomplete("The Authorization header is not ASCII."))?;
            in_header(head, value)?
        }
        (None, Some(algorithm)) => in_query(query, &algorithm)?,
    };
    check_day(&claim)?;
    check_signed(&head.headers, &claim.signed_headers)?;
    Ok(Some(claim))
}

/// `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`.
fn in_header(head: &Parts, value: &str) -> Result<Claim, Refusal> {
    let (algorithm, rest) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
    check_algorithm(algorithm)?;
    let part = |name: &str| {
        let mut parts = rest.split(',').filter_map(|part| part.trim().split_once('='));
        parts.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let required = |name: &str| {
        part(name).ok_or_else(|| incomplete(&format!("Authorization header requires '{name}' parameter.")))
    };
    let (scope, signed_headers) = (scope(required("Credential")?)?, required("SignedHeaders")?);
    let signature = signature(required("Signature")?)?;
    let signed_headers = names(signed_headers)?;
    let signed_at = signing_time(head, &signed_headers)?;
    Ok(Claim { scope, signed_at, expires: None, signed_headers, signature })
}

/// `?X-Amz-Algorithm=…&X-Amz-Credential=…`.
fn in_query(query: &str, algorithm: &str) -> Result<Claim, Refusal> {
    check_algorithm(algorithm)?;
    let required = |name: &str| {
        parameter(query, name).ok_or_else(|| incomplete(&format!("AWS query-string parameters must include '{name}'.")))
    };
    let seconds = required("X-Amz-Expires")?.parse::<u64>().ok().filter(|seconds| (1..=LONGEST_LIFE).contains(seconds));
    let expires = seconds.ok_or_else(|| incomplete("X-Amz-Expires must be a number of seconds from 1 to 604800."))?;
    Ok(Claim {
        scope: scope(&required("X-Amz-Credential")?)?,
        signed_at: time(Instant::parse(&required("X-Amz-Date")?))?,
        expires: Some(Duration::from_secs(expires)),
        signed_headers: names(&required("X-Amz-SignedHeaders")?)?,
        signature: signature(&required("X-Amz-Signature")?)?,
    })
}

/// When the headers say that they were signed; they must be signed themselves to count.
fn signing_time(head: &Parts, signed: &[String]) -> Result<Instant, Refusal> {
    let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    match (text("x-amz-date"), text(DATE.as_str())) {
        (Some(date), _) => time(Instant::parse(date)),
        (None, Some(_)) if !signed.iter().any(|name| name == "date") => Err(Refusal::Unsigned("Date".to_owned())),
        (None, Some(date)) => time(Instant::parse_date_header(date)),
        (None, None) => {
            Err(incomplete("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."))
        }
    }
}

/// `KEY/DAY/REGION/SERVICE/aws4_request`.
pub(super) fn scope(credential: &str) -> Result<Scope, Refusal> {
    let parts: Vec<&str> = credential.split('/').collect();
    let [access_key, day, region, service, terminator] = parts.as_slice() else {
        let message =
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/aws4_request.";
        return Err(incomplete(message));
    };
    if *terminator != TERMINATOR {
        return Err(incomplete("Credential should be scoped with a valid terminator: 'aws4_request'."));
    }
    let owned = |text: &str| text.to_owned();
    Ok(Scope { access_key: owned(access_key), day: owned(day), region: owned(region), service: owned(service) })
}

pub(super) fn signature(digits: &str) -> Result<Signature, Refusal> {
    // One of another form can't be the right one.
    Signature::parse(digits).ok_or(Refusal::Mismatch)
}

fn check_algorithm(algorithm: &str) -> Result<(), Refusal> {
    if algorithm == ALGORITHM {
        return Ok(());
    }
    Err(incomplete(&format!("Unsupported AWS 'algorithm'; allowed: {ALGORITHM}.")))
}

fn check_day(claim: &Claim) -> Result<(), Refusal> {
    let (scope, day) = (&claim.scope.day, claim.signed_at.day());
    if *scope == day {
        return Ok(());
    }
    Err(Refusal::WrongDay { scope: scope.clone(), day, signed_at: claim.signed_at.to_string() })
}

fn names(list: &str) -> Result<Vec<String>, Refusal> {
    let plain =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase());
    let names: Vec<String> = list.split(';').map(str::to_owned).collect();
    if names.iter().all(|name| plain(name)) {
        Ok(names)
    } else {
        Err(incomplete("SignedHeaders must be names in lower case, with semicolons between them."))
    }
}

fn time(instant: Option<Instant>) -> Result<Instant, Refusal> {
    instant.ok_or_else(|| incomplete("The date must be in ISO-8601 'basic format', such as 20261129T120000Z."))
}

fn incomplete(message: &str) -> Refusal {
    Refusal::Incomplete(message.to_owned())
}
