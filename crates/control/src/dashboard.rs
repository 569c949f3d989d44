//! The dashboard: a page of the binary's own that shows what `/api/overview` tells, and asks for nothing from elsewhere.
//!
//! The files hold no secret, so they are served without the token; the page asks for it.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::admin::AdminState;
use crate::guard::{self, Hosts};

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Every file: its path, its type, its content.
const FILES: [(&str, &str, &str); 6] = [
    ("/", HTML, include_str!("dashboard/index.html")),
    ("/style.css", STYLE, include_str!("dashboard/style.css")),
    ("/app.js", SCRIPT, include_str!("dashboard/app.js")),
    ("/draw.js", SCRIPT, include_str!("dashboard/draw.js")),
    ("/words.js", SCRIPT, include_str!("dashboard/words.js")),
    ("/sentences.js", SCRIPT, include_str!("dashboard/sentences.js")),
];

/// Nothing but the page's own files runs, is shown, or is talked to; nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page and its files.
pub(crate) fn routes(state: &AdminState) -> Router<AdminState> {
    let file = |router: Router<AdminState>, (path, kind, content): (&str, &'static str, &'static str)| {
        router.route(path, get(move || async move { answer(kind, content) }))
    };
    FILES.into_iter().fold(Router::new(), file).layer(from_fn_with_state(state.hosts.clone(), by_its_name))
}

fn answer(kind: &'static str, content: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // Another version of the router has another page.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, content).into_response()
}

/// The page would ask whoever opens it for the token: under a name that could be anybody's it is not shown.
async fn by_its_name(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    match guard::called_by_its_name(request.headers(), &hosts) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_no_file_that_is_not_served_and_nothing_from_elsewhere() {
        for (path, _, content) in FILES {
            for found in content.split("\"./").skip(1).chain(content.split("src=\"").skip(1)) {
                let name = found.split('"').next().unwrap_or_default();
                assert!(FILES.iter().any(|(path, ..)| path.strip_prefix('/') == Some(name)), "{path} names {name}");
            }
            for (at, _) in content.match_indices("http") {
                let rest = &content[at..];
                let allowed = [
                    "http://www.w3.org/2000/svg\"",
                    "https?:",
                    "http://10.0.0.3:8000\"",
                    "http:// 或 ",
                    "https:// 开头",
                    "https：443",
                ];
                let is_ours = allowed.iter().any(|allowed| rest.starts_with(allowed));
                assert!(is_ours, "{path}: {}", rest.chars().take(40).collect::<String>());
            }
        }
    }

    #[test]
    fn every_language_says_the_same_things() {
        let (_, _, words) = FILES[4];
        let keys = |from: &str, to: &str| {
            let body = words.split_once(from).and_then(|(_, rest)| rest.split_once(to)).map_or("", |(body, _)| body);
            let starts = body.match_indices(": ").filter_map(|(at, _)| {
                let start = body[..at].rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')? + 1;
                // A key stands at the beginning of a line or behind the comma of the one before.
                let before = body[..start].trim_end();
                (start < at && (before.ends_with(',') || before.ends_with('{'))).then(|| body[start..at].to_owned())
            });
            starts.collect::<std::collections::BTreeSet<String>>()
        };
        let (english, chinese) = (keys("en: {", "  zh: {"), keys("zh: {", "};"));
        assert!(english.len() > 60, "{english:?}");
        assert_eq!(english, chinese);
    }

    #[test]
    fn every_alert_is_said_in_every_language() {
        let (_, _, sentences) = FILES[5];
        for rule in crate::alerts::NAMES {
            assert!(sentences.contains(&format!("\n    {rule}: (")), "{rule}");
        }
    }

    #[test]
    fn the_page_is_small() {
        let bytes: usize = FILES.iter().map(|(_, _, content)| content.len()).sum();
        assert!(bytes < 300_000, "{bytes}");
    }
}
