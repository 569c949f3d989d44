//! The admin plane against a browser that a page from elsewhere commands: no name but its own, no token, no way in.

use isotherm_tests::{Client, run};

use crate::up;

#[tokio::test]
async fn pages_from_elsewhere_get_nothing_of_the_admin_plane() {
    let router = up(&["--engines", "1", "--speed", "100"]);
    assert!(router.admin().starts_with("http://127.0.0.1:"), "{}", router.admin());
    let client = Client::new(router.admin());
    // Its own page runs, shows and asks for nothing from elsewhere, and nobody frames it.
    for path in ["/", "/app.js", "/style.css"] {
        let answer = client.get(path).await.ok();
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
    // A name that somebody else made point here.
    let rebound = client.clone().with_header("host", "evil.example:8081");
    for path in ["/", "/api/instances", "/api/overview"] {
        assert_eq!(rebound.get(path).await.status, 421, "{path}");
    }
    // Another origin may neither read nor write.
    let foreign = client.clone().with_header("origin", "https://evil.example");
    for path in ["/", "/api/instances", "/metrics"] {
        let answer = foreign.get(path).await;
        let grants = answer.headers.keys().filter(|name| name.as_str().starts_with("access-control-"));
        assert_eq!(grants.count(), 0, "{path}");
    }
    // Whatever changes something wants the token.
    let body = serde_json::json!({ "url": "http://127.0.0.1:1" });
    for client in [&client, &foreign, &client.clone().with_header("authorization", "Bearer wrong")] {
        assert_eq!(client.post("/api/instances", &body).await.status, 401);
        assert_eq!(client.post("/api/config/reload", &body).await.status, 401);
        assert_eq!(client.delete("/api/instances/x").await.status, 401);
    }
    let listed = run(&["instances", "list", "--admin", router.admin()]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
}
