//! The server.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use axum_server::{
    Handle,
    tls_rustls::{RustlsAcceptor, RustlsConfig},
};
use hyper_util::rt::TokioTimer;
use thiserror::Error;

use crate::{
    access::{Gate, Listen},
    board::Board,
    connections::{Door, Peer},
    expose,
};

/// The live page. It loads no file or script from elsewhere.
const PAGE: &str = include_str!("page.html");
/// The content security policy of the page: it may use only its own content.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";
/// How long open requests may take when the server stops.
const GRACE: Duration = Duration::from_secs(2);

/// Why the server cannot run.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address is in use, or does not belong to this machine.
    #[error("cannot listen on {0}: {1}; choose another address with --listen ADDRESS:PORT")]
    Bind(SocketAddr, #[source] io::Error),
    /// The certificate or its key is invalid.
    #[error("cannot use the certificate {certificate} with the key {key}: {error}")]
    Tls {
        /// The file of the certificate.
        certificate: String,
        /// The file of the key.
        key: String,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The server ended.
    #[error("the server ended: {0}")]
    Ended(#[source] io::Error),
}

/// A server that is bound to its address.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    listen: Listen,
    handle: Handle<Peer>,
}

#[derive(Clone)]
struct Answering {
    board: Board,
    now: fn() -> u64,
}

impl Server {
    /// Binds to the address.
    ///
    /// # Errors
    /// Returns [`ServeError::Bind`].
    pub fn bind(listen: Listen) -> Result<Self, ServeError> {
        let bound = TcpListener::bind(listen.address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let (address, listener) = bound.map_err(|error| ServeError::Bind(listen.address, error))?;
        Ok(Self {
            listener,
            address,
            listen,
            handle: Handle::new(),
        })
    }

    /// Returns the URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.listen.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Returns the port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns a function that stops the server, from any thread. Open requests get a short time to finish.
    pub fn stopper(&self) -> impl Fn() + Send + Sync + 'static {
        let handle = self.handle.clone();
        move || handle.graceful_shutdown(Some(GRACE))
    }

    /// Answers requests until the server is stopped. `now` returns CLOCK_MONOTONIC in ns.
    ///
    /// # Errors
    /// Returns [`ServeError::Tls`] or [`ServeError::Ended`].
    pub async fn run(self, board: Board, now: fn() -> u64) -> Result<(), ServeError> {
        let limits = self.listen.limits;
        let service = router(Answering { board, now }, self.listen.gate).into_make_service();
        let door = Door::new(self.listener, limits).map_err(ServeError::Ended)?;
        let mut server = axum_server::Server::<Peer>::from_listener(door)
            .handle(self.handle)
            .http1_only();
        // Connections end whose request head is not complete in time.
        server
            .http_builder()
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head);
        let ended = match self.listen.tls {
            None => server.serve(service).await,
            Some(tls) => {
                // Another library in the process may have installed a provider before.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let config = RustlsConfig::from_pem_file(&tls.certificate, &tls.key).await;
                let config = config.map_err(|error| ServeError::Tls {
                    certificate: tls.certificate.display().to_string(),
                    key: tls.key.display().to_string(),
                    error,
                })?;
                server.acceptor(RustlsAcceptor::new(config)).serve(service).await
            }
        };
        ended.map_err(ServeError::Ended)
    }
}

fn router(answering: Answering, gate: Gate) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/metrics", get(metrics))
        .route("/api/live", get(live))
        .layer(middleware::from_fn_with_state(Arc::new(gate), admitted))
        // The health is not secret, and a client that asks for it has no token.
        .route("/healthz", get(health))
        .with_state(answering)
}

/// Refuses requests that the gate does not let in.
async fn admitted(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let given = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    match &*gate {
        Gate::Token(token) if !given.is_some_and(|given| token.is_in(given)) => {
            let wanted = [(header::WWW_AUTHENTICATE, "Bearer")];
            let why = "this request needs a token: Authorization: Bearer TOKEN\n";
            (StatusCode::UNAUTHORIZED, wanted, why).into_response()
        }
        Gate::Hosts(hosts) if !hosts.allow(headers) => {
            let why = "the Host header is neither an address nor localhost: name it by `tracer serve --host NAME`\n";
            (StatusCode::MISDIRECTED_REQUEST, why).into_response()
        }
        _ => next.run(request).await,
    }
}

async fn page() -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, PAGE)
}

async fn metrics(State(answering): State<Answering>) -> Response {
    match expose::text(answering.board.families()) {
        Ok(text) => ([(header::CONTENT_TYPE, expose::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn live(State(answering): State<Answering>) -> Response {
    match serde_json::to_vec(&answering.board.picture()) {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn health(State(answering): State<Answering>) -> Response {
    match answering.board.illness((answering.now)()) {
        None => "ok\n".into_response(),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}
