//! The traced processes: forks add to them, exits remove them.

use aya_ebpf::{Global, macros::tracepoint, programs::TracePointContext};
use tracer_common::record::{LossSource, task_op};

use crate::{
    api, first_use, ioctl,
    maps::{Current, TRACED, begin_epoch, generation, lose},
    task,
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

/// Offset of `group_dead` in sched:sched_process_exit; 0 on kernels without it.
#[unsafe(no_mangle)]
static EXIT_GROUP_DEAD: Global<u32> = Global::new(0);

/// CLONE_THREAD of include/uapi/linux/sched.h.
const CLONE_THREAD: u64 = 0x1_0000;

/// task:task_newtask, in the parent's context, before the child process runs.
#[tracepoint]
pub fn task_new(ctx: TracePointContext) -> u32 {
    // If tracer traces the whole machine, each process becomes traced by itself. Child processes of processes that use GPUs are
    // left alone until then.
    if first_use::is_system_wide() {
        return 0;
    }
    if let Some(current) = Current::traced() {
        // SAFETY: the offsets are those of the event's format file.
        let fields = unsafe {
            (
                ctx.read_at::<u32>(NEWTASK_PID.load() as usize),
                ctx.read_at::<u64>(NEWTASK_FLAGS.load() as usize),
            )
        };
        if let (Ok(child), Ok(flags)) = fields
            && flags & CLONE_THREAD == 0
        {
            if FOLLOW.load() != 0 && TRACED.insert(child, generation(), 0).is_err() {
                lose(LossSource::TracedMap, 1);
            }
            diagnose!(
                "process {} made process {}, traced: {}",
                current.tgid,
                child,
                FOLLOW.load()
            );
            task::emit(&ctx, current, task_op::FORK, child, u32::MAX);
        }
    }
    0
}

/// sched:sched_process_exec. The queues of the process's former program no longer exist.
#[tracepoint]
pub fn task_exec(ctx: TracePointContext) -> u32 {
    if let Some(current) = Current::traced() {
        let _ = TRACED.insert(current.tgid, generation(), 0);
        begin_epoch();
        first_use::forget(current);
        api::leave(current);
        task::emit(&ctx, current, task_op::EXEC, 0, u32::MAX);
    }
    0
}

/// sched:sched_process_exit, for every thread.
#[tracepoint]
pub fn task_exit(ctx: TracePointContext) -> u32 {
    if let Some(current) = Current::traced() {
        ioctl::leave(current, None);
        first_use::thread_exits(current);
        api::leave(current);
        let offset = EXIT_GROUP_DEAD.load() as usize;
        let last = if offset == 0 {
            // The best information on older kernels: the first thread usually exits last.
            current.tgid == current.tid
        } else {
            // SAFETY: the offset is that of the event's format file.
            unsafe { ctx.read_at::<u8>(offset) }.unwrap_or(0) != 0
        };
        if last {
            diagnose!("process {} ended", current.tgid);
            task::emit(&ctx, current, task_op::EXIT, 0, u32::MAX);
            let _ = TRACED.remove(current.tgid);
            begin_epoch();
            first_use::forget(current);
        }
    }
    0
}
