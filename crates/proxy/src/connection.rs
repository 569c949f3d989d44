//! One client's connection: which protocol it speaks, how long it may be idle, and when its client is gone.

mod closing;
mod driver;
mod handshake;
mod http1;
mod incoming;
mod preface;
mod state;
mod stream;

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;
use http::Request;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use isotherm_tls::Stream;
use tokio::net::TcpStream;

use self::driver::drive;
pub(crate) use self::incoming::{Incoming, Unfinished};
use self::preface::Protocol;
pub(crate) use self::state::InFlight;
use self::state::State;
use self::stream::ClientStream;
use crate::answer::Answer;
use crate::pipeline;
use crate::worker::Worker;

/// Room for the head of a request, above the limit that is told in words.
const LEAST_BUFFER: usize = 128 * 1024;
/// How much more room there is than the limits of a head allow.
const BEYOND_LIMITS: u64 = 32 * 1024;
/// The most streams that a client has open on one connection.
const MOST_STREAMS: u32 = 256;
/// How much of a request's body a client may send ahead on a stream, and on all streams of a connection.
const STREAM_WINDOW: u32 = 1024 * 1024;
/// See [`STREAM_WINDOW`].
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
/// How much of a response is kept for a stream whose client does not take it.
const SEND_BUFFER: usize = 128 * 1024;
/// The largest header list of a stream, above the limit that is told in words; a larger one ends the stream.
const HEADER_LIST: u32 = 128 * 1024;
/// An HTTP/2 connection on which nothing is heard is asked for a sign of life after this long, and given as long again.
const PING_EVERY: Duration = Duration::from_secs(20);

/// How long a connection without requests is kept. Load balancers in front reuse theirs for 60 s, and must be the ones
/// that close.
const KEPT_IDLE: Duration = Duration::from_secs(75);

/// Serves a connection until it ends.
pub(crate) async fn serve(stream: TcpStream, client: SocketAddr, worker: Rc<Worker>) {
    // Worth nothing to fail for: without it, answers are merely slower.
    let _ = stream.set_nodelay(true);
    let Some(mut stream) = handshake::complete(stream, client, &worker).await else { return };
    let Some((protocol, read)) = preface::detect(&mut stream, &worker).await else { return };
    match protocol {
        Protocol::Http1 => http1::serve(stream, read, client, &worker).await,
        Protocol::Http2 => Box::pin(serve_http2(stream, read, client, worker)).await,
    }
}

async fn serve_http2(stream: Stream, read: BytesMut, client: SocketAddr, worker: Rc<Worker>) {
    let state = Rc::new(State::new(&worker));
    let stream = Rc::new(ClientStream::new(stream, read));
    let io = TokioIo::new(stream::Shared(Rc::clone(&stream)));
    let service = service_fn({
        let (worker, state) = (Rc::clone(&worker), Rc::clone(&state));
        move |request: Request<hyper::body::Incoming>| {
            let in_flight = State::begin_request(&state, &request);
            let (head, body) = request.into_parts();
            let way = pipeline::serve(Box::new(head), Incoming::Http2(body), client, Rc::clone(&worker));
            async move {
                let (response, body_was_read) = way.await;
                if !body_was_read {
                    in_flight.leave_body_unread();
                }
                Ok::<_, std::convert::Infallible>(response.map(|body| Answer::new(body, in_flight)))
            }
        }
    });
    let connection = http2::Builder::new(Local(Rc::clone(&worker)))
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(HEADER_LIST)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY)
        .serve_connection(io, service);
    drive(Box::pin(connection), &state, &worker).await;
    stream::close(stream, &state).await;
}

/// How much a connection of HTTP/1 may keep of a head that is not whole.
fn buffer(worker: &Worker) -> usize {
    let limits = &worker.rules().limits;
    let head = limits.headers.saturating_add(limits.uri).saturating_add(BEYOND_LIMITS);
    usize::try_from(head).unwrap_or(usize::MAX).max(LEAST_BUFFER)
}

/// Runs the streams of an HTTP/2 connection on the connection's own thread, and wakes them when the router stops.
#[derive(Debug, Clone)]
struct Local(Rc<Worker>);

impl<F: Future<Output = ()> + 'static> Executor<F> for Local {
    fn execute(&self, stream: F) {
        let worker = Rc::clone(&self.0);
        tokio::task::spawn_local(async move {
            let mut stream = pin!(stream);
            let mut stop = worker.stop.watch();
            std::future::poll_fn(|context| {
                stop.poll(context, &worker.stop);
                stream.as_mut().poll(context)
            })
            .await;
        });
    }
}
