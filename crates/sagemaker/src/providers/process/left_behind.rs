//! Which process runs for an instance, on disk: what is needed to find it again after a crash, and to end it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::process_id::{ProcessId, leader_with};

/// How often it is looked whether a process is still there that is nobody's child.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The variable in a process's environment by which it is found where the router died before it noted who that is.
const MARK: &str = "ISOTHERM_STARTED";

/// A note of a process that is about to be started: written before, so that no moment is left in which a router that
/// is killed forgets an engine, which would hold its GPU for ever.
#[derive(Debug)]
pub(super) struct Announced {
    path: PathBuf,
    key: String,
    note: Note,
}

/// A process that was started for an instance; it leads a process group of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeftBehind {
    path: PathBuf,
    key: String,
    note: Note,
    process: ProcessId,
}

/// What is kept of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// `None` until it has been started.
    #[serde(flatten)]
    process: Option<ProcessId>,
    /// What [`MARK`] is in its environment, and in that of no other start. Versions before wrote none.
    mark: Option<String>,
    port: u16,
    /// The program and its arguments: with other ones it is not what is wanted now.
    words: Vec<String>,
}

impl Announced {
    /// Notes what is about to be started.
    pub(super) fn new(directory: &Path, key: &str, port: u16, words: &[String]) -> Announced {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mark = Some(format!("{}-{now}", std::process::id()));
        let note = Note { process: None, mark, port, words: words.to_vec() };
        let announced = Announced { path: path(directory, key), key: key.to_owned(), note };
        announced.note.write(&announced.path);
        announced
    }

    /// What its environment needs for it to be found.
    pub(super) fn environment(&self) -> (&'static str, &str) {
        (MARK, self.note.mark.as_deref().unwrap_or_default())
    }

    /// Notes who it is. `None` where it has ended already, or the system doesn't say when a process was started: then
    /// it can't be told from others later.
    pub(super) fn started(self, pid: u32) -> Option<LeftBehind> {
        let process = ProcessId::of(i32::try_from(pid).ok()?)?;
        Some(self.is(process))
    }

    /// There is no such process.
    pub(super) fn not_started(self) {
        let _ = std::fs::remove_file(&self.path);
    }

    fn is(self, process: ProcessId) -> LeftBehind {
        let Announced { path, key, mut note } = self;
        if note.process.replace(process) != Some(process) {
            note.write(&path);
        }
        LeftBehind { path, key, note, process }
    }
}

impl Note {
    fn write(&self, path: &Path) {
        let written = serde_json::to_vec(self).map_err(io::Error::other).and_then(|json| write_whole(path, &json));
        if let Err(error) = written {
            warn!(file = %path.display(), %error, "a process that survives a crash will not be found again");
        }
    }
}

impl LeftBehind {
    /// The process of that key, if it still runs.
    pub(super) fn read(directory: &Path, key: &str) -> Option<LeftBehind> {
        let (path, key) = (path(directory, key), key.to_owned());
        let note: Note = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        let process = match (note.process, &note.mark) {
            (Some(process), _) => Some(process).filter(|process| process.is_there()),
            (None, Some(mark)) => leader_with(MARK, mark),
            (None, None) => None,
        };
        let announced = Announced { path, key, note };
        match process {
            Some(process) => Some(announced.is(process)),
            None => {
                announced.not_started();
                None
            }
        }
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
        self.note.port
    }

    /// Whether it was started by these words.
    pub(super) fn runs(&self, words: &[String]) -> bool {
        self.note.words == words
    }

    /// Whether it still runs.
    pub(super) fn is_there(&self) -> bool {
        self.process.is_there()
    }

    /// Ends it and all of its group: SIGTERM, and SIGKILL for what is left after `patience`.
    pub(super) async fn end(self, patience: Duration) {
        if let Some(group) = Pid::from_raw(self.process.pid).filter(|_| self.is_there()) {
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
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
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
        let noted = Announced::new(directory, "1.ep.v-0", 8_000, &words).started(std::process::id()).unwrap();
        assert_eq!(LeftBehind::all(directory), [noted]);
        let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().file_name());
        assert_eq!(files.collect::<Vec<_>>(), ["1.ep.v-0.json"]);
    }

    #[test]
    fn a_note_of_a_version_that_set_no_mark_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let me = ProcessId::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        let json = serde_json::json!({ "pid": me.pid, "started": me.started, "port": 8_000, "words": ["engine"] });
        std::fs::write(folder.path().join("1.ep.v-0.json"), json.to_string()).unwrap();
        let read = LeftBehind::read(folder.path(), "1.ep.v-0").unwrap();
        assert!(read.is_there() && read.port() == 8_000 && read.runs(&["engine".to_owned()]));
    }

    #[test]
    fn what_was_announced_and_never_started_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        Announced::new(folder.path(), "1.ep.v-0", 8_000, &["engine".to_owned()]);
        assert_eq!(LeftBehind::read(folder.path(), "1.ep.v-0"), None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
