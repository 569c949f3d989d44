//! Which process runs for an instance, on disk: what is needed to find it again after a crash, and to end it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use tracing::warn;

/// How often it is looked whether a process is still there that is nobody's child.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A process that was started for an instance; it leads a process group of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeftBehind {
    path: PathBuf,
    key: String,
    noted: Noted,
}

/// What is kept of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Noted {
    pid: i32,
    /// When it started, as the system counts; tells it from a later process of the same number.
    started: u64,
    port: u16,
    /// The program and its arguments: with other ones it is not what is wanted now.
    words: Vec<String>,
}

impl LeftBehind {
    /// Notes a process that was just started. `None` where it has ended already, or the system doesn't say when a
    /// process was started: then it can't be told from others later.
    pub(super) fn note(directory: &Path, key: &str, pid: u32, port: u16, words: &[String]) -> Option<LeftBehind> {
        let pid = i32::try_from(pid).ok()?;
        let noted = Noted { pid, started: started(pid)?, port, words: words.to_vec() };
        let one = LeftBehind { path: path(directory, key), key: key.to_owned(), noted };
        let json = serde_json::to_vec(&one.noted).ok()?;
        let written = std::fs::create_dir_all(directory).and_then(|()| write_whole(&one.path, &json));
        if let Err(error) = written {
            warn!(file = %one.path.display(), %error, "a process that survives a crash will not be found again");
        }
        Some(one)
    }

    /// The process of that key, if it still runs.
    pub(super) fn read(directory: &Path, key: &str) -> Option<LeftBehind> {
        let path = path(directory, key);
        let noted = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        let one = LeftBehind { path, key: key.to_owned(), noted };
        if one.is_there() {
            return Some(one);
        }
        one.forget();
        None
    }

    /// Every process that still runs.
    pub(super) fn all(directory: &Path) -> Vec<LeftBehind> {
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| LeftBehind::read(directory, name.strip_suffix(".json")?)).collect()
    }

    /// The key of its order.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The port that it listens on.
    pub(super) fn port(&self) -> u16 {
        self.noted.port
    }

    /// Whether it was started by these words.
    pub(super) fn runs(&self, words: &[String]) -> bool {
        self.noted.words == words
    }

    /// Whether it still runs.
    pub(super) fn is_there(&self) -> bool {
        started(self.noted.pid) == Some(self.noted.started)
    }

    /// Ends it and all of its group: SIGTERM, and SIGKILL for what is left after `patience`.
    pub(super) async fn end(self, patience: Duration) {
        if let Some(group) = Pid::from_raw(self.noted.pid).filter(|_| self.is_there()) {
            end_group(group, patience).await;
        }
        self.forget();
    }

    /// Forgets a process that has ended.
    pub(super) fn forget(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Ends a process group whose leader is nobody's child, or whose leader has ended.
pub(super) async fn end_group(group: Pid, patience: Duration) {
    let deadline = Instant::now() + patience;
    let _ = kill_process_group(group, Signal::TERM);
    while test_kill_process_group(group).is_ok() {
        if Instant::now() >= deadline {
            let _ = kill_process_group(group, Signal::KILL);
            return;
        }
        sleep(LOOK_EVERY.min(Duration::from_millis(50))).await;
    }
}

/// Writes a file so that after a crash it is there whole, or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

fn path(directory: &Path, key: &str) -> PathBuf {
    directory.join(format!("{key}.json"))
}

/// When a process was started, in clock ticks since boot (proc(5), field 22 of `/proc/PID/stat`). `None` for one that
/// has ended, one that only waits for its parent to look, and on systems without `/proc`.
fn started(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (state != "Z" && state != "X").then_some(started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path();
        std::fs::write(directory.join("1.ep.v-0.unfinished"), "{\"pid\":1").unwrap();
        assert!(LeftBehind::all(directory).is_empty(), "what a crash has cut short is none");

        let words = ["engine".to_owned()];
        let noted = LeftBehind::note(directory, "1.ep.v-0", std::process::id(), 8_000, &words).unwrap();
        assert_eq!(LeftBehind::all(directory), [noted]);
        let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().file_name());
        assert_eq!(files.collect::<Vec<_>>(), ["1.ep.v-0.json"]);
    }
}
