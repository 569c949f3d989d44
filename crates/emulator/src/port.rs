//! The listening socket of an emulator, which can be closed and opened again at its address.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Poll, Waker};

use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that the kernel keeps for us (uvicorn's default).
const BACKLOG: u32 = 2_048;

/// A listening socket, or the wish for one.
#[derive(Debug)]
pub(crate) struct Port {
    address: SocketAddr,
    listener: RefCell<Option<TcpListener>>,
    /// Who waits for a connection, to be told when the socket opens or closes.
    accepting: RefCell<Option<Waker>>,
}

impl Port {
    /// Listens on `address`; port 0 takes a free one.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = bind(address)?;
        let address = listener.local_addr()?;
        Ok(Self { address, listener: RefCell::new(Some(listener)), accepting: RefCell::new(None) })
    }

    /// The address bound.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn is_open(&self) -> bool {
        self.listener.borrow().is_some()
    }

    /// Refuses connections from now on; those accepted before stay.
    pub(crate) fn close(&self) {
        *self.listener.borrow_mut() = None;
    }

    /// Listens again at the same address, unless it does already.
    pub(crate) fn open(&self) -> io::Result<()> {
        if !self.is_open() {
            *self.listener.borrow_mut() = Some(bind(self.address)?);
            if let Some(waker) = self.accepting.borrow_mut().take() {
                waker.wake();
            }
        }
        Ok(())
    }

    /// The next connection; while the port is closed there is none.
    pub(crate) async fn accept(&self) -> io::Result<TcpStream> {
        poll_fn(|context| {
            let listener = self.listener.borrow();
            let Some(listener) = &*listener else {
                *self.accepting.borrow_mut() = Some(context.waker().clone());
                return Poll::Pending;
            };
            listener.poll_accept(context).map_ok(|(stream, _)| stream)
        })
        .await
    }
}

/// Binds with `SO_REUSEADDR`, so that a port freed a moment ago can be taken again.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
