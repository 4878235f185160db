//! Metrics for a collector of OpenTelemetry: OTLP over HTTP, as protobuf.
//!
//! A [`Pusher`] sends every metric at intervals from a thread of its own, and a last time at its end. [`request()`] makes the
//! message, of the types that OpenTelemetry publishes. [`Target`] says where to send it.
//!
//! The values are those of `/metrics`, under the same names. A value that is not known is not in the message. A collector that is
//! slow, gone or hostile costs the thread a bounded time, and nothing else: it only reads the values, and nobody waits for it.

mod client;
mod ended;
mod error;
mod file;
mod headers;
mod limits;
mod pusher;
mod request;
mod target;

pub use ended::Series;
pub use error::TargetError;
pub use headers::Headers;
pub use limits::Limits;
pub use pusher::{Counts, Pusher};
pub use request::{Origin, Times, request};
pub use target::Target;
