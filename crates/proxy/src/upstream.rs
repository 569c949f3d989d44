//! Requests to instances: HTTP/1.1 over connections that stay with the thread that opened them.

mod body;
mod connect;
mod connection;
mod framing;
mod pool;
mod request_head;
mod response_head;

pub(crate) use body::ResponseBody;
pub(crate) use connect::{ConnectError, connect};
pub(crate) use connection::{BodyError, Connection, SendError};
pub(crate) use framing::{BrokenFraming, Framing, Piece};
pub(crate) use pool::{Home, Pool};
pub(crate) use request_head::{Outgoing, write_number};
