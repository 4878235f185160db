//! Fork, exec and exit of traced processes.

use aya::EbpfLoader;

use super::{Prober, progress, tracefs};
use crate::{CaptureError, inventory::Probe};
use tracer_core::family::Family;

/// The offsets of the fields that the programs read, by this kernel's format files.
pub struct Layout {
    newtask_pid: u32,
    newtask_flags: u32,
    exit_group_dead: u32,
    progress: progress::Layout,
}

impl Layout {
    /// Reads the format files.
    ///
    /// # Errors
    /// Fails with [`CaptureError::NoEvent`] if an event or a field that every kernel has is absent.
    pub fn read() -> Result<Self, CaptureError> {
        let newtask = tracefs::Format::read("task", "task_newtask")?;
        Ok(Self {
            newtask_pid: newtask.require("pid", 4)?,
            newtask_flags: newtask.require("clone_flags", 8)?,
            // Only newer kernels have this field.
            exit_group_dead: tracefs::Format::read("sched", "sched_process_exit")?
                .offset("group_dead", 1)
                .unwrap_or(0),
            progress: progress::Layout::read(),
        })
    }

    /// Passes the layout to the programs.
    pub fn apply<'a>(&'a self, loader: &mut EbpfLoader<'a>, follow: &'a u8) {
        self.progress.apply(loader);
        loader
            .override_global("NEWTASK_PID", &self.newtask_pid, true)
            .override_global("NEWTASK_FLAGS", &self.newtask_flags, true)
            .override_global("EXIT_GROUP_DEAD", &self.exit_group_dead, true)
            .override_global("FOLLOW", follow, true);
    }
}

/// Attaches to the three events.
pub fn attach(prober: &mut Prober) -> Vec<Probe> {
    vec![
        prober.tracepoint("task_new", Family::Process, "task", "task_newtask"),
        prober.tracepoint("task_exec", Family::Process, "sched", "sched_process_exec"),
        prober.tracepoint("task_exit", Family::Process, "sched", "sched_process_exit"),
    ]
}
