//! A small, safe face of the HSA runtime: what a dispatcher needs, nothing more.
//!
//! [`types`] and [`ffi`] say what the headers say; the other modules own what they create and release it when dropped.
//! Everything holds the [`Runtime`], so that it is shut down last.

pub mod agent;
pub mod direct;
pub mod executable;
pub mod ffi;
pub mod memory;
pub mod queue;
pub mod runtime;
pub mod signal;
pub mod types;

pub use agent::Agent;
pub use direct::Direct;
pub use memory::{Buffer, Pools};
pub use queue::{DoorbellOp, Queue, QueueKind};
pub use runtime::Runtime;
pub use signal::Signal;
