//! A small, safe interface to the HSA runtime, limited to what a dispatcher needs.
//!
//! [`types`] and [`ffi`] repeat the declarations of the headers; the other modules own what they create and release it when
//! dropped. Every object holds the [`Runtime`], so that the runtime is shut down last.

pub mod agent;
pub mod direct;
pub mod executable;
pub mod ffi;
pub mod memory;
pub mod queue;
pub mod runtime;
pub mod share;
pub mod signal;
pub mod types;

pub use agent::Agent;
pub use direct::Direct;
pub use memory::{Buffer, Pools};
pub use queue::{DoorbellOp, Queue, QueueKind};
pub use runtime::Runtime;
pub use signal::Signal;
