//! A server for tests that answers chat completions as it is told to.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::Sleep;

/// What a response body does next.
pub(crate) enum Step {
    Send(String),
    Wait(Duration),
    /// Breaks the connection.
    Break,
}

/// Sends `data: …` as one event.
pub(crate) fn event(data: &str) -> Step {
    Step::Send(format!("data: {data}\n\n"))
}

/// A stream of `tokens` tokens, with usage.
pub(crate) fn stream(tokens: u64, prompt_tokens: u64, cached_tokens: u64) -> Vec<Step> {
    let mut steps = vec![event(r#"{"choices":[{"delta":{"role":"assistant","content":""}}],"usage":null}"#)];
    steps.extend((0..tokens).map(|_| event(r#"{"choices":[{"delta":{"content":"word "}}],"usage":null}"#)));
    steps.push(event(
        &format!(
            r#"{{"choices":[],"usage":{{"prompt_tokens":{prompt_tokens},"completion_tokens":{tokens},
        "prompt_tokens_details":{{"cached_tokens":{cached_tokens}}}}}}}"#
        )
        .replace('\n', ""),
    ));
    steps.push(event("[DONE]"));
    steps
}

/// One answer: status, headers, body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) steps: Vec<Step>,
}

impl Answer {
    pub(crate) fn sse(steps: Vec<Step>) -> Answer {
        Answer { status: 200, headers: vec![("content-type", "text/event-stream".to_owned())], steps }
    }

    pub(crate) fn json(status: u16, body: &str) -> Answer {
        let headers = vec![("content-type", "application/json".to_owned())];
        Answer { status, headers, steps: vec![Step::Send(body.to_owned())] }
    }
}

/// What the server was asked.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) connections: AtomicUsize,
    pub(crate) bodies: Mutex<Vec<serde_json::Value>>,
    /// The tenant that each request names.
    pub(crate) tenants: Mutex<Vec<Option<String>>>,
}

/// A server on a thread of its own; ends when dropped.
pub(crate) struct Mock {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Mock {
    /// Answers request number `n` (from 0) with what `answer` makes of it and its body.
    pub(crate) fn start(answer: impl Fn(usize, &serde_json::Value) -> Answer + Send + Sync + 'static) -> Mock {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let (stop, stopped) = oneshot::channel();
        let serving = serve(listener, Arc::clone(&seen), Arc::new(answer));
        let thread = std::thread::spawn(move || {
            super::current_thread_runtime().unwrap().block_on(async {
                tokio::select! { _ = stopped => {}, () = serving => {} }
            });
        });
        Mock { address, seen, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.bodies.lock().unwrap().len()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

async fn serve(
    listener: std::net::TcpListener,
    seen: Arc<Seen>,
    answer: Arc<impl Fn(usize, &serde_json::Value) -> Answer + Send + Sync + 'static>,
) {
    let listener = TcpListener::from_std(listener).unwrap();
    while let Ok((socket, _)) = listener.accept().await {
        seen.connections.fetch_add(1, SeqCst);
        let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
        let service = service_fn(move |request: Request<Incoming>| {
            let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
            async move {
                let tenant = request.headers().get(super::TENANT_HEADER).map(|name| name.to_str().unwrap().to_owned());
                seen.tenants.lock().unwrap().push(tenant);
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let body: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
                let number = {
                    let mut bodies = seen.bodies.lock().unwrap();
                    bodies.push(body.clone());
                    bodies.len() - 1
                };
                let answer = answer(number, &body);
                let mut response = Response::builder().status(answer.status);
                for (name, value) in answer.headers {
                    response = response.header(name, value);
                }
                Ok::<_, Infallible>(response.body(Script { steps: answer.steps.into(), sleep: None }).unwrap())
            }
        });
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service));
    }
}

/// A body that follows its steps.
struct Script {
    steps: VecDeque<Step>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Body for Script {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                std::task::ready!(sleep.as_mut().poll(context));
                self.sleep = None;
            }
            match self.steps.pop_front() {
                Some(Step::Send(text)) => return Poll::Ready(Some(Ok(Frame::data(text.into())))),
                Some(Step::Wait(duration)) => self.sleep = Some(Box::pin(tokio::time::sleep(duration))),
                Some(Step::Break) => return Poll::Ready(Some(Err(std::io::Error::other("broken on purpose")))),
                None => return Poll::Ready(None),
            }
        }
    }
}
