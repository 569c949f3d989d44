//! Who may use the admin API: callers that name this host by address and hold the token.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::answer::Problem;
use crate::token::AdminToken;

/// Lets a request through to the API, or answers 401 or 421.
pub(crate) async fn admit(State(token): State<AdminToken>, request: Request, next: Next) -> Response {
    match check(request.headers(), &token) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(headers: &HeaderMap, token: &AdminToken) -> Result<(), Problem> {
    called_by_address(headers)?;
    let offered = headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    if offered.is_some_and(|offered| token.admits(offered)) { Ok(()) } else { Err(Problem::unauthenticated()) }
}

/// Whether the request names this host by address, or as `localhost`.
pub(crate) fn called_by_address(headers: &HeaderMap) -> Result<(), Problem> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
    if names_by_address(host) { Ok(()) } else { Err(Problem::misdirected(host)) }
}

/// A page from elsewhere can make a browser send requests here under a name of its own (DNS rebinding), never under an
/// address or `localhost`.
fn names_by_address(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(address, _)| address),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_name_the_admin_plane() {
        for host in ["127.0.0.1:8081", "localhost:8081", "LOCALHOST", "[::1]:8081", "10.1.2.3"] {
            assert!(names_by_address(host), "{host}");
        }
        for host in ["evil.example:8081", "", "127.0.0.1.evil.example", "[::1", "localhost.evil.example"] {
            assert!(!names_by_address(host), "{host}");
        }
    }
}
