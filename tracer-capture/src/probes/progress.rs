//! Last samples of queues: the trace events at which a process exits. The last sample at DESTROY_QUEUE belongs to the `ioctl`
//! family.

use aya::EbpfLoader;

use super::{Prober, second_programs, tracefs};
use crate::inventory::Probe;
use tracer_core::family::Family;

/// The offsets of the fields of `signal:signal_deliver`; 0 if they are not known, and then no signal is examined.
#[derive(Default)]
pub struct Layout {
    number: u32,
    handler: u32,
}

impl Layout {
    /// Reads the format file.
    #[must_use]
    pub fn read() -> Self {
        let read = || {
            let format = tracefs::Format::read("signal", "signal_deliver").ok()?;
            Some(Self {
                number: format.offset("sig", 4)?,
                handler: format.offset("sa_handler", 8)?,
            })
        };
        read().unwrap_or_default()
    }

    /// Passes the layout to the programs.
    pub fn apply<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader
            .override_global("SIGNAL_NUMBER", &self.number, true)
            .override_global("SIGNAL_HANDLER", &self.handler, true);
    }
}

/// Attaches to the two ways in which processes exit.
pub fn attach(prober: &mut Prober, second_programs: bool) -> Vec<Probe> {
    let mut probes = second_programs::attach(
        prober,
        second_programs,
        Family::Progress,
        [["progress_exit", "progress_exit_twin", "sys_enter_exit_group"]],
    );
    probes.push(prober.tracepoint("progress_signal", Family::Progress, "signal", "signal_deliver"));
    probes
}
