//! Two programs for one event, of which one is attached.
//!
//! The kernel removes a raw program at once. When a program goes that perf runs, the kernel waits 30 to 75 ms until no processor can be
//! inside, for one event after the other: that is most of the end of a recording. But kernels since Linux 7 can preempt raw programs,
//! and skip them meanwhile for every other thread on that processor, so these events are left to perf there.

use tracer_common::{offset::ABSENT, pause::TaskLayout};

use super::Prober;
use crate::{inventory::Probe, kernel::btf::Btf};
use tracer_core::family::Family;

/// The programs that have a raw one, with it.
const PROGRAMS: [[&str; 2]; 4] = [
    ["task_new", "task_new_raw"],
    ["task_exec", "task_exec_raw"],
    ["task_exit", "task_exit_raw"],
    ["progress_signal", "progress_signal_raw"],
];

/// Returns whether the kernel runs raw programs with preemption enabled: whether it protects them by a sleepable RCU of tracepoints
/// (include/linux/tracepoint.h). Kernels up to 6.12 have that RCU for another purpose, and not yet this structure (6.13).
fn preempts_raw(btf: &Btf) -> bool {
    btf.has_structure("tracepoint_ext") && btf.has_variable("tracepoint_srcu_srcu_data")
}

/// Whether this kernel's events take raw programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw(bool);

impl Raw {
    /// Decides it. The programs read the kernel's structures, so a kernel without types has none of them. `preempts`: whether the
    /// kernel preempts programs of system calls.
    #[must_use]
    pub fn new(btf: Option<&Btf>, tasks: &TaskLayout, preempts: bool) -> Self {
        let is_safe = btf.is_some_and(|btf| !preempts_raw(btf));
        Self(is_safe && !preempts && tasks.tgid != ABSENT)
    }

    /// Returns the choice of another kernel.
    #[must_use]
    pub fn other(self) -> Self {
        Self(!self.0)
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
