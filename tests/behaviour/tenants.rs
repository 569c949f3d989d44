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

/// The times that a spy's questions take: about documents that the victim asked about, and about ones that nobody did;
/// and how much of the former came from the cache.
async fn spied(top: &str) -> (Duration, Duration, Vec<u64>) {
    let tenants = TwoTenants::start(top, "2");
    let (mut cold, mut warm, mut known, mut unknown) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut cached = Vec::new();
    for number in 1..=3 {
        // What is asked twice by one tenant is warm in any case.
        cold.push(ask(&tenants.victim, number).await.0);
        let (took, own) = ask(&tenants.victim, number).await;
        assert!(own > 7_000, "{own} tokens from the cache");
        warm.push(took);
        let (took, from_cache) = ask(&tenants.spy, number).await;
        known.push(took);
        cached.push(from_cache);
        unknown.push(ask(&tenants.spy, 100 + number).await.0);
    }
    assert!(median(&warm) < median(&cold) / 2, "{warm:?} for what took {cold:?}");
    (median(&known), median(&unknown), cached)
}

/// Whatever else the machine does disturbs some: what counts is what is usual.
fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test]
async fn without_a_salt_the_time_to_answer_tells_what_another_tenant_asked() {
    let (known, unknown, cached) = spied("").await;
    assert!(cached.iter().all(|&tokens| tokens > 7_000), "{cached:?} tokens from the cache");
    assert!(known < unknown / 2, "{known:?} of {unknown:?}");
}

#[tokio::test]
async fn with_a_salt_it_tells_nothing() {
    let (known, unknown, cached) = spied("inject_cache_salt: true\n").await;
    assert_eq!(cached, [0; 3], "tokens from the cache");
    assert!(known > unknown / 2, "{known:?} of {unknown:?}");
}
