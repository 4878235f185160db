//! What goes on, over HTTP: `/metrics` for Prometheus, `/` a live page, `/api/live` its data, `/healthz`.
//!
//! A [`Board`] takes facts on the recorder's thread; requests read it. The server answers on loopback without a password;
//! on any other address only with a token or with TLS ([`Listen`]).

mod access;
mod board;
mod expose;
mod http;

pub use access::{Listen, ListenError, Tls, Token};
pub use board::Board;
pub use expose::{CONTENT_TYPE, text};
pub use http::{ServeError, Server};
