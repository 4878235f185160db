//! Last samples of queues: the trace events at which a process exits. The last sample at DESTROY_QUEUE belongs to the `ioctl`
//! family.

use super::{Prober, raw_programs::Raw, second_programs, tracefs::Format};
use crate::inventory::Probe;
use tracer_core::family::Family;

/// How the names of this file's programs begin.
pub const PROGRAMS: &str = "progress_";

/// Returns the offsets of the number and the handler of a signal in `signal:signal_deliver`; `None` if they are not known.
#[must_use]
pub fn signal_fields() -> Option<[u32; 2]> {
    let format = Format::read("signal", "signal_deliver").ok()?;
    Some([format.offset("sig", 4)?, format.offset("sa_handler", 8)?])
}

/// Attaches to the two ways in which processes exit. `exit`: the probe of exits, if its program sees the last thread: it takes the
/// samples then.
pub fn attach(prober: &mut Prober, second_programs: bool, raw: Raw, exit: Option<&Probe>) -> Vec<Probe> {
    if let Some(probe) = exit {
        return vec![Probe {
            family: Family::Progress,
            ..probe.clone()
        }];
    }
    let exit = [["progress_exit", "progress_exit_twin", "sys_enter_exit_group"]];
    let mut probes = second_programs::attach(prober, second_programs, Family::Progress, exit);
    let signal = ["signal", "signal_deliver"];
    probes.push(raw.attach(prober, Family::Progress, "progress_signal", signal));
    probes
}
