//! The state of a capture over HTTP: `/metrics` for Prometheus, `/` for a live page, `/api/live` for its data, and `/healthz`.
//!
//! A [`Board`] takes facts on the recorder's thread, and requests read it. On loopback the server answers without a password, if
//! the client calls it by an address or by one of its own names. On any other address it answers only with a token or with TLS
//! ([`Listen`]). The number of connections and the time that they may be silent are bounded ([`Limits`]).

mod access;
mod board;
mod connections;
mod expose;
mod hosts;
mod http;

pub use access::{Listen, ListenError, Tls, Token};
pub use board::Board;
pub use connections::Limits;
pub use expose::{CONTENT_TYPE, text};
pub use http::{ServeError, Server};
