//! A TCP proxy in the test's own process that does to a server's answers what bad networks and dying processes do.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What happens to the bytes of each answer. Positions are counted in bytes, from the last byte of its request on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Every piece comes that much later.
    Delay(Duration),
    /// It arrives in pieces of that many bytes, each in a packet of its own.
    Slice(usize),
    /// The connection ends there, in order.
    Truncate(u64),
    /// The connection is reset there.
    Reset(u64),
    /// Nothing comes from there on, and the connection stays.
    Stall(u64),
    /// The lowest bit of that byte is flipped.
    Corrupt(u64),
}

/// Stands before one server.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    upstream: String,
    fault: Mutex<Fault>,
    /// Bytes of answers that it was handed, whatever became of them.
    taken: AtomicU64,
}

impl FaultProxy {
    /// Before the server at `http://HOST:PORT`, without a fault.
    pub async fn before(url: &str) -> FaultProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let upstream = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let shared = Arc::new(Shared { upstream, fault: Mutex::new(Fault::None), taken: AtomicU64::new(0) });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        FaultProxy { address, shared, accepting }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From the next piece of any answer on.
    pub fn set(&self, fault: Fault) {
        *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// How many bytes of answers the server has got rid of.
    pub fn taken(&self) -> u64 {
        self.shared.taken.load(Ordering::Relaxed)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn fault(&self) -> Fault {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            // A server that is gone: the client's connection ends, too.
            if let Ok(server) = TcpStream::connect(&shared.upstream).await {
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                serve(client, server, &shared).await;
            }
        });
    }
}

async fn serve(client: TcpStream, server: TcpStream, shared: &Shared) {
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let at = AtomicU64::new(0);
    tokio::select! {
        () = requests(client_reads, server_writes, &at) => {}
        () = answers(server_reads, client_writes, &at, shared) => {}
    }
}

/// Passes requests on as they are; behind each, counting begins anew.
async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, at: &AtomicU64) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        at.store(0, Ordering::Relaxed);
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, at: &AtomicU64, shared: &Shared) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        shared.taken.fetch_add(length as u64, Ordering::Relaxed);
        let begins = at.fetch_add(length as u64, Ordering::Relaxed);
        let piece = &mut buffer[..length];
        // How much of the piece stands before a position; `None` when all of it does.
        let before = |position: u64| {
            let before = position.saturating_sub(begins);
            usize::try_from(before).ok().filter(|&before| before < length)
        };
        let passed = match shared.fault() {
            Fault::None => to.write_all(piece).await,
            Fault::Delay(delay) => {
                tokio::time::sleep(delay).await;
                to.write_all(piece).await
            }
            Fault::Slice(size) => in_slices(&mut to, piece, size.max(1)).await,
            Fault::Truncate(position) => match before(position) {
                Some(before) => {
                    let _ = to.write_all(&piece[..before]).await;
                    return;
                }
                None => to.write_all(piece).await,
            },
            Fault::Reset(position) => match before(position) {
                Some(before) => {
                    let _ = to.write_all(&piece[..before]).await;
                    let _ = to.as_ref().set_zero_linger();
                    return;
                }
                None => to.write_all(piece).await,
            },
            Fault::Stall(position) => match before(position) {
                Some(before) => {
                    let _ = to.write_all(&piece[..before]).await;
                    std::future::pending().await
                }
                None => to.write_all(piece).await,
            },
            Fault::Corrupt(position) => {
                if let (Some(index), true) = (before(position), position >= begins) {
                    piece[index] ^= 1;
                }
                to.write_all(piece).await
            }
        };
        if passed.is_err() {
            return;
        }
    }
}

async fn in_slices(to: &mut OwnedWriteHalf, piece: &[u8], size: usize) -> std::io::Result<()> {
    for slice in piece.chunks(size) {
        to.write_all(slice).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Fault, FaultProxy};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// What a client gets of ten bytes behind a fault: the bytes, and whether the connection ended.
    async fn through(fault: Fault) -> (Vec<u8>, bool) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = FaultProxy::before(&format!("http://{}", listener.local_addr().unwrap())).await;
        proxy.set(fault);
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 1];
            stream.read_exact(&mut asked).await.unwrap();
            stream.write_all(b"0123456789").await.unwrap();
            std::future::pending::<()>().await;
        });
        let mut client = TcpStream::connect(proxy.url().trim_start_matches("http://")).await.unwrap();
        client.write_all(b"?").await.unwrap();
        let mut read = Vec::new();
        let ended = loop {
            match tokio::time::timeout(Duration::from_millis(200), client.read_buf(&mut read)).await {
                Ok(Ok(0) | Err(_)) => break true,
                Ok(Ok(_)) => {}
                Err(_) => break false,
            }
        };
        serving.abort();
        (read, ended)
    }

    #[tokio::test]
    async fn each_fault_does_what_it_says() {
        for (fault, expected, ends) in [
            (Fault::None, "0123456789", false),
            (Fault::Delay(Duration::from_millis(10)), "0123456789", false),
            (Fault::Slice(3), "0123456789", false),
            (Fault::Truncate(4), "0123", true),
            (Fault::Stall(4), "0123", false),
            (Fault::Corrupt(4), "0123556789", false),
        ] {
            let (read, ended) = through(fault).await;
            assert_eq!((String::from_utf8_lossy(&read).as_ref(), ended), (expected, ends), "{fault:?}");
        }
        // A reset may overtake what came before.
        assert!(through(Fault::Reset(4)).await.1);
    }
}
