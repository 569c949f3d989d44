//! Who may use the admin API: callers that name this host by address, or by a name that was configured, and hold the
//! token.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use isotherm_config::HostName;

use crate::answer::Problem;
use crate::token::AdminToken;

/// The names under which the admin plane may be called, beside addresses and `localhost`.
pub(crate) type Hosts = Arc<[HostName]>;

/// Lets a request through to the API, or answers 401 or 421.
pub(crate) async fn admit(State((token, hosts)): State<(AdminToken, Hosts)>, request: Request, next: Next) -> Response {
    match check(request.headers(), &token, &hosts) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(headers: &HeaderMap, token: &AdminToken, hosts: &[HostName]) -> Result<(), Problem> {
    called_by_its_name(headers, hosts)?;
    let offered = headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    if offered.is_some_and(|offered| token.admits(offered)) { Ok(()) } else { Err(Problem::unauthenticated()) }
}

/// Whether the request names this host by address, as `localhost`, or by a name of its own.
pub(crate) fn called_by_its_name(headers: &HeaderMap, hosts: &[HostName]) -> Result<(), Problem> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
    if is_ours(host, hosts) { Ok(()) } else { Err(Problem::misdirected(host)) }
}

/// A page from elsewhere can make a browser send requests here under a name of its own (DNS rebinding), never under an
/// address or `localhost`.
fn is_ours(host: &str, hosts: &[HostName]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(address, _)| address),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let is_named = hosts.iter().any(|host| name.eq_ignore_ascii_case(host.as_str()));
    is_named || name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_name_the_admin_plane() {
        for host in ["127.0.0.1:8081", "localhost:8081", "LOCALHOST", "[::1]:8081", "10.1.2.3"] {
            assert!(is_ours(host, &[]), "{host}");
        }
        for host in ["evil.example:8081", "", "127.0.0.1.evil.example", "[::1", "localhost.evil.example"] {
            assert!(!is_ours(host, &[]), "{host}");
        }
    }

    #[test]
    fn a_configured_name_is_the_admin_planes_own() {
        let hosts = ["router.internal".parse().unwrap()];
        assert!(is_ours("Router.internal:8081", &hosts) && is_ours("router.internal", &hosts));
        assert!(!is_ours("router.internal.evil.example", &hosts) && !is_ours("internal", &hosts));
    }
}
