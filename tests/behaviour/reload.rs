//! The configuration file changes under a running router.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isotherm_tests::{Client, Engines, Metrics, Running, Stream, chat, document, eventually, run, streamed_chat};

/// The longest that a change of the file may stay unseen; it is looked at once a second.
const SEEN_WITHIN: Duration = Duration::from_secs(20);

#[tokio::test]
async fn streams_go_on_while_the_file_changes_again_and_again() {
    let engines = Engines::start(3, &["--speed", "10"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = write(folder.path(), &configuration(&engines, 2, 4_096));
    let router = serve(&file);
    let client = Client::new(router.url());
    let mut streams: Vec<Stream> = Vec::new();
    for number in 0..20 {
        let body = streamed_chat(&document(number, 300), "Tell all!", 500);
        streams.push(client.open("/v1/chat/completions", &body).await.expect("a stream"));
    }
    for change in 0..6 {
        fs::write(&file, configuration(&engines, 2 + change % 2, 1_000 + change as u32)).expect("written");
        router.hang_up();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    eventually("the third instance serves", SEEN_WITHIN, async || {
        let ready = Client::new(router.url()).post("/v1/chat/completions", &chat("Anything", "else?")).await;
        (ready.status == 200 && instances(&router).await == 3).then_some(())
    })
    .await;
    for stream in streams {
        assert!(stream.rest().await.expect("the whole stream").ends_with("data: [DONE]\n\n"));
    }
}

#[tokio::test]
async fn a_changed_file_is_seen_without_a_signal() {
    let engines = Engines::start(2, &["--speed", "100"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = write(folder.path(), &configuration(&engines, 1, 4_096));
    let router = serve(&file);
    // As Kubernetes changes a mounted file: another one takes its place.
    let next = folder.path().join("next.yaml");
    fs::write(&next, configuration(&engines, 2, 4_096)).expect("written");
    fs::rename(&next, &file).expect("renamed");
    eventually("the second instance is there", SEEN_WITHIN, async || (instances(&router).await == 2).then_some(()))
        .await;
}

#[tokio::test]
async fn a_bad_file_is_refused_with_its_place_and_the_old_one_stays() {
    let engines = Engines::start(2, &["--speed", "100"]);
    let folder = tempfile::tempdir().expect("a folder");
    let good = configuration(&engines, 2, 4_096);
    let file = write(folder.path(), &good);
    let router = serve(&file);
    let bad = good.replace("PREFIX_AWARE", "PREFIX_AWAKE");
    fs::write(&file, &bad).expect("written");
    router.hang_up();
    let place = format!("{}:{}", file.display(), place_of(&bad, "PREFIX_AWAKE"));
    eventually("the refusal names file, line and column", SEEN_WITHIN, async || {
        router.output().contains(&place).then_some(())
    })
    .await;
    assert_eq!(Metrics::read(router.admin()).await.sum("isotherm_config_reload_success", &[]), 0.0);
    let answer = Client::new(router.url()).post("/v1/chat/completions", &chat("Still", "there?")).await.ok();
    assert_eq!(answer.header("x-isotherm-reason"), "home");

    fs::write(&file, &good).expect("written");
    router.hang_up();
    eventually("the mended file is taken", SEEN_WITHIN, async || {
        let success = Metrics::read(router.admin()).await.sum("isotherm_config_reload_success", &[]);
        (success == 1.0).then_some(())
    })
    .await;
}

#[test]
fn config_check_names_the_place_and_what_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "endpoints:\n  - name: chat\n    variants:\n      - name: AllTraffic\n        routing: { strategie: RANDOM }\n        instances: []\n";
    let file = write(folder.path(), text);
    let checked = run(&["config", "check", &file.display().to_string()]);
    assert_eq!(checked.code, Some(2));
    let place = format!("{}:{}", file.display(), place_of(text, "strategie"));
    assert!(checked.stderr.contains(&place), "{}", checked.stderr);
    assert!(checked.stderr.contains("strategy"), "{}", checked.stderr);
}

fn configuration(engines: &Engines, instances: usize, prefix_length: u32) -> String {
    let mut text = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nexpose_decisions: true\nendpoints:\n  - name: chat\n    \
         variants:\n      - name: AllTraffic\n        routing: {{ strategy: PREFIX_AWARE, prefix_length: {prefix_length} }}\n        \
         instances:\n"
    );
    for (index, url) in engines.urls().iter().enumerate().take(instances) {
        text.push_str(&format!("          - {{ id: {}, url: \"{url}\" }}\n", Engines::id(index)));
    }
    text
}

fn write(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("isotherm.yaml");
    fs::write(&file, text).expect("written");
    file
}

fn serve(file: &Path) -> Running {
    Running::start(&["serve", "--config", &file.display().to_string()])
}

/// `LINE:COLUMN` of a word.
fn place_of(text: &str, word: &str) -> String {
    let (line, found) = text.lines().enumerate().find(|(_, line)| line.contains(word)).expect("the word");
    format!("{}:{}", line + 1, found.find(word).expect("the word") + 1)
}

/// How many instances the router has.
async fn instances(router: &Running) -> usize {
    let listed = run(&["instances", "list", "--json", "--admin", router.admin()]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).expect("JSON");
    listed["instances"].as_array().map_or(0, Vec::len)
}
