//! Tests of the access log through its public handle.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::SystemTime;

use isotherm_core::Decision;

use super::*;
use crate::Outcome;
use crate::sample::spilled;

const PATIENCE: Duration = Duration::from_secs(30);

/// An entry that knows nothing beyond what every request has.
fn refused() -> AccessLogEntry {
    AccessLogEntry {
        time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_955_696_789),
        request_id: "req-1".into(),
        client: None,
        principal: None,
        method: "POST".into(),
        path: "/nowhere?api_key=secret".into(),
        api: None,
        endpoint: None,
        variant: None,
        model: None,
        status: 404,
        outcome: Outcome::Refused,
        decision: None,
        retries: 0,
        queued: None,
        time_to_first_token: None,
        duration: Duration::from_nanos(1_234_567),
        prompt_tokens: None,
        cached_tokens: None,
        output_tokens: None,
        bytes_in: 0,
        bytes_out: 98,
        prompt: None,
    }
}

/// An entry that knows everything.
fn answered(decision: Decision) -> AccessLogEntry {
    AccessLogEntry {
        client: Some(SocketAddr::from(([10, 0, 0, 9], 4711))),
        principal: Some("alice".into()),
        path: "/v1/chat/completions".into(),
        api: Some("chat_completions"),
        endpoint: Some("chat".into()),
        variant: Some("AllTraffic".into()),
        model: Some("llama \"70b\"\n".into()),
        status: 200,
        outcome: Outcome::Ok,
        decision: Some(decision),
        retries: 1,
        queued: Some(Duration::from_millis(20)),
        time_to_first_token: Some(Duration::from_micros(51_250)),
        duration: Duration::from_millis(900),
        prompt_tokens: Some(8_040),
        cached_tokens: Some(8_000),
        output_tokens: Some(17),
        bytes_in: 33_000,
        bytes_out: 4_096,
        ..refused()
    }
}

fn logged(metrics: &Metrics, name: &str) -> u64 {
    let text = metrics.expose(None).body;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the metric");
    line.trim().parse().expect("a number")
}

#[test]
fn a_line_is_json_with_the_fields_in_their_order() {
    let mut lines = Vec::new();
    refused().write_line(&mut lines);
    let expecting = Decision { expected_cached_tokens: Some(7_990), ..spilled() };
    answered(expecting).write_line(&mut lines);
    let lines = String::from_utf8(lines).unwrap();
    let expected = [
        r#"{"time":"2026-11-29T12:34:56.789Z","request_id":"req-1","method":"POST","path":"/nowhere","status":404,"#,
        r#""outcome":"refused","retries":0,"duration_ms":1.234,"bytes_in":0,"bytes_out":98}"#,
        "\n",
        r#"{"time":"2026-11-29T12:34:56.789Z","request_id":"req-1","client":"10.0.0.9:4711","principal":"alice","#,
        r#""method":"POST","path":"/v1/chat/completions","api":"chat_completions","endpoint":"chat","#,
        r#""variant":"AllTraffic","model":"llama \"70b\"\n","status":200,"outcome":"ok","strategy":"PREFIX_AWARE","#,
        r#""arm":"strategy","instance":"b","reason":"spill","cause":"threshold","home":"a","#,
        r#""key":"000000000000000000000000000000ab","place":1,"in_flight":3,"home_in_flight":10,"#,
        r#""expected_cached_tokens":7990,"retries":1,"queued_ms":20.0,"ttft_ms":51.25,"duration_ms":900.0,"prompt_tokens":8040,"cached_tokens":8000,"#,
        r#""output_tokens":17,"bytes_in":33000,"bytes_out":4096}"#,
        "\n",
    ];
    assert_eq!(lines, expected.concat());
}

#[test]
fn a_long_text_of_a_client_is_cut_between_characters() {
    let mut line = Vec::new();
    let long: Arc<str> = "ä".repeat(10_000).into();
    let entry = AccessLogEntry { model: Some(Arc::clone(&long)), path: long, ..refused() };
    entry.bounded().write_line(&mut line);
    let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!((&line["model"], &line["path"]), (&"ä".repeat(512).into(), &"ä".repeat(512).into()));
}

#[test]
fn a_file_gets_every_line_and_is_opened_anew_after_it_was_moved() {
    let directory = tempfile::tempdir().unwrap();
    let (path, moved) = (directory.path().join("access.log"), directory.path().join("access.log.1"));
    let metrics = Metrics::new("test");
    let log = AccessLog::to_file(&path, &metrics).unwrap();
    for _ in 0..1_000 {
        log.log(refused);
    }
    assert!(log.flush(PATIENCE));
    std::fs::rename(&path, &moved).unwrap();
    log.reopen();
    log.log(refused);
    assert!(log.flush(PATIENCE));
    let lines = |path| std::fs::read_to_string(path).unwrap().lines().count();
    assert_eq!((lines(&moved), lines(&path)), (1_000, 1));
    assert_eq!(logged(&metrics, "isotherm_access_log_dropped_total"), 0);
}

#[test]
fn a_log_that_is_off_builds_no_entry() {
    let log = AccessLog::off();
    log.log(|| unreachable!("nobody reads it"));
    assert!(log.flush(Duration::ZERO));
}

#[test]
fn a_path_that_cannot_be_written_is_known_at_once() {
    assert!(AccessLog::to_file(Path::new("/nonexistent/access.log"), &Metrics::new("test")).is_err());
}

/// An output that waits for leave before each write and fails on demand.
struct Stubborn {
    leave: Receiver<io::Result<()>>,
    written: Sender<Vec<u8>>,
}

impl Write for Stubborn {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.leave.recv().map_err(io::Error::other)??;
        self.written.send(bytes.to_vec()).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn stubborn(metrics: &Metrics) -> (AccessLog, Sender<io::Result<()>>, Receiver<Vec<u8>>) {
    let ((give_leave, leave), (written, seen)) = (channel(), channel());
    let once = Mutex::new(Some(Stubborn { leave, written }));
    let open = move || {
        let output = once.lock().ok().and_then(|mut once| once.take());
        output.map(|output| Box::new(output) as Box<dyn Write + Send>).ok_or(io::ErrorKind::NotFound.into())
    };
    (AccessLog::start(metrics, Box::new(open)).unwrap(), give_leave, seen)
}

#[test]
fn a_writer_that_hangs_costs_lines_and_never_blocks() {
    let metrics = Metrics::new("test");
    let (log, _no_leave, _) = stubborn(&metrics);
    for _ in 0..QUEUE + 1_000 {
        log.log(refused);
    }
    // The writer took one batch at most before it hung.
    let one_batch = 1 + BATCH_OF_REFUSED as u64;
    let dropped = logged(&metrics, "isotherm_access_log_dropped_total");
    assert!((1_000 - one_batch..=1_000).contains(&dropped), "{dropped}");
    assert!(!log.flush(Duration::ZERO));
}

/// No more than this many entries of [`refused`] fit into a batch.
const BATCH_OF_REFUSED: usize = 64 * 1024 / 150;

#[test]
fn lines_that_cannot_be_written_are_counted_and_later_ones_begin_on_a_line_of_their_own() {
    let metrics = Metrics::new("test");
    let (log, leave, seen) = stubborn(&metrics);
    log.log(refused);
    leave.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
    assert!(log.flush(PATIENCE));
    assert_eq!(logged(&metrics, "isotherm_access_log_write_errors_total"), 1);
    for _ in 0..2 {
        leave.send(Ok(())).unwrap();
    }
    log.log(refused);
    assert!(log.flush(PATIENCE));
    let written: Vec<Vec<u8>> = seen.try_iter().collect();
    assert_eq!(written[0], b"\n");
    assert!(written[1].starts_with(b"{\"time\":") && written[1].ends_with(b"}\n"));
    assert_eq!(logged(&metrics, "isotherm_access_log_write_errors_total"), 1);
}
