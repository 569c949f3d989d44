//! Tells webhooks what fires and what has ended. Each webhook has a task and a short queue of its own, so that a dead one
//! holds nobody up.

mod message;
mod post;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use isotherm_config::WebhookUrl;
use isotherm_telemetry::{Metrics, Notification};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tracing::warn;

use super::book::Group;

/// How many messages may wait for one webhook.
const WAITING: usize = 32;

/// How long a webhook is waited for.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// How long a POST may take in all.
    answer: Duration,
    /// How long is waited after each attempt that failed; there is one attempt more.
    pauses: &'static [Duration],
}

const PATIENCE: Patience = Patience {
    answer: Duration::from_secs(5),
    pauses: &[
        Duration::from_millis(500),
        Duration::from_secs(1),
        Duration::from_secs(2),
        Duration::from_secs(5),
        Duration::from_secs(15),
        Duration::from_secs(30),
    ],
};

/// Hands messages to the tasks of webhooks. Cheap to clone: all clones are the same.
#[derive(Clone)]
pub(super) struct Notifier {
    metrics: Arc<Metrics>,
    /// The admin plane's URL, where the alerts can be seen.
    url: Arc<str>,
    patience: Patience,
    senders: Arc<Mutex<HashMap<WebhookUrl, Sender>>>,
}

struct Sender {
    queue: mpsc::Sender<String>,
    task: AbortHandle,
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notifier({} webhooks)", self.senders.lock().len())
    }
}

impl Notifier {
    pub(super) fn new(metrics: Arc<Metrics>, url: String) -> Notifier {
        Notifier { metrics, url: url.into(), patience: PATIENCE, senders: Arc::default() }
    }

    /// Queues a message for each webhook; never waits. Webhooks that are not configured any more are given up.
    pub(super) fn send(&self, webhooks: &[WebhookUrl], group: &Group) {
        let mut senders = self.senders.lock();
        senders.retain(|webhook, _| webhooks.contains(webhook));
        for webhook in webhooks {
            let sender = senders.entry(webhook.clone()).or_insert_with(|| self.begin(webhook.clone()));
            if sender.queue.try_send(message::of(group, &self.url)).is_err() {
                self.metrics.alerts().notification(Notification::Dropped);
                warn!(%webhook, "a message about alerts was dropped: {WAITING} wait already");
            }
        }
    }

    fn begin(&self, webhook: WebhookUrl) -> Sender {
        let (queue, messages) = mpsc::channel(WAITING);
        let task = tokio::spawn(deliver(webhook, messages, self.patience, Arc::clone(&self.metrics))).abort_handle();
        Sender { queue, task }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sends one message after the other, each until it was taken, refused for good, or tried too often.
async fn deliver(webhook: WebhookUrl, mut messages: mpsc::Receiver<String>, patience: Patience, metrics: Arc<Metrics>) {
    while let Some(message) = messages.recv().await {
        let outcome = match send(&webhook, &message, patience).await {
            Ok(()) => Notification::Sent,
            Err(error) => {
                warn!(%webhook, "a message about alerts could not be delivered: {error}");
                Notification::Failed
            }
        };
        metrics.alerts().notification(outcome);
    }
}

async fn send(webhook: &WebhookUrl, message: &str, patience: Patience) -> Result<(), post::PostError> {
    for pause in patience.pauses {
        match post::post(webhook, message, patience.answer).await {
            Err(error) if error.may_pass() => tokio::time::sleep(*pause).await,
            done => return done,
        }
    }
    post::post(webhook, message, patience.answer).await
}
