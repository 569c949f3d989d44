//! Talks to the admin plane of a running router.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use isotherm_control::AdminToken;
use isotherm_tls::{ClientFiles, ClientTls, ServerIdentity, Stream};
use serde_json::Value;
use tokio::net::TcpStream;

use crate::exit::Failure;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Which router to talk to.
#[derive(Debug, Clone, Args)]
pub(crate) struct AdminFlags {
    /// The router's admin plane
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8081", env = "ISOTHERM_ADMIN_URL")]
    pub(crate) admin: String,

    /// File with the admin token [default: where a router of the same user left it]
    #[arg(long, value_name = "FILE", env = "ISOTHERM_ADMIN_TOKEN_FILE")]
    token_file: Option<PathBuf>,

    /// Who has to have signed the admin plane's certificate, in PEM [default: this machine's authorities]
    #[arg(long, value_name = "FILE", env = "ISOTHERM_ADMIN_CA")]
    admin_ca: Option<PathBuf>,
}

impl AdminFlags {
    /// The router with this admin plane.
    pub(crate) fn new(admin: String, token_file: Option<PathBuf>, admin_ca: Option<PathBuf>) -> AdminFlags {
        AdminFlags { admin, token_file, admin_ca }
    }

    /// The same for another router. A token file that was given is that router's too.
    pub(crate) fn at(&self, url: &str) -> AdminFlags {
        AdminFlags { admin: url.to_owned(), ..self.clone() }
    }
}

/// A connection's worth of settings: host, port and token.
pub(crate) struct AdminClient {
    authority: String,
    /// TLS, and whom the router has to prove to be; `None` in the clear.
    tls: Option<(ClientTls, ServerIdentity)>,
    token: AdminToken,
}

impl AdminClient {
    pub(crate) fn new(flags: &AdminFlags) -> Result<AdminClient, Failure> {
        let wrong =
            |why: &str| Failure::Usage(format!("--admin {:?}: {why}; right: http://127.0.0.1:8081", flags.admin));
        let uri: hyper::Uri = flags.admin.parse().map_err(|_| wrong("not a URL"))?;
        let authority = uri.authority().ok_or_else(|| wrong("no host"))?;
        let (tls, default_port) = match uri.scheme_str() {
            None | Some("http") => (None, 80),
            Some("https") => {
                let host = authority.host().trim_start_matches('[').trim_end_matches(']');
                let identity = ServerIdentity::of(host).ok_or_else(|| wrong("no host"))?;
                let files = ClientFiles { ca: flags.admin_ca.clone(), ..ClientFiles::default() };
                let tls = ClientTls::read(files).map_err(|error| Failure::Usage(format!("--admin-ca: {error}")))?;
                (Some((tls, identity)), 443)
            }
            Some(_) => return Err(wrong("only http and https are spoken there")),
        };
        let port = authority.port_u16().unwrap_or(default_port);
        let path = flags.token_file.clone().unwrap_or_else(|| AdminToken::path(port));
        let token = AdminToken::read(&path).map_err(|error| {
            Failure::Running(format!("{error}\nIs a router running there under your user? Else give --token-file."))
        })?;
        Ok(AdminClient { authority: format!("{}:{port}", authority.host()), tls, token })
    }

    /// Sends one request with a JSON body, or none, and returns the answer's JSON; an error answer becomes a failure
    /// with its message.
    pub(crate) fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        self.send(method, path, body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string())))
    }

    /// The same with any body.
    pub(crate) fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Value, Failure> {
        let answer = self.exchanged(method, path, body)?;
        Ok(serde_json::from_slice(&answer).unwrap_or(Value::Null))
    }

    /// What stands at a path, whatever it is.
    pub(crate) fn get(&self, path: &str) -> Result<Bytes, Failure> {
        self.exchanged(Method::GET, path, Bytes::new())
    }

    fn exchanged(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::running("runtime", error))?;
        let called = runtime.block_on(async { tokio::time::timeout(TIMEOUT, self.exchange(method, path, body)).await });
        match called {
            Ok(Ok((status, answer))) if status.is_success() => Ok(answer),
            Ok(Ok((status, answer))) => {
                let answer: Value = serde_json::from_slice(&answer).unwrap_or(Value::Null);
                let message = answer.pointer("/error/message").and_then(Value::as_str).unwrap_or("no message");
                let text = format!("the router at {} answered {status}: {message}", self.authority);
                Err(if status.is_client_error() { Failure::Usage(text) } else { Failure::Running(text) })
            }
            Ok(Err(error)) => Err(Failure::Running(format!("the router's admin plane at {}: {error}", self.authority))),
            Err(_) => Err(Failure::Running(format!("the router's admin plane at {} does not answer", self.authority))),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(hyper::StatusCode, Bytes), Box<dyn std::error::Error>> {
        let tcp = TcpStream::connect(&self.authority).await?;
        let stream = match &self.tls {
            None => Stream::Plain(tcp),
            Some((tls, identity)) => tls.connect(tcp, identity).await?,
        };
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.authority)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token.reveal()))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }
}

/// Text as one segment of a path.
pub(crate) fn segment(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_id_becomes_one_segment_of_a_path() {
        assert_eq!(segment("http://10.0.0.1:8000"), "http%3A%2F%2F10.0.0.1%3A8000");
        assert_eq!(segment("AllTraffic-0"), "AllTraffic-0");
    }
}
