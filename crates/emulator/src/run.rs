//! The life of one emulator on its thread: engine, listener and commands, from start to stop.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use isotherm_engine_model::Statistics;
use tokio::sync::{mpsc, oneshot, watch};

use crate::config::EmulatorConfig;
use crate::emulator::Emulator;
use crate::faults::Faults;
use crate::lag::LagRecorder;
use crate::listener;
use crate::port::Port;
use crate::timer::StepTimer;

/// What a [`RunningEmulator`](crate::RunningEmulator) tells its emulator.
#[derive(Debug)]
pub(crate) enum Command {
    SetFaults(Faults, oneshot::Sender<()>),
    /// Stop accepting, let what is under way end, at most that long.
    Shutdown(Duration, oneshot::Sender<()>),
    /// Close all sockets at once.
    Kill(oneshot::Sender<()>),
}

/// What the emulator's thread writes and others read.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) lag: Arc<LagRecorder>,
    statistics: Mutex<Statistics>,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self { lag: Arc::new(LagRecorder::new()), statistics: Mutex::default() }
    }

    pub(crate) fn statistics(&self) -> Statistics {
        *self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, statistics: Statistics) {
        *self.statistics.lock().unwrap_or_else(PoisonError::into_inner) = statistics;
    }
}

/// Runs until told to stop, or until nobody is left who could tell.
pub(crate) async fn run(
    config: EmulatorConfig,
    identity: u64,
    port: Port,
    shared: Arc<Shared>,
    commands: mpsc::UnboundedReceiver<Command>,
) -> std::io::Result<()> {
    let timer = StepTimer::new()?;
    let emulator = Rc::new(Emulator::new(config, port, Arc::clone(&shared.lag), identity));
    let (stop, stopping) = watch::channel(false);
    let accepting = listener::accept(Rc::clone(&emulator), stopping);
    let ended = {
        let mut accepting = std::pin::pin!(accepting);
        let mut accepting_ended = false;
        let mut obeying = std::pin::pin!(obey(&emulator, commands, stop));
        let mut driving = std::pin::pin!(drive(&emulator, &timer, &shared));
        loop {
            tokio::select! {
                ended = obeying.as_mut() => break Ok(ended),
                () = accepting.as_mut(), if !accepting_ended => accepting_ended = true,
                failed = driving.as_mut() => break failed.map(|()| None),
                never = emulator.tasks().reap() => match never {},
            }
        }
    };
    emulator.port().close();
    emulator.tasks().abort();
    emulator.tasks().ended().await;
    if let Some(told) = ended? {
        let _ = told.send(());
    }
    Ok(())
}

/// Sleeps to the engine's next deadline and hands out what it generated, for ever; returns when the timer fails.
async fn drive(emulator: &Emulator, timer: &StepTimer, shared: &Shared) -> std::io::Result<()> {
    let rearm = emulator.driver().borrow().rearm_signal();
    loop {
        let deadline = emulator.driver().borrow().deadline();
        tokio::select! {
            slept = sleep_until(timer, deadline) => {
                slept?;
                let mut driver = emulator.driver().borrow_mut();
                driver.advance(Instant::now());
                shared.publish(driver.statistics());
            }
            () = rearm.notified() => shared.publish(emulator.driver().borrow().statistics()),
        }
    }
}

async fn sleep_until(timer: &StepTimer, deadline: Option<Instant>) -> std::io::Result<()> {
    match deadline {
        Some(deadline) => timer.sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Follows commands until one ends the emulator; gives whom to tell when that is done.
async fn obey(
    emulator: &Emulator,
    mut commands: mpsc::UnboundedReceiver<Command>,
    stop: watch::Sender<bool>,
) -> Option<oneshot::Sender<()>> {
    loop {
        let faults_end = emulator.faults().until();
        tokio::select! {
            command = commands.recv() => match command {
                None => return None,
                Some(Command::Kill(done)) => return Some(done),
                Some(Command::Shutdown(grace, done)) => {
                    stop.send_replace(true);
                    let _ = tokio::time::timeout(grace, emulator.tasks().ended()).await;
                    return Some(done);
                }
                Some(Command::SetFaults(faults, done)) => {
                    emulator.set_faults(faults);
                    let _ = done.send(());
                }
            },
            () = until(faults_end) => emulator.set_faults(Faults::default()),
            () = emulator.faults_changed().notified() => {}
        }
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
