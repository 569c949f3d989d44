//! The configuration file changes under a running router.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isotherm_tests::{
    Client, Engines, Metrics, Running, Stopwatch, Stream, chat, document, eventually, run, streamed_chat,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::alarms::admin;

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

/// An engine that holds every stream until it is told to end it.
async fn holding(end: tokio::sync::watch::Receiver<bool>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut end = end.clone();
            tokio::spawn(async move {
                let mut read = vec![0; 16 * 1024];
                let length = stream.read(&mut read).await.unwrap_or(0);
                if !read[..length].starts_with(b"POST") {
                    let healthy = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                    return stream.write_all(healthy).await;
                }
                stream
                    .write_all(
                        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {}\n\n",
                    )
                    .await?;
                let _ = end.wait_for(|end| *end).await;
                stream.write_all(b"data: [DONE]\n\n").await
            });
        }
    });
    url
}

#[tokio::test]
async fn five_hundred_streams_outlast_a_hundred_reloads() {
    let (finish, end) = tokio::sync::watch::channel(false);
    let urls = [holding(end.clone()).await, holding(end.clone()).await, holding(end).await];
    let configuration = |change: usize| {
        let instances: String = urls[..2 + change % 2].iter().map(|url| format!("{{ url: \"{url}\" }}, ")).collect();
        let routing = format!("routing: {{ prefix_length: {}, concurrency_threshold: 1000 }}", 1_000 + change);
        format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nendpoints:\n  - name: chat\n    variants: \
             [{{ name: AllTraffic, {routing}, instances: [{instances}] }}]\n"
        )
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = write(folder.path(), &configuration(1));
    let router = serve(&file);
    let client = Client::new(router.url());
    let mut streams = Vec::new();
    for number in 0..500 {
        let body = streamed_chat(&document(number, 50), "Tell all!", 500);
        streams.push(client.open("/v1/chat/completions", &body).await.expect("a stream"));
    }
    for change in 0..100 {
        fs::write(&file, configuration(change)).expect("written");
        router.hang_up();
        let taken = || router.output().matches("configuration reloaded").count();
        eventually("it is in force", SEEN_WITHIN, async || (taken() > change).then_some(())).await;
    }
    finish.send_replace(true);
    for stream in streams {
        let text = stream.rest().await.expect("the whole stream");
        assert!(text.ends_with("data: [DONE]\n\n") && !text.contains("error"), "{text}");
    }
}

#[tokio::test]
async fn a_folder_that_kubernetes_swaps_by_a_link_is_seen_within_two_seconds() {
    let engines = Engines::start(2, &["--speed", "100"]);
    let folder = tempfile::tempdir().expect("a folder");
    let version = |name: &str, instances: usize| {
        let inner = folder.path().join(name);
        fs::create_dir(&inner).expect("a folder");
        write(&inner, &configuration(&engines, instances, 4_096));
    };
    let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, folder.path().join(at)).expect("a link");
    version("..2026_11_29", 1);
    link("..2026_11_29", "..data");
    link("..data/isotherm.yaml", "isotherm.yaml");
    let router = serve(&folder.path().join("isotherm.yaml"));
    version("..2026_11_30", 2);
    link("..2026_11_30", "..data_tmp");
    fs::rename(folder.path().join("..data_tmp"), folder.path().join("..data")).expect("renamed");
    let (changed, admin) = (Stopwatch::start(), admin(&router));
    eventually("the second instance is there", SEEN_WITHIN, async || {
        let listed = admin.get("/api/instances").await.ok().json();
        (listed["instances"].as_array().map(Vec::len) == Some(2)).then_some(())
    })
    .await;
    assert!(changed.elapsed() < Duration::from_secs(2), "{:?}", changed.elapsed());
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
