//! A connection of HTTP/1.1 or 1.0: reads a head, has the request answered, writes the answer, and begins anew, all within
//! one task.

mod answer;
mod refusal;
mod request_head;
mod socket;

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use http::Method;
use isotherm_core::Time;
use isotherm_tls::Stream;

use self::answer::{Answer, Ended, Manner};
use self::request_head::{NoRequest, RequestHead, may_be_whole};
pub(crate) use self::socket::RequestBody;
use self::socket::Socket;
use super::incoming::Incoming;
use super::{KEPT_IDLE, closing};
use crate::alarm::Alarm;
use crate::pipeline;
use crate::stop::{self, Phase};
use crate::worker::Worker;

/// How often a client is looked after that could leave without waking anyone: it has sent more than was read.
const LOOK_EVERY: Duration = Duration::from_millis(40);
/// How long the end of a connection may take to be told.
const LONGEST_GOODBYE: Duration = Duration::from_secs(2);

/// Serves a connection until it ends. `read` is what came of it so far.
pub(super) async fn serve(stream: Stream, read: BytesMut, client: SocketAddr, worker: &Rc<Worker>) {
    let mut connection = Connection {
        socket: Rc::new(Socket::new(stream, read)),
        client,
        worker,
        stop: worker.stop.watch(),
        has_begun: false,
        alarm: Alarm::default(),
        look: Alarm::default(),
        memory: Vec::new(),
    };
    let mut end = End::Ordinary;
    while let Some(head) = connection.next_head().await {
        match head {
            Ok(head) => match connection.exchange(head).await {
                Ok(()) => {}
                Err(ended) => {
                    end = ended;
                    break;
                }
            },
            Err(no_request) => {
                connection.refuse(no_request).await;
                end = End::Unread;
                break;
            }
        }
    }
    connection.close(end).await;
}

/// One connection.
struct Connection<'w> {
    socket: Rc<Socket>,
    client: SocketAddr,
    worker: &'w Rc<Worker>,
    stop: stop::Watch,
    /// Whether there was a request on it.
    has_begun: bool,
    /// Rings when the client was waited for too long.
    alarm: Alarm,
    /// Rings when something has to be looked at that wakes nobody.
    look: Alarm,
    memory: Vec<u8>,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// All was said.
    Ordinary,
    /// The client is gone, or did not take what there was for it.
    Gone,
    /// The client may still be sending what nobody will read.
    Unread,
    /// A body broke off whose client would take the connection's end for its end.
    BrokenOff,
}

impl Connection<'_> {
    /// The head of the next request; `None` when there will be none: the client left, said nothing for too long, or the
    /// router stops.
    async fn next_head(&mut self) -> Option<Result<RequestHead, NoRequest>> {
        let (mut parsed, mut since) = (0, None);
        poll_fn(|context| {
            loop {
                let read = self.socket.with_read(|read| {
                    let before = std::mem::replace(&mut parsed, read.len());
                    let is_due = !read.is_empty() && (before == 0 || may_be_whole(read, before));
                    let head = if is_due { RequestHead::take(read) } else { Ok(None) };
                    (head, read.len())
                });
                let length = match read {
                    (Ok(Some(head)), _) => return Poll::Ready(Some(Ok(head))),
                    (Err(no_request), _) => return Poll::Ready(Some(Err(no_request))),
                    (Ok(None), length) if length > super::LEAST_BUFFER && length > super::buffer(self.worker) => {
                        return Poll::Ready(Some(Err(NoRequest::TooLarge)));
                    }
                    (Ok(None), length) => length,
                };
                match self.socket.poll_request(context) {
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(_) => return Poll::Ready(None),
                    Poll::Pending => return self.poll_quiet(context, length > 0, &mut since).map(|()| None),
                }
            }
        })
        .await
    }

    /// Ready when the connection is not to wait any longer for a request, or for the rest of its head.
    fn poll_quiet(
        &mut self,
        context: &mut Context<'_>,
        has_head_begun: bool,
        since: &mut Option<(bool, Time)>,
    ) -> Poll<()> {
        self.socket.give_up_room();
        let phase = self.stop.poll(context, &self.worker.stop);
        if phase >= Phase::Truncating || (phase >= Phase::Draining && self.has_begun && !has_head_begun) {
            return Poll::Ready(());
        }
        // The first head is waited for from the beginning.
        let waits_for_head = has_head_begun || !self.has_begun;
        let now = || (waits_for_head, self.worker.now());
        let (_, begun) = *match since {
            Some((same, _)) if *same == waits_for_head => since.get_or_insert_with(now),
            _ => since.insert(now()),
        };
        let limit = if waits_for_head { self.worker.rules().timeouts.client_header } else { KEPT_IDLE };
        self.alarm.poll(context, begun + limit, self.worker.clock())
    }

    /// Answers one request.
    async fn exchange(&mut self, head: RequestHead) -> Result<(), End> {
        let RequestHead { parts, length, framing, keeps_alive, waits_to_continue } = head;
        self.has_begun = true;
        let manner = Manner {
            is_old: parts.version == http::Version::HTTP_10,
            is_head: parts.method == Method::HEAD,
            keeps_alive,
        };
        self.socket.expect_body(length, framing, waits_to_continue);
        let body = Incoming::Http1(RequestBody(Rc::clone(&self.socket)));
        let way = pipeline::serve(parts, body, self.client, Rc::clone(self.worker));
        let (response, _) = self.watched(way).await?;
        let is_read = self.socket.pass_over_body();
        let keeps_alive = keeps_alive && is_read && self.worker.stop.phase() < Phase::Draining;
        let manner = Manner { keeps_alive, ..manner };
        let mut answer = Answer::new(response, manner, self.worker, std::mem::take(&mut self.memory));
        let keeps_alive = keeps_alive && !answer.ends_by_close();
        let ended = self.send(&mut answer).await?;
        self.memory = answer.into_memory();
        match ended {
            Ended::BrokenOff if manner.is_old => Err(End::BrokenOff),
            _ if !is_read => Err(End::Unread),
            Ended::Whole if keeps_alive => Ok(()),
            Ended::Whole | Ended::BrokenOff => Err(End::Ordinary),
        }
    }

    /// Writes an answer, unless its client does not take it.
    async fn send(&mut self, answer: &mut Answer) -> Result<Ended, End> {
        let (socket, worker) = (Rc::clone(&self.socket), Rc::clone(self.worker));
        let (mut patience, mut since) = (std::mem::take(&mut self.alarm), None);
        let sending = poll_fn(|context| {
            let polled = answer.poll(context, &socket);
            if polled.is_pending() && answer.waits_for_client() {
                let since = *since.get_or_insert_with(|| worker.now());
                let limit = worker.rules().timeouts.idle;
                return patience.poll(context, since + limit, worker.clock()).map(|()| Err(End::Gone));
            }
            since = None;
            polled.map(|ended| ended.map_err(|_| End::Gone))
        });
        let sent = self.watched(sending).await;
        self.alarm = patience;
        sent?
    }

    /// Does something for a request for as long as its client is there.
    async fn watched<T>(&mut self, work: impl Future<Output = T>) -> Result<T, End> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Ok(done));
            }
            // The work looks at the phase by itself, but is woken by this.
            self.stop.poll(context, &self.worker.stop);
            self.poll_gone(context).map(|()| Err(End::Gone))
        })
        .await
    }

    /// Ready when the client is gone.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match ready!(self.socket.poll_gone(context)) {
                Some(()) => return Poll::Ready(()),
                None => {
                    // What was not read hides further changes; the alarm wakes the task, which asks again.
                    let again = self.worker.now() + LOOK_EVERY;
                    ready!(self.look.poll(context, again, self.worker.clock()));
                }
            }
        }
    }

    /// Tells a client in words that what it sent is no request.
    async fn refuse(&mut self, no_request: NoRequest) {
        let mut told = refusal::in_words(no_request, &self.worker.rules().limits, self.worker);
        let telling = poll_fn(|context| {
            while !told.is_empty() {
                let written = ready!(self.socket.poll_write(context, &[std::io::IoSlice::new(&told)]))?;
                told.drain(..written);
            }
            self.socket.poll_flush(context)
        });
        // Who does not take it has to do without.
        let _ = tokio::time::timeout(LONGEST_GOODBYE, telling).await;
    }

    async fn close(self, end: End) {
        if matches!(end, End::Ordinary | End::Unread) {
            let goodbye = poll_fn(|context| self.socket.poll_shutdown(context));
            let _ = tokio::time::timeout(LONGEST_GOODBYE, goodbye).await;
        }
        let Ok(socket) = Rc::try_unwrap(self.socket) else { return };
        let has_more = socket.with_read(|read| !read.is_empty());
        let tcp = socket.into_stream().into_tcp();
        match end {
            End::BrokenOff => closing::reset(&tcp),
            End::Unread => closing::linger(tcp).await,
            End::Ordinary if has_more => closing::linger(tcp).await,
            End::Ordinary | End::Gone => {}
        }
    }
}
