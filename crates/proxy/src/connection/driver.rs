//! Drives a connection's protocol, and ends it when its client is gone, takes too long, or the router stops.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::Body;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::{http1, http2};
use hyper::service::HttpService;

use super::Local;
use super::state::State;
use super::stream::ClientStream;
use crate::alarm::Alarm;
use crate::stop::Phase;
use crate::worker::Worker;

/// How often a client is looked after that could leave without waking anyone: it has sent more than was read.
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// A protocol under way.
pub(super) trait Conversation {
    /// Goes on with it; ready when the connection has ended.
    fn poll_conversation(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()>;

    /// Lets it end behind the requests that are under way.
    fn end_gracefully(self: Pin<&mut Self>);
}

/// Drives a conversation until it has ended, or has to be ended.
pub(super) async fn drive<C: Conversation>(
    mut conversation: Pin<Box<C>>,
    stream: &ClientStream,
    state: &Rc<State>,
    worker: &Worker,
) {
    let mut stop = worker.stop.watch();
    let (mut ending, mut limit, mut look) = (false, Alarm::default(), Alarm::default());
    let mut next_look = worker.now();
    std::future::poll_fn(|context| {
        if conversation.as_mut().poll_conversation(context).is_ready() {
            return Poll::Ready(());
        }
        let phase = stop.poll(context, &worker.stop);
        if phase >= Phase::Draining && !ending && (state.may_close() || phase >= Phase::Truncating) {
            ending = true;
            conversation.as_mut().end_gracefully();
            if conversation.as_mut().poll_conversation(context).is_ready() {
                return Poll::Ready(());
            }
        }
        if state.is_unobserved() && poll_gone(stream, &mut look, context, worker).is_ready() {
            return Poll::Ready(());
        }
        loop {
            let due = state.due();
            if limit.poll(context, due.unwrap_or(next_look), worker.clock()).is_pending() {
                return Poll::Pending;
            }
            if due.is_some() {
                return Poll::Ready(());
            }
            next_look = worker.now() + state.look_every();
        }
    })
    .await;
}

/// Whether the client of a connection that nobody reads from is gone.
fn poll_gone(stream: &ClientStream, look: &mut Alarm, context: &mut Context<'_>, worker: &Worker) -> Poll<()> {
    loop {
        match stream.poll_gone(context) {
            Poll::Ready(Some(())) => return Poll::Ready(()),
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => {}
        }
        let again = worker.now() + LOOK_EVERY;
        if look.poll(context, again, worker.clock()).is_pending() {
            return Poll::Pending;
        }
    }
}

impl<I, S> Conversation for http1::Connection<I, S>
where
    I: Read + Write + Unpin + 'static,
    S: HttpService<Incoming>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::ResBody: Body + 'static,
    <S::ResBody as Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn poll_conversation(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // How a connection ended is told by what happened to its requests.
        self.poll(context).map(drop)
    }

    fn end_gracefully(self: Pin<&mut Self>) {
        self.graceful_shutdown();
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
