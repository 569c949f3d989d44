//! One client's connection: which protocol it speaks, how long it may be idle, and when its client is gone.

mod driver;
mod handshake;
mod preface;
mod refusal;
mod state;
mod stream;

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use http::header::{CONNECTION, HeaderValue, TRANSFER_ENCODING};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use self::driver::drive;
use self::preface::Protocol;
pub(crate) use self::state::InFlight;
use self::state::State;
use self::stream::ClientStream;
use crate::answer::Answer;
use crate::pipeline;
use crate::worker::Worker;

/// Room for the head of a request, above the limit that is told in words; for what is read of a body at once; and for
/// what is kept of an answer whose client does not take it.
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

/// Serves a connection until it ends.
pub(crate) async fn serve(stream: TcpStream, client: SocketAddr, worker: Rc<Worker>) {
    // Worth nothing to fail for: without it, answers are merely slower.
    let _ = stream.set_nodelay(true);
    let Some(mut stream) = handshake::complete(stream, client, &worker).await else { return };
    let Some((protocol, read)) = preface::detect(&mut stream, &worker).await else { return };
    let state = Rc::new(State::new(&worker, protocol));
    let stream = Rc::new(ClientStream::new(stream, read, Rc::clone(&state)));
    let io = TokioIo::new(stream::Shared(Rc::clone(&stream)));
    let service = service_fn({
        let (worker, state) = (Rc::clone(&worker), Rc::clone(&state));
        move |request: Request<Incoming>| {
            let in_flight = State::begin_request(&state, &request);
            let answer = answer(request, client, Rc::clone(&worker), in_flight);
            async move { Ok::<_, std::convert::Infallible>(answer.await) }
        }
    });
    match protocol {
        Protocol::Http1 => {
            let connection = http1::Builder::new()
                .max_buf_size(buffer(&worker))
                .header_read_timeout(None)
                .serve_connection(io, service);
            drive(Box::pin(connection), &stream, &state, &worker).await;
        }
        Protocol::Http2 => {
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
            drive(Box::pin(connection), &stream, &state, &worker).await;
        }
    }
    stream::close(stream, &state).await;
}

/// How much a connection may keep of what comes and of what goes, each.
fn buffer(worker: &Worker) -> usize {
    let limits = &worker.rules().limits;
    let head = limits.headers.saturating_add(limits.uri).saturating_add(BEYOND_LIMITS);
    usize::try_from(head).unwrap_or(usize::MAX).max(LEAST_BUFFER)
}

/// Answers one request.
///
/// One whose body came in chunks is the last of its connection: had it told a length too, which the library takes away
/// unseen, then whoever stands in front could take for its body what looks like a further request from here (RFC 9112,
/// section 6.3, asks for the close).
fn answer(
    request: Request<Incoming>,
    client: SocketAddr,
    worker: Rc<Worker>,
    in_flight: InFlight,
) -> impl Future<Output = Response<Answer>> {
    let in_chunks = request.headers().contains_key(TRANSFER_ENCODING);
    let response = pipeline::serve(request, client, worker, in_flight);
    async move {
        let mut response = response.await;
        if in_chunks {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
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
