//! One instance's program, from its first start to its end.

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::future::pending;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use isotherm_config::InstanceUrl;
use rustix::io::Errno;
use rustix::process::Pid;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::command::Program;
use super::left_behind::{Announced, LOOK_EVERY, LeftBehind, end_group};
use super::{LONGEST_PAUSE, Shared, served};
use crate::providers::ready::until_ready;
use crate::providers::{InstanceOrder, Reached, Standing};

/// How much of a program's last output goes into a failure's reason, in bytes.
const TAIL: u64 = 400;
/// A log that is longer when its program starts begins anew; the old one is kept beside it.
const LONGEST_LOG: u64 = 16 << 20;
/// One that ran so long before it ended did not fail at its start.
const STEADY: Duration = Duration::from_secs(60);

/// Starts one instance's program, again and again until it is told to stop.
pub(super) struct Supervisor {
    shared: Arc<Shared>,
    order: InstanceOrder,
    standing: watch::Sender<Standing>,
    stopping: watch::Receiver<bool>,
}

/// A program that runs: this process's child, or one that an earlier life of it left behind.
struct Process {
    child: Option<Child>,
    group: Option<Pid>,
    left_behind: Option<LeftBehind>,
    reached: Reached,
}

/// How a program's run came to its end.
enum Ended {
    /// It was told to.
    Stopped,
    /// There was nothing to run.
    NotStarted(String),
    /// It never became ready.
    NotReady(String),
    /// It was ready and ended by itself.
    Exited(String),
}

impl Supervisor {
    pub(super) fn new(
        shared: Arc<Shared>,
        order: InstanceOrder,
        standing: watch::Sender<Standing>,
        stopping: watch::Receiver<bool>,
    ) -> Supervisor {
        Supervisor { shared, order, standing, stopping }
    }

    /// Ends when it is told to stop, or when the program did not become ready at its very first start: then the
    /// configuration is wrong, and starting again helps nobody.
    pub(super) async fn run(mut self) {
        let mut pause = self.shared.first_pause;
        let mut was_ready = false;
        loop {
            let began = Instant::now();
            let ended = match self.left_behind().map_or_else(|| self.spawn(), Ok) {
                Ok(process) => self.run_once(process).await,
                Err(error) => Ended::NotStarted(self.not_started(&error)),
            };
            match ended {
                Ended::Stopped => return,
                Ended::NotStarted(problem) if !was_ready => {
                    self.standing.send_replace(Standing::Failed(self.reason(&problem)));
                    return;
                }
                Ended::NotReady(problem) if !was_ready => {
                    let reason = format!("{}{}", self.reason(&problem), self.what_it_said());
                    self.standing.send_replace(Standing::Failed(reason));
                    return;
                }
                Ended::NotStarted(problem) | Ended::NotReady(problem) | Ended::Exited(problem) => {
                    was_ready = true;
                    let instance = &self.order.instance;
                    warn!(endpoint = %self.order.endpoint, %instance, ?pause, "starting again: {problem}");
                    self.standing.send_replace(Standing::Starting);
                }
            }
            if began.elapsed() >= STEADY {
                pause = self.shared.first_pause;
            }
            tokio::select! {
                () = sleep(pause) => pause = LONGEST_PAUSE.min(pause * 2),
                () = told_to_stop(&mut self.stopping) => return,
            }
        }
    }

    async fn run_once(&mut self, mut process: Process) -> Ended {
        let limit = self.order.start_timeout.unwrap_or(self.shared.settings.start_timeout);
        let reached = process.reached.clone();
        let ready = tokio::select! {
            ready = until_ready(&reached, limit) => ready.map_err(|problem| {
                let bound = match self.order.start_timeout {
                    None => "start_timeout in aws.providers",
                    Some(_) => "the variant's ContainerStartupHealthCheckTimeoutInSeconds",
                };
                let (url, limit) = (&reached.url, limit.as_secs());
                format!(
                    "it did not become ready at {url} within {limit} s ({problem}): raise {bound} if it takes longer, or \
                     see that it listens on {{port}}"
                )
            }),
            how = process.exited() => Err(format!("it ended before it was ready, with {how}")),
            () = told_to_stop(&mut self.stopping) => {
                process.end(self.shared.settings.stop_timeout).await;
                return Ended::Stopped;
            }
        };
        if let Err(problem) = ready {
            process.end(self.shared.settings.stop_timeout).await;
            return Ended::NotReady(problem);
        }
        info!(endpoint = %self.order.endpoint, instance = %self.order.instance, url = %reached.url, "ready");
        self.standing.send_replace(Standing::Running(reached.clone()));
        let ended = tokio::select! {
            how = process.exited() => Ended::Exited(format!("it ended with {how}")),
            () = told_to_stop(&mut self.stopping) => Ended::Stopped,
            never = look_at_models(&self.order, &reached) => match never {},
        };
        process.end(self.shared.settings.stop_timeout).await;
        ended
    }

    /// The program that an earlier life of this process started for the instance, if it still runs as it should.
    fn left_behind(&self) -> Option<Process> {
        let process = LeftBehind::read(&self.shared.processes, &self.order.key)?;
        let program = Program::of(&self.shared.settings, &self.order, process.port()).ok()?;
        let reached = self.reached(process.port()).ok()?;
        if !process.runs(&program.words) {
            // It would hold memory that the new one needs.
            tokio::spawn(process.end(self.shared.settings.stop_timeout));
            return None;
        }
        info!(endpoint = %self.order.endpoint, instance = %self.order.instance, "found again");
        Some(Process { child: None, group: None, left_behind: Some(process), reached })
    }

    fn spawn(&self) -> io::Result<Process> {
        let port = free_port()?;
        let reached = self.reached(port)?;
        let program = Program::of(&self.shared.settings, &self.order, port).map_err(io::Error::other)?;
        let log = |error| io::Error::other(format!("its log {} can't be written: {error}", self.log_path().display()));
        let output = self.open_log().map_err(log)?;
        let mut command = program.command(&self.shared.settings);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let announced = Announced::new(&self.shared.processes, &self.order.key, port, &program.words);
        let (variable, mark) = announced.environment();
        let child = match command.env(variable, mark).spawn() {
            Ok(child) => child,
            Err(error) => {
                announced.not_started();
                return Err(error);
            }
        };
        let pid = child.id();
        let group = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        Ok(Process { left_behind: pid.and_then(|pid| announced.started(pid)), child: Some(child), group, reached })
    }

    fn reached(&self, port: u16) -> io::Result<Reached> {
        let url: Result<InstanceUrl, _> = format!("http://127.0.0.1:{port}").parse();
        let health = self.shared.settings.health_path.clone();
        Ok(Reached { url: url.map_err(io::Error::other)?, api_key: None, tls: None, health })
    }

    fn log_path(&self) -> PathBuf {
        self.shared.logs.join(format!("{}.log", self.order.key))
    }

    fn open_log(&self) -> io::Result<File> {
        std::fs::create_dir_all(&self.shared.logs)?;
        let path = self.log_path();
        if std::fs::metadata(&path).is_ok_and(|log| log.len() > LONGEST_LOG) {
            std::fs::rename(&path, path.with_extension("log.old"))?;
        }
        OpenOptions::new().create(true).append(true).open(path)
    }

    /// Why there is no process, and what to do.
    fn not_started(&self, error: &io::Error) -> String {
        let settings = &self.shared.settings;
        let missing_directory = settings.working_directory.as_ref().filter(|directory| !directory.is_dir());
        let problem = match (error.kind(), Errno::from_io_error(error)) {
            (_, Some(Errno::MFILE | Errno::NFILE)) => format!(
                "{error}: raise the limit of open files of the router (ulimit -n, or LimitNOFILE= of its unit) and start \
                 it again"
            ),
            (_, Some(Errno::AGAIN | Errno::NOMEM)) => {
                format!("{error}: the system has no room for another process; ask for fewer instances, or free memory")
            }
            (io::ErrorKind::NotFound, _) if missing_directory.is_some() => {
                String::from("its working_directory is not there: make it, or correct it in aws.providers")
            }
            (io::ErrorKind::NotFound, _) => String::from(
                "there is no such program on the router's PATH: install it, or write its full path into the command in \
                 aws.providers",
            ),
            (io::ErrorKind::PermissionDenied, _) => {
                String::from("the router's user may not execute it: correct its mode, or the command in aws.providers")
            }
            _ => error.to_string(),
        };
        format!("it could not be started: {problem}")
    }

    fn reason(&self, problem: &str) -> String {
        let program = self.shared.settings.command.first().map_or("", |word| word.as_str());
        format!("{program} for {}: {problem}.", self.order.instance)
    }

    fn what_it_said(&self) -> String {
        let path = self.log_path();
        match last_words(&path) {
            Some(words) => format!(" Its log is {}. Its last output: {words}", path.display()),
            None => format!(" It said nothing; its log would be {}.", path.display()),
        }
    }
}

impl Process {
    /// Resolves when the program has ended, with how.
    async fn exited(&mut self) -> String {
        if let Some(child) = &mut self.child {
            return match child.wait().await {
                Ok(status) => told(status),
                Err(error) => error.to_string(),
            };
        }
        while self.left_behind.as_ref().is_some_and(LeftBehind::is_there) {
            sleep(LOOK_EVERY).await;
        }
        "a status that nobody saw".to_owned()
    }

    /// Ends the program and whatever it started: SIGTERM, and SIGKILL for what is left after `patience`.
    async fn end(mut self, patience: Duration) {
        match (&mut self.child, self.group) {
            (Some(child), Some(group)) => {
                // Reaped on the way, or the group would seem to live on in its ended leader.
                let (_, ()) = tokio::join!(child.wait(), end_group(group, patience));
            }
            _ => {
                if let Some(process) = self.left_behind.clone() {
                    process.end(patience).await;
                }
            }
        }
        if let Some(process) = &self.left_behind {
            process.forget();
        }
    }
}

/// Warns of a program that serves another model than it was started for. It may be called otherwise on purpose, so it
/// serves all the same.
async fn look_at_models(order: &InstanceOrder, reached: &Reached) -> Infallible {
    if let Some(complaint) = served::complaint(order, reached).await {
        warn!(endpoint = %order.endpoint, instance = %order.instance, "{complaint}");
    }
    pending().await
}

async fn told_to_stop(stopping: &mut watch::Receiver<bool>) {
    // An error: nobody is left who could tell, so nobody is left who wants it.
    let _ = stopping.wait_for(|&stop| stop).await;
}

/// A port that is free now. Another process may take it before the program does; then that ends, and is started again.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn told(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("status {code}"),
        None => status.to_string(),
    }
}

/// The end of a log, in one line.
fn last_words(path: &PathBuf) -> Option<String> {
    let mut log = File::open(path).ok()?;
    let length = log.metadata().ok()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    log.read_to_end(&mut tail).ok()?;
    let text = String::from_utf8_lossy(&tail);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}
