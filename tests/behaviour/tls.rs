//! TLS on both sides of the router: who is let in, who is believed, and certificates that change while streams go on.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isotherm_tests::{
    Certificates, Client, Engines, Running, Stopwatch, TlsFront, chat, document, eventually, run, streamed_chat,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The longest that a change of a file may stay unseen; they are looked at once a second.
const SEEN_WITHIN: Duration = Duration::from_secs(20);

/// A router from a file in a folder of its own.
struct Fixture {
    folder: TempDir,
    certificates: Certificates,
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let certificates = Certificates::in_folder(folder.path());
        certificates.issue("router", &["router.internal", "127.0.0.1"]);
        Fixture { folder, certificates }
    }

    fn configure(&self, top: &str, instances: &[String]) -> PathBuf {
        let list: String = instances.iter().map(|instance| format!("      - {{ {instance} }}\n")).collect();
        let endpoints = format!("endpoints:\n- name: chat\n  variants:\n  - name: AllTraffic\n    instances:\n{list}");
        let file = self.folder.path().join("isotherm.yaml");
        fs::write(&file, format!("{top}\n{endpoints}")).expect("written");
        file
    }

    fn serve(&self, top: &str, instances: &[String]) -> Running {
        serve(&self.configure(top, instances))
    }
}

fn serve(file: &Path) -> Running {
    let file = file.display().to_string();
    Running::start_with(&["serve", "--port", "0", "--admin-port", "0", "--config", &file], |command| {
        command.env("ISOTHERM_LOG", "info,isotherm_proxy=debug,isotherm_fleet=debug");
    })
}

fn urls(engines: &Engines) -> Vec<String> {
    engines.urls().iter().map(|url| format!("url: \"{url}\"")).collect()
}

const TLS: &str = "tls: { cert: router.pem, key: router.key }";

#[tokio::test]
async fn streams_go_on_while_the_certificate_changes_twenty_times() {
    let engines = Engines::start(2, &["--speed", "10"]);
    let fixture = Fixture::new();
    let router = fixture.serve(TLS, &urls(&engines));
    assert!(router.url().starts_with("https://"), "{}", router.url());
    let believing = fixture.certificates.client(None);
    let by_name = |name: &str| Client::within_tls(router.url(), believing.clone(), name);
    let mut streams = Vec::new();
    for number in 0..20 {
        let body = streamed_chat(&document(number, 300), "Tell all!", 1_000);
        streams.push(by_name("router.internal").open("/v1/chat/completions", &body).await.expect("a stream"));
    }
    for change in 0..20 {
        let name = format!("router-{change}.internal");
        fixture.certificates.issue("router", &[&name]);
        router.hang_up();
        eventually("new clients are shown the new certificate", SEEN_WITHIN, async || {
            by_name(&name).try_get("/health").await.is_ok().then_some(())
        })
        .await;
    }
    for stream in streams {
        assert!(stream.rest().await.expect("the whole stream").ends_with("data: [DONE]\n\n"));
    }
}

#[tokio::test]
async fn a_certificate_that_does_not_serve_is_refused_and_the_old_one_stays() {
    let engines = Engines::start(1, &["--speed", "100"]);
    let fixture = Fixture::new();
    let router = fixture.serve(TLS, &urls(&engines));
    let client = Client::within_tls(router.url(), fixture.certificates.client(None), "router.internal");
    fixture.certificates.issue("other", &["router.internal"]);
    fs::copy(fixture.certificates.path("other.key"), fixture.certificates.path("router.key")).expect("copied");
    // Without a signal: the files are watched.
    eventually("the refusal says what does not fit", SEEN_WITHIN, async || {
        router.output().contains("is not the key of the certificate in").then_some(())
    })
    .await;
    assert_eq!(client.post("/v1/chat/completions", &chat("Still", "there?")).await.status, 200);
    fs::copy(fixture.certificates.path("other.pem"), fixture.certificates.path("router.pem")).expect("copied");
    eventually("the mended pair is taken", SEEN_WITHIN, async || {
        router.output().contains("configuration reloaded").then_some(())
    })
    .await;
    assert_eq!(client.post("/v1/chat/completions", &chat("And", "now?")).await.status, 200);
}

#[tokio::test]
async fn clients_are_let_in_by_their_certificates_where_that_is_asked() {
    let engines = Engines::start(1, &["--speed", "100"]);
    let fixture = Fixture::new();
    fixture.certificates.issue("client", &["client.internal"]);
    let stranger = Certificates::in_folder(&fixture.folder.path().join("stranger"));
    stranger.issue("client", &["client.internal"]);
    fs::copy(fixture.certificates.path("ca.pem"), stranger.path("ca.pem")).expect("copied");
    let router = fixture.serve("tls: { cert: router.pem, key: router.key, client_ca: ca.pem }", &urls(&engines));
    let with = |tls| Client::within_tls(router.url(), tls, "router.internal");
    let known = with(fixture.certificates.client(Some("client")));
    assert_eq!(known.post("/v1/chat/completions", &chat("Hello", "!")).await.status, 200);
    assert!(with(fixture.certificates.client(None)).try_get("/health").await.is_err());
    assert!(with(stranger.client(Some("client"))).try_get("/health").await.is_err());
}

#[tokio::test]
async fn who_knocks_at_the_wrong_door_is_told_and_holds_nothing() {
    let engines = Engines::start(1, &["--speed", "100"]);
    let fixture = Fixture::new();
    let router = fixture.serve(&format!("{TLS}\ntimeouts: {{ client_header: 1s }}"), &urls(&engines));
    let address = router.url().trim_start_matches("https://").to_owned();
    // In the clear to TLS.
    let mut plain = TcpStream::connect(&address).await.expect("a connection");
    plain.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("written");
    let mut answer = String::new();
    plain.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("use https://"), "{answer}");
    // Nothing at all, and a handshake that does not go on.
    for beginning in [&b""[..], b"\x16\x03\x01\x02\x00\x01"] {
        let begun = Stopwatch::start();
        let mut slow = TcpStream::connect(&address).await.expect("a connection");
        slow.write_all(beginning).await.expect("written");
        let mut rest = Vec::new();
        let _ = slow.read_to_end(&mut rest).await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
    let lines = router.output();
    assert!(!lines.contains("ERROR") && !lines.contains("WARN"), "{lines}");
    // TLS to the clear.
    let router = fixture.serve("", &urls(&engines));
    let client = Client::within_tls(router.url(), fixture.certificates.client(None), "router.internal");
    assert!(client.try_get("/health").await.is_err());
    assert_eq!(Client::new(router.url()).get("/health").await.status, 200);
}

// The fronts go on while a router is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_are_reached_within_tls_and_prove_who_they_are() {
    let engines = Engines::start(2, &["--speed", "100"]);
    let fixture = Fixture::new();
    fixture.certificates.issue("engine", &["engine.internal"]);
    let server = fixture.certificates.server("engine", true);
    let mut fronts = Vec::new();
    for url in engines.urls() {
        fronts.push(TlsFront::before(&url, server.clone()).await);
    }
    let instances: Vec<String> =
        fronts.iter().map(|front| format!("url: \"https://127.0.0.1:{}\"", front.port())).collect();
    let shown = "instances_tls: { ca: ca.pem, cert: router.pem, key: router.key, server_name: engine.internal }";
    let router = fixture.serve(shown, &instances);
    let client = Client::new(router.url());
    // A large prompt and a long stream, both ways through the session's buffers.
    let mut large = streamed_chat(&document(1, 2_000), "All of it?", 300);
    large["metadata"] = serde_json::json!({ "padding": "x".repeat(4 << 20) });
    let stream = client.open("/v1/chat/completions", &large).await.expect("a stream");
    assert_eq!(stream.status, 200);
    assert!(stream.rest().await.expect("the whole stream").ends_with("data: [DONE]\n\n"));
    let before: usize = fronts.iter().map(TlsFront::connections).sum();
    for number in 0..40 {
        let answer = client.post("/v1/chat/completions", &chat(&document(number, 50), "Well?")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    // Probes have connections of their own; each thread keeps one to each instance.
    let made = fronts.iter().map(TlsFront::connections).sum::<usize>() - before;
    assert!(made < 20, "{made} connections for 40 requests");
    assert_eq!(client.get("/v1/models").await.json()["data"].as_array().map(Vec::len), Some(1));

    // Whoever is not who it should be takes no request, and the probe says why.
    let router = fixture.serve(&shown.replace("engine.internal", "other.internal"), &instances);
    eventually("the instances are down", SEEN_WITHIN, async || {
        (Client::new(router.url()).post("/v1/chat/completions", &chat("Any", "one?")).await.status == 503).then_some(())
    })
    .await;
    eventually("the log says why", SEEN_WITHIN, async || {
        router.output().contains("certificate not valid for name").then_some(())
    })
    .await;
}

// The fronts go on while a router is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_for_instances_changes_while_they_serve() {
    let engines = Engines::start(1, &["--speed", "100"]);
    let fixture = Fixture::new();
    fixture.certificates.issue("engine", &["127.0.0.1"]);
    let front = TlsFront::before(&engines.urls()[0], fixture.certificates.server("engine", true)).await;
    let instance = format!("url: \"https://127.0.0.1:{}\", id: one", front.port());
    let router = fixture.serve("instances_tls: { ca: ca.pem, cert: router.pem, key: router.key }", &[instance]);
    let client = Client::new(router.url());
    assert_eq!(client.post("/v1/chat/completions", &chat("Hello", "!")).await.status, 200);
    let listed = |router: &Running| run(&["instances", "list", "--json", "--admin", router.admin()]).stdout;
    let since = |text: &str| text.split("\"since\"").nth(1).map(|rest| rest[..30].to_owned());
    let before = since(&listed(&router));
    fixture.certificates.issue("router", &["router.internal"]);
    eventually("the change is seen", SEEN_WITHIN, async || {
        router.output().contains("configuration reloaded").then_some(())
    })
    .await;
    let connections = front.connections();
    assert_eq!(client.post("/v1/chat/completions", &chat("And", "now?")).await.status, 200);
    assert!(front.connections() > connections, "the old connection was used again");
    assert_eq!(since(&listed(&router)), before, "the instance began another life");
}

#[tokio::test]
async fn the_admin_plane_has_tls_of_its_own() {
    let engines = Engines::start(1, &["--speed", "100"]);
    let fixture = Fixture::new();
    let top = "admin: { tls: { cert: router.pem, key: router.key }, hosts: [router.internal] }";
    let router = fixture.serve(top, &urls(&engines));
    assert!(router.admin().starts_with("https://"), "{}", router.admin());
    let ca = fixture.certificates.path("ca.pem").display().to_string();
    let listed = run(&["instances", "list", "--json", "--admin", router.admin(), "--admin-ca", &ca]);
    assert!(listed.stdout.contains(&engines.urls()[0]), "{} {}", listed.stdout, listed.stderr);
    let unbelieved = run(&["instances", "list", "--admin", router.admin()]);
    assert!(unbelieved.stderr.contains("certificate"), "{}", unbelieved.stderr);
    let client = Client::within_tls(router.admin(), fixture.certificates.client(None), "router.internal");
    assert_eq!(client.clone().with_header("host", "router.internal").get("/").await.status, 200);
    assert_eq!(client.with_header("host", "evil.example").get("/").await.status, 421);
}

#[test]
fn keys_that_travel_in_the_clear_are_told_once() {
    let fixture = Fixture::new();
    let made = run(&["config", "key", "alice"]);
    fs::write(fixture.folder.path().join("keys"), made.stdout).expect("written");
    let public = "listen: 0.0.0.0:8080\nauth: { keys_file: keys }";
    let check = |top: &str| {
        let file = fixture.configure(top, &["url: \"http://127.0.0.1:1\"".to_owned()]).display().to_string();
        run(&["config", "check", &file]).stdout
    };
    let told = check(public);
    assert_eq!(told.matches("travel in the clear").count(), 1, "{told}");
    let told = check(&format!("{public}\n{TLS}"));
    assert!(!told.contains("warning") && told.contains("(1 keys from") && told.contains(", TLS)"), "{told}");
}
