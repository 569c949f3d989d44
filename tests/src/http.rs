//! A small HTTP/1.1 client: one connection for each request, so that a test says exactly what happens on the wire.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use isotherm_tls::{ClientTls, ServerIdentity};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Nothing that a test asks for takes longer.
const WITHIN: Duration = Duration::from_secs(60);

/// Sends requests to one server.
#[derive(Debug, Clone)]
pub struct Client {
    authority: String,
    tls: Option<(ClientTls, ServerIdentity)>,
    headers: HeaderMap,
}

/// A response with its whole body.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A response that is being received. Leaving it is what a client that goes away does.
#[derive(Debug)]
pub struct Stream {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    began: bool,
    connection: JoinHandle<()>,
}

/// A response that did not come, or not whole.
#[derive(Debug)]
pub struct Broken {
    /// Whether a byte of the body had been received.
    pub after_body_began: bool,
    pub cause: String,
}

impl Client {
    /// `url` is `http://HOST:PORT`.
    pub fn new(url: &str) -> Client {
        let authority = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Client { authority, tls: None, headers: HeaderMap::new() }
    }

    /// `url` is `https://HOST:PORT`; whoever answers there has to be `name`.
    pub fn within_tls(url: &str, tls: ClientTls, name: &str) -> Client {
        let identity = ServerIdentity::of(name).expect("a host's name");
        Client { tls: Some((tls, identity)), ..Client::new(&url.replace("https://", "http://")) }
    }

    /// The same client, which sends this header too.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Client {
        self.headers.insert(name, value.parse().expect("a header's value"));
        self
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.whole(Method::GET, path, Bytes::new()).await.unwrap_or_else(|broken| panic!("GET {path}: {broken}"))
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.whole(Method::DELETE, path, Bytes::new()).await.unwrap_or_else(|broken| panic!("DELETE {path}: {broken}"))
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.try_post(path, body).await.unwrap_or_else(|broken| panic!("POST {path}: {broken}"))
    }

    pub async fn post_bytes(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.whole(Method::POST, path, body.into()).await.unwrap_or_else(|broken| panic!("POST {path}: {broken}"))
    }

    /// As [`Client::get`], for requests that may break.
    pub async fn try_get(&self, path: &str) -> Result<Answer, Broken> {
        self.whole(Method::GET, path, Bytes::new()).await
    }

    /// As [`Client::post`], for requests that may break.
    pub async fn try_post(&self, path: &str, body: &Value) -> Result<Answer, Broken> {
        self.whole(Method::POST, path, body.to_string().into()).await
    }

    /// Sends the request and returns when the head is there.
    pub async fn open(&self, path: &str, body: &Value) -> Result<Stream, Broken> {
        within(self.send(Method::POST, path, body.to_string().into())).await
    }

    async fn whole(&self, method: Method, path: &str, body: Bytes) -> Result<Answer, Broken> {
        within(async {
            let mut stream = self.send(method, path, body).await?;
            let mut whole = Vec::new();
            while let Some(piece) = stream.next().await? {
                whole.extend_from_slice(&piece);
            }
            Ok(Answer { status: stream.status, headers: stream.headers.clone(), body: whole.into() })
        })
        .await
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Stream, Broken> {
        let connection = TcpStream::connect(&self.authority).await.map_err(Broken::before_body)?;
        connection.set_nodelay(true).map_err(Broken::before_body)?;
        let connection = match &self.tls {
            None => isotherm_tls::Stream::Plain(connection),
            Some((tls, name)) => tls.connect(connection, name).await.map_err(Broken::before_body)?,
        };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(connection)).await.map_err(Broken::before_body)?;
        let connection = tokio::spawn(async move {
            // An error shows where the response is read.
            let _ = connection.await;
        });
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(Broken::before_body)?;
        *request.headers_mut() = self.headers.clone();
        let headers = request.headers_mut();
        let authority = self.authority.parse().map_err(Broken::before_body)?;
        headers.entry("host").or_insert(authority);
        headers.entry("content-type").or_insert(http::HeaderValue::from_static("application/json"));
        let response: Response<Incoming> = sender.send_request(request).await.map_err(Broken::before_body)?;
        let (head, body) = response.into_parts();
        Ok(Stream { status: head.status, headers: head.headers, body, began: false, connection })
    }
}

impl Stream {
    /// The next piece of the body; `None` at its end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame
                .map_err(|error| Broken { after_body_began: self.began, cause: format!("{error} in the body") })?;
            if let Ok(piece) = frame.into_data()
                && !piece.is_empty()
            {
                self.began = true;
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    /// The rest of the body as text.
    pub async fn rest(mut self) -> Result<String, Broken> {
        within(async {
            let mut rest = Vec::new();
            while let Some(piece) = self.next().await? {
                rest.extend_from_slice(&piece);
            }
            Ok(String::from_utf8_lossy(&rest).into_owned())
        })
        .await
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of text")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// A header's value, empty when it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The instance that answered, as the router says.
    pub fn instance(&self) -> String {
        self.header("x-isotherm-instance").to_owned()
    }

    /// The same answer if its status is 200; panics with the body otherwise.
    #[must_use]
    pub fn ok(self) -> Answer {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text());
        self
    }

    /// (prompt tokens, cached tokens) as the engine counted them.
    pub fn usage(&self) -> (u64, u64) {
        let json = self.json();
        let usage = &json["usage"];
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("no such count: {json}"));
        (number(&usage["prompt_tokens"]), number(&usage["prompt_tokens_details"]["cached_tokens"]))
    }
}

impl Broken {
    fn before_body(cause: impl fmt::Display) -> Broken {
        Broken { after_body_began: false, cause: cause.to_string() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = if self.after_body_began { "after" } else { "before" };
        write!(formatter, "{} ({when} the first byte of the body)", self.cause)
    }
}

async fn within<T>(work: impl Future<Output = Result<T, Broken>>) -> Result<T, Broken> {
    tokio::time::timeout(WITHIN, work).await.unwrap_or_else(|_| Err(Broken::before_body("nothing for a minute")))
}
