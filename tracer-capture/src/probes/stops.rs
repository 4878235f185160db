//! SIGSTOP and SIGCONT that other processes send to paused processes.

use super::Prober;
use crate::inventory::Probe;
use tracer_core::family::Family;

/// Attaches to the event of signals. The event's record lacks the sender's value, so the program takes the arguments.
pub fn attach(prober: &mut Prober) -> Vec<Probe> {
    vec![prober.tracepoint("stop_sent", Family::Stops, "signal", "signal_generate")]
}
