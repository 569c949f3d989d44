//! Drives a connection of HTTP/2, and ends it when its client takes too long or the router stops.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::Body;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::http2;
use hyper::service::HttpService;
use isotherm_core::Time;

use super::Local;
use super::state::State;
use crate::alarm::Alarm;
use crate::stop::{self, Phase};
use crate::worker::Worker;

/// How long a client may take to close an idle connection that it was asked to close.
const LONGEST_GOODBYE: Duration = Duration::from_secs(2);

/// A protocol under way.
pub(super) trait Conversation {
    /// Goes on with it; ready when the connection has ended.
    fn poll_conversation(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()>;

    /// Lets it end behind the requests that are under way.
    fn end_gracefully(self: Pin<&mut Self>);
}

/// Drives a conversation until it has ended, or has to be ended.
pub(super) async fn drive<C: Conversation>(conversation: Pin<Box<C>>, state: &State, worker: &Worker) {
    let mut driver = Driver {
        conversation,
        state,
        worker,
        stop: worker.stop.watch(),
        ending: false,
        closes_at: None,
        patience: Alarm::default(),
        look_at: worker.now() + state.look_every(),
    };
    std::future::poll_fn(|context| driver.poll(context)).await;
}

struct Driver<'c, C> {
    conversation: Pin<Box<C>>,
    state: &'c State,
    worker: &'c Worker,
    stop: stop::Watch,
    /// Whether it was told to end.
    ending: bool,
    /// When an idle connection is closed that was told to end because it was idle.
    closes_at: Option<Time>,
    /// Rings when the connection has waited for its client for too long.
    patience: Alarm,
    /// When to look next whether a stream waits for its client.
    look_at: Time,
}

impl<C: Conversation> Driver<'_, C> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.conversation.as_mut().poll_conversation(context).is_ready() {
            return Poll::Ready(());
        }
        let phase = self.stop.poll(context, &self.worker.stop);
        if phase >= Phase::Draining && !self.ending && self.end_gracefully(context).is_ready() {
            return Poll::Ready(());
        }
        self.poll_patience(context)
    }

    /// Lets the conversation end behind what is under way.
    fn end_gracefully(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.ending = true;
        self.conversation.as_mut().end_gracefully();
        self.conversation.as_mut().poll_conversation(context)
    }

    /// Ready when the connection has waited for its client for too long.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let due = self.closes_at.filter(|_| self.state.is_quiet()).or_else(|| self.state.due());
            ready!(self.patience.poll(context, due.unwrap_or(self.look_at), self.worker.clock()));
            if due.is_none() {
                self.look_at = self.worker.now() + self.state.look_every();
            } else if self.ending || !self.state.is_quiet() || self.end_gracefully(context).is_ready() {
                return Poll::Ready(());
            } else {
                self.closes_at = Some(self.worker.now() + LONGEST_GOODBYE);
            }
        }
    }
}

impl<I, S> Conversation for http2::Connection<I, S, Local>
where
    I: Read + Write + Unpin + 'static,
    S: HttpService<Incoming>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: 'static,
    S::ResBody: Body + 'static,
    <S::ResBody as Body>::Data: Send,
    <S::ResBody as Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn poll_conversation(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.poll(context).map(drop)
    }

    fn end_gracefully(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
