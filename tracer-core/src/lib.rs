//! What the tracer knows and how it concludes: events in, facts out.
//!
//! [`event`] is what capture sources observe, [`model`] the state machine that turns them into [`fact`]s, [`runs`] what
//! stands for facts that the disk can't take in time, [`summary`] what is counted over facts, [`live`] and [`metrics`] what
//! goes on now, [`verify`] what is judged over facts, [`claims`] what that says of what others wrote. Nothing here does I/O,
//! asks a clock or needs a privilege: what is true of a live process is true of a stored trace.

pub mod claims;
pub mod code_object;
pub mod event;
pub mod fact;
pub mod foreign;
pub mod live;
pub mod losses;
pub mod metrics;
pub mod model;
pub mod runs;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod summary;
pub mod verify;
pub mod words;
