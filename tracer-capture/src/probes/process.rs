//! Fork, exec and exit of traced processes.

use aya::EbpfLoader;

use super::{Prober, progress, raw_programs::Raw, tracefs::Format};
use crate::{CaptureError, inventory::Probe};
use tracer_core::family::Family;

const GROUP_DEAD: &str = "EXIT_GROUP_DEAD";

/// The offsets of the fields that the programs read, by this kernel's format files, with the programs' names for them.
pub struct Layout([(&'static str, u32); 5]);

impl Layout {
    /// Reads the format files.
    ///
    /// # Errors
    /// Fails with [`CaptureError::NoEvent`] if an event or a field that every kernel has is absent.
    pub fn read() -> Result<Self, CaptureError> {
        let newtask = Format::read("task", "task_newtask")?;
        let [pid, flags] = [newtask.require("pid", 4)?, newtask.require("clone_flags", 8)?];
        // Only newer kernels have this field.
        let group_dead = Format::read("sched", "sched_process_exit")?.offset("group_dead", 1);
        // The programs examine no signal if these are 0.
        let [number, handler] = progress::signal_fields().unwrap_or_default();
        Ok(Self([
            ("NEWTASK_PID", pid),
            ("NEWTASK_FLAGS", flags),
            (GROUP_DEAD, group_dead.unwrap_or(0)),
            ("SIGNAL_NUMBER", number),
            ("SIGNAL_HANDLER", handler),
        ]))
    }

    /// Returns whether the event of an exit names the last thread, and comes before the process's memory is gone: both since Linux 6.16.
    #[must_use]
    pub fn sees_last_thread(&self) -> bool {
        self.0.iter().any(|&(name, offset)| name == GROUP_DEAD && offset != 0)
    }

    /// Passes the layout to the programs.
    pub fn apply<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        for (name, offset) in &self.0 {
            loader.override_global(name, offset, true);
        }
    }
}

/// Attaches to the three events.
pub fn attach(prober: &mut Prober, raw: Raw) -> [Probe; 3] {
    [
        ("task_new", ["task", "task_newtask"]),
        ("task_exec", ["sched", "sched_process_exec"]),
        ("task_exit", ["sched", "sched_process_exit"]),
    ]
    .map(|(program, event)| raw.attach(prober, Family::Process, program, event))
}
