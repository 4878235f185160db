//! Two programs for one event, of which one is attached.
//!
//! The kernel removes a raw program at once. When a program goes that perf runs, the kernel waits some 60 ms until no processor can be
//! inside, for one event after the other: that is most of the end of a recording. But since Linux 7 raw programs can be preempted, and
//! the kernel skips them meanwhile for every other thread on that processor, so these events are left to perf there. The two came with
//! the same release, so the kernel function that shows one shows the other (see [`super::second_programs`]).

use tracer_common::{offset::ABSENT, pause::TaskLayout};

use super::Prober;
use crate::inventory::Probe;
use tracer_core::family::Family;

/// The programs that have a raw one, with it.
const PROGRAMS: [[&str; 2]; 4] = [
    ["task_new", "task_new_raw"],
    ["task_exec", "task_exec_raw"],
    ["task_exit", "task_exit_raw"],
    ["progress_signal", "progress_signal_raw"],
];

/// Whether this kernel's events take raw programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw(bool);

impl Raw {
    /// Decides it. `preemptible`: whether the kernel may preempt raw programs. The programs read the kernel's structures.
    #[must_use]
    pub fn new(preemptible: bool, tasks: &TaskLayout) -> Self {
        Self(!preemptible && tasks.tgid != ABSENT)
    }

    /// Returns whether this is a program that will not be attached, because the other one of its event will.
    #[must_use]
    pub fn leaves_out(self, program: &str) -> bool {
        PROGRAMS.iter().any(|pair| pair[usize::from(!self.0)] == program)
    }

    /// Attaches the program of the event.
    pub fn attach(
        self,
        prober: &mut Prober,
        family: Family,
        program: &'static str,
        [group, event]: [&str; 2],
    ) -> Probe {
        let pair = PROGRAMS.iter().find(|[other, _]| *other == program);
        let program = pair.map_or(program, |pair| pair[usize::from(self.0)]);
        prober.tracepoint(program, family, group, event)
    }
}
