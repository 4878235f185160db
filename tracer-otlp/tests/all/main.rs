//! The tests of the crate, in one program.

mod collector;
mod headers;
mod message;
mod push;
mod tls;
