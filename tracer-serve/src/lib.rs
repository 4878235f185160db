//! What goes on, over HTTP: `/metrics` for Prometheus, `/` a live page, `/api/live` its data, `/healthz`.
//!
//! A [`Board`] takes facts on the recorder's thread; requests read it. The server answers on loopback without a password,
//! to those who call it by an address or a name of its own; on any other address only with a token or with TLS ([`Listen`]).
//! Connections are bounded in number and in silence ([`Limits`]).

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
