//! A listener that bounds the number of its connections and the time that they may be silent.
//!
//! Connections take file descriptors that capture needs for its probes, and any process on the machine can open connections. So at
//! most [`Limits::connections`] are open at once: when the last place is taken, the oldest connection is closed. Further clients
//! wait in the kernel's queue, where they take no descriptor. A client that sends nothing for [`Limits::silence`] is disconnected,
//! also while it does not read its answer.

use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum_server::{AddrListener, Address};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::{Instant, Sleep, sleep},
};

/// The limits on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections at once; at least 2.
    pub connections: usize,
    /// Maximum time from the start of a connection, or from the end of an answer, to the last byte of the next request's head.
    pub head: Duration,
    /// Maximum time from the client's last byte to the end of the connection.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            head: Duration::from_secs(10),
            silence: Duration::from_secs(20),
        }
    }
}

/// A client, whose address nobody needs. The type says that the listener is a [`Door`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer;

impl Address for Peer {
    type Stream = Connection;
    type Listener = Door;
}

/// The listener.
pub(crate) struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    open: Arc<Open>,
    silence: Duration,
    next: AtomicU64,
}

/// Open connections in the order in which they began. Dropping a sender closes its connection.
#[derive(Default)]
struct Open(Mutex<BTreeMap<u64, oneshot::Sender<()>>>);

impl Open {
    /// Locks the map, also after a panic in another thread: it is plain data.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, oneshot::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Door {
    pub(crate) fn new(listener: std::net::TcpListener, limits: Limits) -> io::Result<Self> {
        Ok(Self {
            listener: TcpListener::from_std(listener)?,
            places: Arc::new(Semaphore::new(limits.connections.max(2))),
            open: Arc::default(),
            silence: limits.silence,
            next: AtomicU64::new(0),
        })
    }
}

impl AddrListener<Connection, Peer> for Door {
    /// Not used: a server gets a listener that is bound already.
    async fn bind_to(_: Peer) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn accept_stream(&self) -> io::Result<(Connection, Peer)> {
        let place = match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => {
                drop(self.open.lock().pop_first());
                let freed = Arc::clone(&self.places).acquire_owned().await;
                freed.map_err(io::Error::other)?
            }
        };
        let (stream, _) = self.listener.accept().await?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (close, closed) = oneshot::channel();
        self.open.lock().insert(id, close);
        let connection = Connection {
            stream,
            id,
            open: Arc::clone(&self.open),
            closed,
            over: false,
            silence: self.silence,
            deadline: Box::pin(sleep(self.silence)),
            _place: place,
        };
        Ok((connection, Peer))
    }

    fn get_local_addr(&self) -> io::Result<Peer> {
        self.listener.local_addr().map(|_| Peer)
    }
}

/// A connection that ends when its client is silent, or when another connection needs its place.
pub(crate) struct Connection {
    stream: TcpStream,
    id: u64,
    open: Arc<Open>,
    closed: oneshot::Receiver<()>,
    /// Whether the connection has ended: the receiver must not be polled again.
    over: bool,
    silence: Duration,
    deadline: Pin<Box<Sleep>>,
    /// Freed last, together with the descriptor.
    _place: OwnedSemaphorePermit,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.open.lock().remove(&self.id);
    }
}

impl Connection {
    /// Returns an error once the connection has to end. Before that, it registers the task to be woken at that time.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.over = self.over
            || Pin::new(&mut self.closed).poll(context).is_ready()
            || self.deadline.as_mut().poll(context).is_ready();
        if self.over {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            let end = Instant::now() + self.silence;
            self.deadline.as_mut().reset(end);
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
