//! The record of a task: a process that began, ran a program, exited, or entered the trace.

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_get_current_comm, bpf_ktime_get_ns},
};
use tracer_common::record::{LossSource, Task, kind};

use crate::maps::{Current, EVENTS, NO_WAKEUP, lose};

/// Writes the record, at this moment.
#[inline(always)]
pub fn emit<C: EbpfContext>(_ctx: &C, current: Current, op: u16, child: u32, exit_code: u32) {
    // SAFETY: a helper without preconditions.
    let time_ns = unsafe { bpf_ktime_get_ns() };
    let comm = bpf_get_current_comm().unwrap_or([0; 16]);
    if let Some(mut entry) = EVENTS.reserve::<Task>(0) {
        entry.write(Task {
            header: current.header(kind::TASK, op, 0, time_ns),
            child,
            exit_code,
            comm,
        });
        entry.submit(NO_WAKEUP);
    } else {
        lose(LossSource::TaskRing, 1);
    }
}
