//! The asynchronous invocations that were accepted and not run yet: bounded, and kept in files.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use tokio::fs;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::bucket::{Buckets, Writing};
use super::job::Job;

/// The most invocations that wait or run; further ones are refused.
const MOST_ACCEPTED: usize = 1_000;
/// The most that run at a time.
const MOST_RUNNING: usize = 64;
/// The directory of what is kept, within that of the buckets: no bucket's name begins with a point.
const KEPT: &str = ".accepted";

/// What was accepted. Shared by all threads.
#[derive(Debug)]
pub(crate) struct Backlog {
    pub(super) buckets: Buckets,
    room: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    resumed: AtomicBool,
}

impl Backlog {
    /// The backlog that is kept in this directory.
    pub(crate) fn in_directory(directory: PathBuf) -> Backlog {
        Backlog {
            buckets: Buckets::in_directory(directory),
            room: Arc::new(Semaphore::new(MOST_ACCEPTED)),
            turns: Arc::new(Semaphore::new(MOST_RUNNING)),
            resumed: AtomicBool::new(false),
        }
    }

    /// Room for one more; `None` when there is none.
    pub(super) fn room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).try_acquire_owned().ok()
    }

    /// Waits until one more may run.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // Never closed; but if it were, nothing would run any more.
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }

    /// Keeps a job until it is forgotten, also over a restart.
    pub(super) async fn keep(&self, job: &Job, body: &[u8], random: u64) -> io::Result<()> {
        let mut writing = Writing::begin(self.path(&job.id), random, &self.buckets).await?;
        writing.append(&job.to_bytes(body)?).await?;
        writing.finish().await
    }

    /// Forgets a job that was run.
    pub(super) async fn forget(&self, job: &Job) {
        if let Err(error) = fs::remove_file(self.path(&job.id)).await {
            tracing::warn!(%error, job = job.id, "an asynchronous invocation was run and cannot be taken off the backlog");
        }
    }

    /// What an earlier process has accepted and not run; only the first call tells. Files that are no jobs are left alone.
    pub(super) async fn left_over(&self) -> Vec<(Job, Bytes)> {
        if self.resumed.swap(true, Ordering::Relaxed) {
            return Vec::new();
        }
        let Ok(mut files) = fs::read_dir(self.buckets.root().join(KEPT)).await else { return Vec::new() };
        let mut jobs = Vec::new();
        while let Ok(Some(file)) = files.next_entry().await {
            let Ok(bytes) = fs::read(file.path()).await else { continue };
            match Job::parse(&Bytes::from(bytes)).filter(|(job, _)| file.file_name() == *job.id) {
                Some(job) => jobs.push(job),
                None => tracing::warn!(file = %file.path().display(), "not an asynchronous invocation; left alone"),
            }
        }
        jobs.sort_by_key(|(job, _)| job.accepted);
        jobs
    }

    fn path(&self, id: &str) -> PathBuf {
        self.buckets.root().join(KEPT).join(id)
    }
}
