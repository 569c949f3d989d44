//! Why requests hit or missed: told of each, to operators and to clients who ask, within one tenant; and what other
//! strategies would have hit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isotherm_tests::{Client, Engines, Running, chat, document, eventually, run};
use serde_json::{Value, json};

use crate::tenants::key;

const TOKEN: &str = "why-it-missed";

/// A router with diagnostics on, its files, and the keys of two tenants.
struct Router {
    folder: tempfile::TempDir,
    running: Running,
    keys: [String; 2],
}

impl Router {
    fn before(engines: &Engines, routing: &str) -> Router {
        let folder = tempfile::tempdir().expect("a folder");
        let [(one, first), (other, second)] = ["acme", "zenith"].map(key);
        let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).expect("written");
        write("keys", format!("{first}\n{second}\n"));
        write("token", TOKEN.to_owned());
        let instances: Vec<String> = engines.urls().iter().map(|url| format!("{{ url: \"{url}\" }}")).collect();
        write(
            "isotherm.yaml",
            format!(
                "admin: {{ token_file: token }}\nauth: {{ keys_file: keys }}\nhash_seed: 20261130\n\
                 access_log: ./access.log\naccess_log_prompts: true\n\
                 diagnostics: {{ tell_clients: true, instance_hour_price: 100 }}\nendpoints:\n- name: chat\n  variants:\n  \
                 - {{ name: AllTraffic, routing: {{ {routing} }}, instances: [{}] }}\n",
                instances.join(", ")
            ),
        );
        let file = folder.path().join("isotherm.yaml").display().to_string();
        let running = Running::start(&["serve", "--port", "0", "--admin-port", "0", "--config", &file]);
        Router { folder, running, keys: [one, other] }
    }

    fn client(&self, tenant: usize) -> Client {
        Client::new(self.running.url()).with_header("x-api-key", &self.keys[tenant])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn told(&self, path: &str) -> Value {
        let client = Client::new(self.running.admin()).with_header("authorization", &format!("Bearer {TOKEN}"));
        client.get(path).await.ok().json()
    }

    /// What `isotherm explain --request` prints of a request.
    fn explained(&self, id: &str) -> String {
        let token = self.path("token");
        let ended = run(&["explain", "--request", id, "--admin", self.running.admin(), "--token-file", text(&token)]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Asks under an id; the response's id, and what the client was told about its cache.
async fn ask(client: &Client, id: &str, body: &Value) -> (String, String) {
    let answer = client.clone().with_header("x-request-id", id).post("/v1/chat/completions", body).await.ok();
    let response = answer.json()["id"].as_str().expect("an id").to_owned();
    (response, answer.header("x-isotherm-cache-diagnostics").to_owned())
}

#[tokio::test]
async fn each_request_tells_why_it_missed_and_to_its_own_tenant_only() {
    let engines = Engines::start(2, &["--speed", "50"]);
    let router = Router::before(&engines, "strategy: PREFIX_AWARE, prefix_length: 1024");
    let (acme, zenith) = (router.client(0), router.client(1));
    let system = document(1, 2_000);
    let (first, _) = ask(&acme, "first", &chat(&system, "One?")).await;
    ask(&acme, "again", &chat(&system, "Two?")).await;
    let changed = format!("{}, revised, {}", &system[..2_000], &system[2_000..]);
    let mut body = chat(&changed, "Three?");
    body["prompt_cache_options"] = json!({ "comparison_response_id": first });
    let (_, told) = ask(&acme, "changed", &body).await;
    assert_eq!(told, r#"{"type":"cache_miss","reason":"input_changed"}"#);
    let mut tools = chat(&system, "Four?");
    tools["tools"] =
        json!([{ "type": "function", "function": { "name": "weather", "description": document(9, 200) } }]);
    let told = ask(&acme.clone().with_header("x-isotherm-compare-with", &first), "tools", &tools).await.1;
    assert_eq!(told, r#"{"type":"cache_miss","reason":"tools_changed"}"#);
    let told =
        ask(&acme.clone().with_header("x-isotherm-compare-with", &first), "equal", &chat(&system, "One?")).await.1;
    assert_eq!(told, r#"{"type":"cache_hit"}"#);
    // Another tenant asks about the same prompt, by the id of the response: it is told what it would be of any made-up id.
    let spy = zenith.clone().with_header("x-isotherm-compare-with", &first);
    let (_, spied) = ask(&spy, "spy", &chat(&system, "One?")).await;
    let made_up = zenith.clone().with_header("x-isotherm-compare-with", "chatcmpl-made-up");
    let (_, unknown) = ask(&made_up, "made-up", &chat(&document(7, 2_000), "One?")).await;
    assert_eq!(
        (spied.as_str(), spied == unknown),
        (r#"{"type":"cache_miss","reason":"comparison_response_not_found"}"#, true)
    );
    assert_eq!(ask(&acme, "unasked", &chat(&system, "Five?")).await.1, "", "nobody asked");

    for (id, verdict) in [
        ("first", "miss: no earlier request of its tenant that is kept begins like it"),
        ("again", "hit: all that could be cached was"),
        ("changed", "miss: messages[0] (system) differs from the nearest earlier request"),
        ("tools", "miss: tools differs from the nearest earlier request"),
    ] {
        let explained = router.explained(id);
        assert!(explained.contains(verdict), "{id}:\n{explained}");
    }
    assert!(router.explained(&first).contains("request     first"), "found by its response's id, too");
    let spied = router.told("/api/requests/spy").await;
    assert_eq!((&spied["nearest"], &spied["compared_with"]), (&Value::Null, &json!(0)), "{spied}");
    let ended = run(&[
        "explain",
        "--request",
        "nobody",
        "--admin",
        router.running.admin(),
        "--token-file",
        text(&router.path("token")),
    ]);
    assert!(ended.code == Some(2) && ended.stderr.contains("no request \"nobody\" is kept"), "{}", ended.stderr);
    let listed = router.told("/api/requests?limit=100&verdict=miss").await;
    let listed_misses = listed["requests"].as_array().expect("a list");
    assert!(listed_misses.iter().all(|one| one["verdict"] == "miss") && listed["missed"] == 0, "{listed}");
    let ids: Vec<&str> = listed_misses.iter().filter_map(|one| one["request_id"].as_str()).collect();
    // Whether the spy found the other tenant's prompt in an engine's cache depends on where it went.
    let ids: Vec<&str> = ids.into_iter().filter(|id| *id != "spy").collect();
    assert_eq!(ids, ["made-up", "tools", "changed", "first"]);
}

#[tokio::test]
async fn anthropics_clients_are_told_in_their_form() {
    let engines = Engines::start(1, &["--speed", "50"]);
    let router = Router::before(&engines, "strategy: ADAPTIVE");
    let client = router.client(0);
    let body = |system: &str, previous: Option<&str>| {
        let mut body = json!({ "model": "llama-3.1-70b-instruct", "max_tokens": 8, "system": system,
            "messages": [{ "role": "user", "content": "Yes?" }] });
        if let Some(previous) = previous {
            body["diagnostics"] = json!({ "previous_message_id": previous });
        }
        body
    };
    let (one, other) = (document(1, 500), document(2, 500));
    let answer = client.post("/v1/messages", &body(&one, None)).await.ok();
    let id = answer.json()["id"].as_str().expect("an id").to_owned();
    let told = async |system: &str, id: &str| {
        let answer = client.post("/v1/messages", &body(system, Some(id))).await.ok();
        let told: Value = serde_json::from_str(answer.header("x-isotherm-cache-diagnostics")).expect("JSON");
        told["cache_miss_reason"].clone()
    };
    assert_eq!(told(&one, &id).await, Value::Null);
    let changed = told(&other, &id).await;
    assert_eq!(changed["type"], "system_changed");
    assert!((400..=900).contains(&changed["cache_missed_input_tokens"].as_u64().expect("tokens")), "{changed}");
    assert_eq!(told(&one, "msg_made_up").await["type"], "previous_message_not_found");
}

#[tokio::test]
async fn a_routers_own_log_and_its_last_requests_are_analysed_from_hashes() {
    let engines = Engines::start(2, &["--speed", "50"]);
    let router = Router::before(&engines, "strategy: ADAPTIVE");
    let client = router.client(0);
    let (mut prompt, mut cached) = (0, 0);
    for number in 0..40 {
        let body = chat(&document(number % 8, 1_500), &format!("confidential-{number}?"));
        let usage = client.post("/v1/chat/completions", &body).await.ok().usage();
        (prompt, cached) = (prompt + usage.0, cached + usage.1);
    }
    let reported = cached as f64 / prompt as f64;
    let (log, token) = (router.path("access.log"), router.path("token"));
    eventually("forty lines", Duration::from_secs(10), async || {
        let written = std::fs::read_to_string(&log).unwrap_or_default();
        (written.lines().count() >= 40).then_some(())
    })
    .await;
    let of_file = router.path("of-file.json");
    let of_router = router.path("of-router.json");
    for arguments in [
        vec!["analyze", text(&log), "--simulate", "0", "--json", text(&of_file)],
        vec![
            "analyze",
            "--router",
            router.running.admin(),
            "--token-file",
            text(&token),
            "--json",
            text(&of_router),
            "--instances",
            "2",
            "--seeds",
            "1",
        ],
    ] {
        let ended = run(&arguments);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains("BELIEVED AGAINST REPORTED"), "{}", ended.stdout);
    }
    let read = |path: &Path| -> Value {
        serde_json::from_str(&std::fs::read_to_string(path).expect("a report")).expect("JSON")
    };
    let (of_file, of_router, live) = (read(&of_file), read(&of_router), router.told("/api/analysis").await);
    for told in [&of_file, &of_router, &live] {
        let findings = &told["findings"];
        assert_eq!(findings["requests"], 40);
        let shared = findings["sharing"]["infinite_hit_rate"]["value"].as_f64().expect("a rate");
        assert!((shared - reported).abs() < 0.03, "{shared} of the tokens came before, {reported} were cached");
        let off = findings["calibration"]["mean_error"].as_f64().expect("an error");
        assert!(off < 0.05, "beliefs are off by {off}");
    }
    for told in [&of_router, &live] {
        let note = told["findings"]["notes"][0].as_str().expect("what cannot be told");
        assert!(note.contains("hashes of its last requests only"), "{note}");
    }
    assert!(of_router["recommendation"]["predicted"]["ttft_p50_ms"].as_f64().is_some());
    let log = std::fs::read_to_string(&log).expect("the log");
    assert!(!log.contains("confidential") && log.lines().all(|line| line.len() < 8_000));
}

/// What strategies would have hit, after questions about eighty documents by turns.
async fn shadows(routing: &str) -> Value {
    let engines = Engines::start(4, &["--speed", "100"]);
    let router = Router::before(&engines, routing);
    let client = router.client(0);
    for number in 0..320 {
        let body = chat(&document(number % 80, 1_500), &format!("Question {number}?"));
        let _ = client.post("/v1/chat/completions", &body).await.ok();
    }
    eventually("all were looked at", Duration::from_secs(20), async || {
        let told = router.told("/api/overview?points=0&requests=0").await;
        let shadow = told["variants"][0]["shadow"].clone();
        (shadow["requests"].as_u64()? >= 310 && shadow["reckoned_hit_rate"].is_number()).then_some(shadow)
    })
    .await
}

fn rates(shadow: &Value) -> BTreeMap<String, f64> {
    let strategies = shadow["strategies"].as_array().expect("strategies");
    let name = |one: &Value| format!("{}{}", one["strategy"].as_str().unwrap_or_default(), one["prefix_length"]);
    strategies.iter().map(|one| (name(one), one["hit_rate"].as_f64().expect("a rate"))).collect()
}

#[tokio::test]
async fn shadow_strategies_hit_what_the_real_one_does_and_name_a_better_one() {
    let random = shadows("strategy: RANDOM").await;
    let prefix = shadows("strategy: PREFIX_AWARE").await;
    for (shadow, in_force) in [(&random, "RANDOMnull"), (&prefix, "PREFIX_AWARE4096")] {
        let number = |key: &str| shadow[key].as_f64().expect("a number");
        let (reported, reckoned) = (number("reported_hit_rate"), number("reckoned_hit_rate"));
        assert!((reported - reckoned).abs() < 0.02, "reckoned {reckoned}, reported {reported}");
        let own = rates(shadow)[in_force];
        assert!((own - reported).abs() < 0.06, "{in_force} reckoned {own}, really {reported}");
    }
    // What the shadow told of PREFIX_AWARE while RANDOM was in force is what PREFIX_AWARE then had.
    let predicted = rates(&random)["PREFIX_AWARE4096"];
    let real = prefix["reported_hit_rate"].as_f64().expect("a rate");
    let by_chance = random["reported_hit_rate"].as_f64().expect("a rate");
    assert!(
        predicted > by_chance + 0.1 && real > by_chance + 0.1,
        "{by_chance} by chance, {predicted} predicted, {real} had"
    );
    // Of two runs, on a busy machine, one may have lost an instance for a while.
    assert!((predicted - real).abs() < 0.15, "{predicted} predicted, {real} had");
    assert!(random["better"]["hit_rate_gain"].as_f64().expect("a better one") > 0.1, "{random}");
    assert_eq!(prefix["better"], Value::Null);
    let saved = &prefix["saved"];
    assert!(saved["tokens_per_hour"].as_f64() > Some(0.0), "{saved}");
}
