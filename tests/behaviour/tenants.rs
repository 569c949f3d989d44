//! Tenants behind one engine: what one can learn of another's prompts by the clock, and that a salt ends it.

use std::time::{Duration, Instant};

use isotherm_tests::{Client, Engines, Running, chat, document, run};

/// Two tenants behind one router and one engine, so that placement cannot hide what salts are to hide.
pub(super) struct TwoTenants {
    pub(super) victim: Client,
    pub(super) spy: Client,
    _router: Running,
    _engines: Engines,
    _folder: tempfile::TempDir,
}

impl TwoTenants {
    /// With this line at the top of the configuration, before an engine that is so many times faster than a real one.
    pub(super) fn start(top: &str, speed: &str) -> TwoTenants {
        let engines = Engines::start(1, &["--speed", speed]);
        let folder = tempfile::tempdir().expect("a folder");
        let ((victim, first), (spy, second)) = (key("victim"), key("spy"));
        std::fs::write(folder.path().join("keys"), format!("{first}\n{second}\n")).expect("written");
        let text = format!(
            "{top}auth: {{ keys_file: keys }}\nendpoints:\n- name: chat\n  variants:\n  \
             - {{ name: AllTraffic, instances: [{}] }}\n",
            engines.listed()
        );
        let file = folder.path().join("isotherm.yaml");
        std::fs::write(&file, &text).expect("written");
        let file = file.display().to_string();
        let router = Running::start(&["serve", "--port", "0", "--admin-port", "0", "--config", &file]);
        let client = |key: &str| Client::new(router.url()).with_header("x-api-key", key);
        TwoTenants { victim: client(&victim), spy: client(&spy), _router: router, _engines: engines, _folder: folder }
    }
}

/// A key of this tenant, and the line of it for the keys file.
pub(super) fn key(tenant: &str) -> (String, String) {
    let made = run(&["config", "key", tenant, "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made.stdout).expect("JSON");
    let text = |field: &str| made[field].as_str().expect("text").to_owned();
    (text("key"), format!("{} tenant={tenant}", text("line")))
}

/// How long a question about a document takes, and how many of its tokens came from the cache.
async fn ask(client: &Client, number: u64) -> (Duration, u64) {
    let mut body = chat(&document(number, 8_000), "Yes or no?");
    body["max_tokens"] = 1.into();
    let begun = Instant::now();
    let answer = client.post("/v1/chat/completions", &body).await.ok();
    (begun.elapsed(), answer.usage().1)
}

/// The times that a spy's question takes: about a document that the victim asked about, and about one that nobody did.
async fn spied(top: &str) -> (Duration, Duration, u64) {
    let tenants = TwoTenants::start(top, "2");
    // What is asked twice by one tenant is warm in any case.
    let (cold, _) = ask(&tenants.victim, 1).await;
    let (warm, own) = ask(&tenants.victim, 1).await;
    assert!(own > 7_000 && warm < cold / 2, "{warm:?} for what took {cold:?}");
    let (known, cached) = ask(&tenants.spy, 1).await;
    let (unknown, _) = ask(&tenants.spy, 2).await;
    (known, unknown, cached)
}

#[tokio::test]
async fn without_a_salt_the_time_to_answer_tells_what_another_tenant_asked() {
    let (known, unknown, cached) = spied("").await;
    assert!(cached > 7_000 && known < unknown / 2, "{known:?} of {unknown:?}, {cached} tokens from the cache");
}

#[tokio::test]
async fn with_a_salt_it_tells_nothing() {
    let (known, unknown, cached) = spied("inject_cache_salt: true\n").await;
    assert!(cached == 0 && known > unknown / 2, "{known:?} of {unknown:?}, {cached} tokens from the cache");
}
