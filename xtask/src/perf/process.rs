//! A process under measurement and its children: processor time and memory, from `/proc`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::machine;

/// A running process. Ended with its children when dropped.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts a command whose output goes into a file.
    pub(crate) fn start(mut command: Command, log: &Path) -> Result<Process, Failure> {
        let file = || fs::File::create(log).map_err(|error| Failure::file(log, &error));
        command.stdin(Stdio::null()).stdout(file()?).stderr(file()?);
        let child = command.spawn();
        child
            .map(Process)
            .map_err(|error| Failure::Failed(format!("{:?} did not start: {error}", command.get_program())))
    }

    /// Starts a command and reads its first lines, until one begins with `last`.
    pub(crate) fn start_until(mut command: Command, last: &str) -> Result<(Process, Vec<String>), Failure> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child =
            child.map_err(|error| Failure::Failed(format!("{:?} did not start: {error}", command.get_program())))?;
        let stdout = child.stdout.take();
        let process = Process(child);
        let mut lines = Vec::new();
        for line in stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()).map_while(Result::ok) {
            let is_last = line.starts_with(last);
            lines.push(line);
            if is_last {
                return Ok((process, lines));
            }
        }
        Err(Failure::Failed(format!("{:?} ended before it was ready", command.get_program())))
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Processor time so far, of all threads that live, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let threads = self.family().into_iter().flat_map(|process| {
            let tasks = fs::read_dir(format!("/proc/{process}/task"));
            tasks.into_iter().flatten().flatten().map(|task| task.path().join("schedstat"))
        });
        let nanoseconds = |file: PathBuf| fs::read_to_string(file).ok()?.split_whitespace().next()?.parse::<f64>().ok();
        threads.filter_map(nanoseconds).sum::<f64>() / 1e9
    }

    /// Resident memory in MiB; what processes share counts once.
    pub(crate) fn memory_mib(&self) -> f64 {
        self.sum_mib("smaps_rollup", "Pss:")
    }

    /// The most resident memory so far, in MiB; what processes share counts for each.
    pub(crate) fn peak_mib(&self) -> f64 {
        self.sum_mib("status", "VmHWM:")
    }

    fn sum_mib(&self, file: &str, name: &str) -> f64 {
        let kib = |process: u32| {
            let text = fs::read_to_string(format!("/proc/{process}/{file}")).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        self.family().into_iter().filter_map(kib).sum::<f64>() / 1024.0
    }

    /// It and all processes that descend from it.
    fn family(&self) -> Vec<u32> {
        let all: Vec<(u32, u32)> = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(parent).collect();
        let mut family = vec![self.0.id()];
        let mut next = 0;
        while let Some(&process) = family.get(next) {
            family.extend(all.iter().filter(|(_, parent)| *parent == process).map(|(child, _)| *child));
            next += 1;
        }
        family
    }
}

impl Drop for Process {
    /// By SIGTERM, on which masters end their workers.
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let asked = Instant::now();
        while asked.elapsed() < Duration::from_secs(5) {
            if self.has_ended() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        for process in self.family() {
            let _ = Command::new("kill").args(["-9", &process.to_string()]).status();
        }
        let _ = self.0.wait();
    }
}

/// A process and its parent.
fn parent(entry: fs::DirEntry) -> Option<(u32, u32)> {
    let process = entry.file_name().to_str()?.parse().ok()?;
    let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
    // The name in parentheses may hold anything.
    let behind = stat.rsplit_once(')')?.1;
    Some((process, behind.split_whitespace().nth(1)?.parse().ok()?))
}

/// The engines that all are in front of.
#[derive(Debug)]
pub(crate) struct Engines {
    process: Process,
    pub(crate) urls: Vec<String>,
}

impl Engines {
    pub(crate) fn start(program: &PathBuf) -> Result<Engines, Failure> {
        let mut command = machine::command(program);
        command.args(["engines", "2"]);
        let (process, mut urls) = Process::start_until(command, "ready")?;
        urls.pop();
        Ok(Engines { process, urls })
    }

    /// Where one of them is asked without anything between.
    pub(crate) fn direct(&self) -> String {
        self.urls.first().map(|url| url.trim_start_matches("http://").to_owned()).unwrap_or_default()
    }

    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.process.cpu_seconds()
    }
}

#[cfg(test)]
mod tests {
    use super::Process;
    use std::process::Command;

    #[test]
    fn children_count_and_end_with_their_parent() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 60 & echo ready; wait"]);
        let (process, lines) = Process::start_until(shell, "ready").unwrap();
        assert_eq!(lines, ["ready"]);
        assert_eq!(process.family().len(), 2);
        assert!(process.cpu_seconds() > 0.0 && process.memory_mib() > 0.0);
        assert!(process.peak_mib() >= process.memory_mib());
        for child in process.family().into_iter().skip(1) {
            Command::new("kill").arg(child.to_string()).status().unwrap();
        }
    }
}
