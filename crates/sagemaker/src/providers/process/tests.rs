//! Processes with small shell and Python programs in the place of engines.

use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;

use super::left_behind::Announced;
use super::*;
use crate::providers::{CallError, Reached, call};

/// Answers every GET with 200 on the port in `$1`, until it is told to end.
const ENGINE: &str = r#"
import http.server, json, os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/crash": os._exit(7)
        if self.path == "/environment":
            body = os.environ.get("WHO", "").encode()
        elif self.path == "/v1/models":
            body = json.dumps({"data": [{"id": "llama", "root": "meta/llama"}]}).encode()
        else:
            body = b""
        self.send_response(200); self.send_header("content-length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"#;

fn settings(command: &[&str]) -> isotherm_config::ProcessProvider {
    isotherm_config::ProcessProvider {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        environment: [("WHO".to_owned(), "{instance} of {endpoint}".to_owned())].into(),
        working_directory: None,
        health_path: None,
        start_timeout: Duration::from_secs(20),
        stop_timeout: Duration::from_secs(10),
    }
}

fn engine(folder: &TempDir) -> ProcessProvider {
    let command = ["python3", "-c", ENGINE, "{port}"];
    ProcessProvider::pausing(settings(&command), folder.path(), Duration::from_millis(10))
}

fn order(key: &str) -> InstanceOrder {
    InstanceOrder { key: key.to_owned(), endpoint: "ep".into(), instance: "v-0".into(), ..InstanceOrder::default() }
}

async fn decided(standing: &mut watch::Receiver<Standing>) -> Standing {
    let not_starting = standing.wait_for(|standing| *standing != Standing::Starting);
    timeout(Duration::from_secs(20), not_starting).await.unwrap().unwrap().clone()
}

async fn running(standing: &mut watch::Receiver<Standing>) -> Reached {
    match decided(standing).await {
        Standing::Running(reached) => reached,
        other => panic!("{other:?}"),
    }
}

async fn get(reached: &Reached, path: &str) -> Result<String, CallError> {
    let (_, body) = call(reached, http::Method::GET, path, bytes::Bytes::new(), Duration::from_secs(5)).await?;
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_program_starts_answers_and_is_started_again_when_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let provider = engine(&folder);
    let mut standing = provider.start(order("1.ep.v-0"));
    let first = running(&mut standing).await;
    assert_eq!(get(&first, "/environment").await.unwrap(), "v-0 of ep");

    let _ = get(&first, "/crash").await;
    standing.wait_for(|standing| *standing == Standing::Starting).await.unwrap();
    let second = running(&mut standing).await;
    assert_eq!(get(&second, "/environment").await.unwrap(), "v-0 of ep");

    provider.stop("1.ep.v-0".to_owned()).await;
    assert!(get(&second, "/").await.is_err(), "nothing listens any more");
    assert!(LeftBehind::all(&folder.path().join("processes")).is_empty());
}

#[tokio::test]
async fn a_program_that_serves_another_model_than_its_container_names_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let provider = engine(&folder);
    let told = async |key: &str, model: Option<&str>| {
        let environment = model.map(|model| ("HF_MODEL_ID".to_owned(), model.to_owned())).into_iter().collect();
        let order = InstanceOrder { environment, ..order(key) };
        let reached = running(&mut provider.start(order.clone())).await;
        let told = served::complaint(&order, &reached).await;
        provider.stop(key.to_owned()).await;
        told
    };
    let complaint = told("a", Some("qwen/qwen")).await.unwrap();
    assert!(complaint.starts_with("it serves llama, and HF_MODEL_ID of its container's environment names qwen/qwen: "));
    assert_eq!(told("b", Some("meta/llama")).await, None);
    assert_eq!(told("c", None).await, None, "nothing was asked for");
}

#[tokio::test]
async fn a_program_that_fails_at_its_start_fails_with_what_it_said() {
    let folder = tempfile::tempdir().unwrap();
    let command = ["sh", "-c", "echo no such GPU >&2; exit 3", "{port}"];
    let provider = ProcessProvider::new(settings(&command), folder.path());
    let Standing::Failed(reason) = decided(&mut provider.start(order("k"))).await else { panic!() };
    assert!(reason.contains("sh for v-0: it ended before it was ready, with status 3."), "{reason}");
    assert!(reason.contains("logs/k.log") && reason.ends_with("Its last output: no such GPU"), "{reason}");

    let provider = ProcessProvider::new(settings(&["/no/such/program", "{port}"]), folder.path());
    let Standing::Failed(reason) = decided(&mut provider.start(order("l"))).await else { panic!() };
    assert!(reason.starts_with("/no/such/program for v-0: it could not be started: there is no such"), "{reason}");
}

#[tokio::test]
async fn what_can_not_be_started_or_is_never_ready_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let reason = async |settings: isotherm_config::ProcessProvider, key: &str| {
        let provider = ProcessProvider::new(settings, folder.path());
        match decided(&mut provider.start(order(key))).await {
            Standing::Failed(reason) => reason,
            other => panic!("{other:?}"),
        }
    };
    let nowhere = folder.path().join("nowhere");
    let elsewhere =
        isotherm_config::ProcessProvider { working_directory: Some(nowhere), ..settings(&["sh", "{port}"]) };
    let expected = "sh for v-0: it could not be started: its working_directory is not there: make it, or correct it in \
                    aws.providers.";
    assert_eq!(reason(elsewhere, "a").await, expected);
    let expected = "/dev/null for v-0: it could not be started: the router's user may not execute it: correct its mode, \
                    or the command in aws.providers.";
    assert_eq!(reason(settings(&["/dev/null", "{port}"]), "b").await, expected);

    let silent = isotherm_config::ProcessProvider {
        start_timeout: Duration::from_secs(1),
        ..settings(&["sh", "-c", "exec sleep 60", "{port}"])
    };
    let reason = reason(silent, "c").await;
    assert!(reason.starts_with("sh for v-0: it did not become ready at http://127.0.0.1:"), "{reason}");
    assert!(reason.contains("within 1 s (no connection: ") && reason.contains("raise start_timeout in"), "{reason}");
    assert!(reason.contains(" It said nothing; its log would be "), "{reason}");

    std::fs::write(folder.path().join("logs-are-no-folder"), "").unwrap();
    let provider = ProcessProvider::new(settings(&["sh", "{port}"]), &folder.path().join("logs-are-no-folder"));
    let Standing::Failed(reason) = decided(&mut provider.start(order("d"))).await else { panic!() };
    assert!(reason.starts_with("sh for v-0: it could not be started: its log ") && reason.contains("can't be written"));
}

#[tokio::test]
async fn children_go_with_their_parent_even_when_they_do_not_listen() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("child");
    // The child ignores SIGTERM; the parent does not.
    let script = format!(
        "trap '' TERM; sh -c 'echo $$ > {}; while :; do sleep 1; done' & trap - TERM; exec python3 -c '{ENGINE}' {{port}}",
        note.display()
    );
    let settings = isotherm_config::ProcessProvider {
        stop_timeout: Duration::from_millis(300),
        ..settings(&["sh", "-c", &script])
    };
    let provider = ProcessProvider::new(settings, folder.path());
    running(&mut provider.start(order("k"))).await;
    let child: i32 = std::fs::read_to_string(&note).unwrap().trim().parse().unwrap();
    provider.shutdown().await;
    let is_there = || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    timeout(Duration::from_secs(5), async {
        while is_there() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
}

/// What an earlier life of the process left behind when it was killed: a program in a group of its own, and the note,
/// to its end or as it was before the program was started.
async fn killed_router(folder: &TempDir, key: &str, words: &[String], noted: bool) -> (tokio::process::Child, u16) {
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let words: Vec<_> = words.iter().map(|word| word.replace("{port}", &port.to_string())).collect();
    let mut command = tokio::process::Command::new(&words[0]);
    let announced = Announced::new(&folder.path().join("processes"), key, port, &words);
    let (variable, mark) = announced.environment();
    let child = command.args(&words[1..]).env(variable, mark).process_group(0).kill_on_drop(true).spawn().unwrap();
    if noted {
        announced.started(child.id().unwrap()).unwrap();
    }
    (child, port)
}

#[tokio::test]
#[cfg_attr(not(target_os = "linux"), ignore = "without /proc no process is found again")]
async fn after_a_crash_engines_are_found_again_and_what_nobody_wants_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let words: Vec<_> = ["python3", "-c", ENGINE, "{port}"].iter().map(|word| (*word).to_owned()).collect();
    // Whether it was killed long after it had started them, or before it could note who they are.
    for noted in [true, false] {
        let (mut wanted, port) = killed_router(&folder, "wanted", &words, noted).await;
        let (mut unwanted, _) = killed_router(&folder, "unwanted", &words, noted).await;

        let provider = engine(&folder);
        let unwanted_ends = unwanted.wait();
        let (_, ended) = tokio::join!(
            provider.retain(&HashSet::from(["wanted".to_owned()])),
            timeout(Duration::from_secs(9), unwanted_ends)
        );
        ended.unwrap().unwrap();
        let mut standing = provider.start(order("wanted"));
        assert_eq!(running(&mut standing).await.url.port(), port, "the same engine, not another one");
        assert!(wanted.try_wait().unwrap().is_none());
        let stopped = tokio::join!(provider.stop("wanted".to_owned()), timeout(Duration::from_secs(9), wanted.wait()));
        stopped.1.unwrap().unwrap();
    }
}
