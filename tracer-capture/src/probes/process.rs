//! Fork, exec and exit of traced processes.

use aya::EbpfLoader;

use super::{Prober, tracefs::Format};
use crate::{CaptureError, inventory::Probe};
use tracer_core::family::Family;

/// What the programs must know of the events, by this kernel's format files, with the programs' names for it.
pub struct Layout([(&'static str, u32); 3]);

impl Layout {
    /// Reads the format files.
    ///
    /// # Errors
    /// Fails with [`CaptureError::NoEvent`] if an event or a field that every kernel has is absent.
    pub fn read() -> Result<Self, CaptureError> {
        let newtask = Format::read("task", "task_newtask")?;
        let [pid, flags] = [newtask.require("pid", 4)?, newtask.require("clone_flags", 8)?];
        // Only newer kernels have this field. It is the event's second argument.
        let group_dead = Format::read("sched", "sched_process_exit")?.offset("group_dead", 1);
        Ok(Self([
            ("NEWTASK_PID", pid),
            ("NEWTASK_FLAGS", flags),
            ("EXIT_HAS_GROUP_DEAD", u32::from(group_dead.is_some())),
        ]))
    }

    /// Passes the layout to the programs.
    pub fn apply<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        for (name, value) in &self.0 {
            loader.override_global(name, value, true);
        }
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
