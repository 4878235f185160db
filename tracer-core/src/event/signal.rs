//! Looks at completion signals.

use tracer_common::record::SignalState;

use super::Origin;

/// What a completion signal held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Its process; the time before the read.
    pub origin: Origin,
    /// The time after it.
    pub after_ns: u64,
    /// What was read, the value first.
    pub state: SignalState,
}
