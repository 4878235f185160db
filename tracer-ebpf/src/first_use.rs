//! The first ioctl by which a process begins to use the KFD. No queue is created without one, independent of the process's parent
//! and of the name of its runtime. When that ioctl ends, the process is paused until its probes are attached; it has submitted
//! nothing by then. A process that never uses the KFD is not paused.
//!
//! If the whole machine is traced, a process also becomes traced by that ioctl.

use aya_ebpf::{Global, helpers::bpf_get_current_pid_tgid, macros::map, maps::HashMap, programs::TracePointContext};
use tracer_common::{
    kfd,
    record::{LossSource, gate, hold_reason, task_op},
};

use crate::{
    kernel::SYSCALL_ARGS,
    maps::{Current, NO_EXIST, TRACED, generation, is_open, lose},
    pause::{self, Pause},
    task,
};

/// The recorder's own process, if tracer traces every other process; 0 if it traces only named processes. With 0, the verifier
/// removes all of this from the programs.
#[unsafe(no_mangle)]
static SYSTEM: Global<u32> = Global::new(0);

/// Traced processes that use the KFD. User space inserts the processes that it attaches to.
#[map]
static USERS: HashMap<u32, u8> = HashMap::with_max_entries(16 << 10, 0);

/// Threads in an ioctl by which their process began to use the KFD.
#[map]
static BEGINNING: HashMap<u64, u8> = HashMap::with_max_entries(4096, 0);

/// ioctl on x86-64.
const NR_IOCTL: u32 = 16;

/// Returns whether tracer traces every process.
#[inline(always)]
pub fn is_system_wide() -> bool {
    SYSTEM.load() != 0
}

/// Returns whether a traced process has begun to use the KFD.
#[inline(always)]
pub fn is_user(current: Current) -> bool {
    // SAFETY: the program only tests that the entry exists, and does not read it.
    unsafe { USERS.get(current.tgid) }.is_some()
}

/// Returns the current thread at the entry of an ioctl, if its process is traced, or becomes traced by this ioctl.
#[inline(always)]
pub fn current(ctx: &TracePointContext) -> Option<Current> {
    // SAFETY: the tracepoint's record has the command at this offset; see `ioctl.rs`.
    let cmd = unsafe { ctx.read_at::<u64>(SYSCALL_ARGS + 8) }.ok()? as u32;
    let begins = kfd::begins(cmd);
    let current = match Current::traced() {
        Some(current) => current,
        None if begins && is_system_wide() => admit(ctx, cmd)?,
        None => return None,
    };
    if begins && !is_user(current) {
        // Otherwise another thread of the process began at the same time.
        let is_first = USERS.insert(current.tgid, 1, NO_EXIST).is_ok();
        let is_full = !is_first && !is_user(current);
        if is_full || (is_first && BEGINNING.insert(current.key(), 1, 0).is_err()) {
            lose(LossSource::HoldRing, 1);
        }
    }
    Some(current)
}

/// Starts tracing a process that was not traced.
#[inline(always)]
fn admit(ctx: &TracePointContext, cmd: u32) -> Option<Current> {
    let tgid = (bpf_get_current_pid_tgid() >> 32) as u32;
    if tgid == SYSTEM.load() || !is_open(gate::ADMITS) {
        return None;
    }
    let first = TRACED.insert(tgid, generation(), NO_EXIST).is_ok();
    let Some(current) = Current::traced() else {
        lose(LossSource::TracedMap, 1);
        return None;
    };
    // Otherwise another thread of the process did so at the same time.
    if first {
        diagnose!("process {} enters by ioctl {:x}", tgid, cmd);
        task::emit(ctx, current, task_op::ENTERED, 0, u32::MAX);
    }
    Some(current)
}

/// Handles the end of an ioctl of a traced process.
#[inline(always)]
pub fn ended(current: Current) {
    if BEGINNING.remove(current.key()).is_ok() {
        pause::pause(current, Pause::at_syscall(hold_reason::ENTERED, NR_IOCTL));
    }
}

/// Handles the exit of a thread, which may be inside that ioctl.
#[inline(always)]
pub fn thread_exits(current: Current) {
    let _ = BEGINNING.remove(current.key());
}

/// Handles the exit of a process, or its exec of another program, which has used nothing yet.
#[inline(always)]
pub fn forget(current: Current) {
    let _ = USERS.remove(current.tgid);
}
