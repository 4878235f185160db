//! SIGSTOP and SIGCONT that others send to paused processes.

use super::Prober;
use crate::inventory::Probe;

/// Attaches the event of signals. Its record lacks the sender's value, so that the program takes the arguments.
pub fn attach(prober: &mut Prober) -> Vec<Probe> {
    vec![prober.raw_tracepoint("stop_sent", "stops", "signal", "signal_generate")]
}
