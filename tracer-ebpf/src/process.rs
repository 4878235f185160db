//! The traced processes: forks add to them, exits remove them.
//!
//! Each event has two programs, of which one is attached: a raw one, which the kernel removes at once, or one that perf runs, which
//! the kernel does not skip on Linux 7 (tracer-capture, `raw_programs.rs`).

use aya_ebpf::{
    EbpfContext, Global,
    macros::{raw_tracepoint, tracepoint},
    programs::{RawTracePointContext, TracePointContext},
};
use tracer_common::record::{LossSource, task_op};

use crate::{
    api, first_use, ioctl, kernel,
    maps::{Current, TRACED, begin_epoch, generation, lose},
    pause::layout,
    progress, task,
};

/// Whether child processes of traced processes are traced too.
#[unsafe(no_mangle)]
static FOLLOW: Global<u8> = Global::new(1);

/// Offset of `pid` in task:task_newtask.
#[unsafe(no_mangle)]
static NEWTASK_PID: Global<u32> = Global::new(8);

/// Offset of `clone_flags` in task:task_newtask.
#[unsafe(no_mangle)]
static NEWTASK_FLAGS: Global<u32> = Global::new(32);

/// Offset of `group_dead` in sched:sched_process_exit; 0 on kernels without it. With it came that the event is before the exiting
/// thread lets go of the process's memory (Linux 6.16, kernel/exit.c).
#[unsafe(no_mangle)]
static EXIT_GROUP_DEAD: Global<u32> = Global::new(0);

/// CLONE_THREAD of include/uapi/linux/sched.h.
const CLONE_THREAD: u64 = 0x1_0000;

/// task:task_newtask, in the parent's context, before the child process runs.
#[tracepoint]
pub fn task_new(ctx: TracePointContext) -> u32 {
    // SAFETY: the offsets are those of the event's format file.
    let fields = unsafe {
        (
            ctx.read_at::<u32>(NEWTASK_PID.load() as usize),
            ctx.read_at::<u64>(NEWTASK_FLAGS.load() as usize),
        )
    };
    if let (Ok(child), Ok(flags)) = fields {
        begins(&ctx, child, flags);
    }
    0
}

/// The same, of the event's arguments: `struct task_struct *`, flags. The task is that of the child process, whose id is that of its
/// first thread.
#[raw_tracepoint]
pub fn task_new_raw(ctx: RawTracePointContext) -> i32 {
    // SAFETY: any bytes are a valid number.
    if let Some(child) = unsafe { kernel::at::<u32>(ctx.arg(0), layout().tgid) } {
        begins(&ctx, child, ctx.arg(1));
    }
    0
}

#[inline(always)]
fn begins<C: EbpfContext>(ctx: &C, child: u32, flags: u64) {
    // If tracer traces the whole machine, each process becomes traced by itself. Child processes of processes that use GPUs are
    // left alone until then.
    if flags & CLONE_THREAD != 0 || first_use::is_system_wide() {
        return;
    }
    if let Some(current) = Current::traced() {
        if FOLLOW.load() != 0 && TRACED.insert(child, generation(), 0).is_err() {
            lose(LossSource::TracedMap, 1);
        }
        diagnose!(
            "process {} made process {}, traced: {}",
            current.tgid,
            child,
            FOLLOW.load()
        );
        task::emit(ctx, current, task_op::FORK, child, u32::MAX);
    }
}

/// sched:sched_process_exec. The queues of the process's former program no longer exist.
#[tracepoint]
pub fn task_exec(ctx: TracePointContext) -> u32 {
    runs_another_program(&ctx);
    0
}

/// The same, raw.
#[raw_tracepoint]
pub fn task_exec_raw(ctx: RawTracePointContext) -> i32 {
    runs_another_program(&ctx);
    0
}

#[inline(always)]
fn runs_another_program<C: EbpfContext>(ctx: &C) {
    if let Some(current) = Current::traced() {
        let _ = TRACED.insert(current.tgid, generation(), 0);
        begin_epoch();
        first_use::forget(current);
        api::leave(current);
        task::emit(ctx, current, task_op::EXEC, 0, u32::MAX);
    }
}

/// sched:sched_process_exit, for every thread.
#[tracepoint]
pub fn task_exit(ctx: TracePointContext) -> u32 {
    if let Some(current) = Current::traced() {
        let offset = EXIT_GROUP_DEAD.load() as usize;
        // SAFETY: the offset is that of the event's format file.
        let last = (offset != 0).then(|| unsafe { ctx.read_at::<u8>(offset) }.unwrap_or(0) != 0);
        exits(&ctx, current, last);
    }
    0
}

/// The same, of the event's arguments: `struct task_struct *`, and whether it is the last thread where the event has that, too.
#[raw_tracepoint]
pub fn task_exit_raw(ctx: RawTracePointContext) -> i32 {
    if let Some(current) = Current::traced() {
        let last = (EXIT_GROUP_DEAD.load() != 0).then(|| ctx.arg::<u64>(1) as u8 != 0);
        exits(&ctx, current, last);
    }
    0
}

/// A thread exits. `last`: whether it is the last one of its process, if that is known.
#[inline(always)]
fn exits<C: EbpfContext>(ctx: &C, current: Current, last: Option<bool>) {
    ioctl::leave(current, None);
    first_use::thread_exits(current);
    api::leave(current);
    if last == Some(true) {
        progress::ending();
    }
    // The best information on older kernels: the first thread usually exits last.
    if last.unwrap_or(current.tgid == current.tid) {
        diagnose!("process {} ended", current.tgid);
        task::emit(ctx, current, task_op::EXIT, 0, u32::MAX);
        let _ = TRACED.remove(current.tgid);
        begin_epoch();
        first_use::forget(current);
    }
}
