//! Samples of completion signals.

use tracer_common::record::SignalState;

use super::Origin;

/// Contents of a completion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The signal's process, and the time before the read.
    pub origin: Origin,
    /// Time after the read.
    pub after_ns: u64,
    /// The contents. The value is read first.
    pub state: SignalState,
}
