//! A process begins to use the KFD by its first ioctl. No queue is made without one, whoever started the process and whatever
//! its runtime is called. When that ioctl ends the process is paused until its probes are in: it has submitted nothing by
//! then. A process that never uses the KFD is not paused.
//!
//! Where the whole machine is traced, a process becomes traced by that ioctl, too.

use aya_ebpf::{Global, helpers::bpf_get_current_pid_tgid, macros::map, maps::HashMap, programs::TracePointContext};
use tracer_common::{
    kfd,
    record::{LossSource, gate, hold_reason, task_op},
};

use crate::{
    ioctl::SYSCALL_ARGS,
    maps::{Current, TRACED, generation, is_open, lose},
    pause::{self, Pause},
    process,
};

/// The tracer's own process, where every other one is traced; 0: only those that are named. Without it the verifier takes
/// all of this out of the programs.
#[unsafe(no_mangle)]
static SYSTEM: Global<u32> = Global::new(0);

/// Traced processes that use the KFD. User space puts those in that it attaches to.
#[map]
static USERS: HashMap<u32, u8> = HashMap::with_max_entries(16 << 10, 0);

/// Threads in an ioctl by which their process began.
#[map]
static BEGINNING: HashMap<u64, u8> = HashMap::with_max_entries(4096, 0);

/// BPF_NOEXIST of include/uapi/linux/bpf.h.
const NOEXIST: u64 = 1;
/// ioctl on x86-64.
const NR_IOCTL: u32 = 16;

/// Whether every process is to be traced.
#[inline(always)]
pub fn is_system_wide() -> bool {
    SYSTEM.load() != 0
}

/// Whether a traced process has begun to use the KFD.
#[inline(always)]
pub fn is_user(current: Current) -> bool {
    // SAFETY: the entry is only asked for, not read.
    unsafe { USERS.get(current.tgid) }.is_some()
}

/// At the entry of an ioctl: the current thread, if its process is traced, or becomes traced by this ioctl.
#[inline(always)]
pub fn current(ctx: &TracePointContext) -> Option<Current> {
    // SAFETY: the tracepoint's record holds the command at this offset; see `ioctl.rs`.
    let cmd = unsafe { ctx.read_at::<u64>(SYSCALL_ARGS + 8) }.ok()? as u32;
    let begins = kfd::begins(cmd);
    let current = match Current::traced() {
        Some(current) => current,
        None if begins && is_system_wide() => admit(ctx, cmd)?,
        None => return None,
    };
    if begins && !is_user(current) {
        // Else another thread of it did so at the same time.
        let is_first = USERS.insert(current.tgid, 1, NOEXIST).is_ok();
        let is_full = !is_first && !is_user(current);
        if is_full || (is_first && BEGINNING.insert(current.key(), 1, 0).is_err()) {
            lose(LossSource::HoldRing, 1);
        }
    }
    Some(current)
}

/// A process that was not traced is traced from now on.
#[inline(always)]
fn admit(ctx: &TracePointContext, cmd: u32) -> Option<Current> {
    let tgid = (bpf_get_current_pid_tgid() >> 32) as u32;
    if tgid == SYSTEM.load() || !is_open(gate::ADMITS) {
        return None;
    }
    let first = TRACED.insert(tgid, generation(), NOEXIST).is_ok();
    let Some(current) = Current::traced() else {
        lose(LossSource::TracedMap, 1);
        return None;
    };
    // Else another thread of it did so at the same time.
    if first {
        diagnose!("process {} enters by ioctl {:x}", tgid, cmd);
        process::emit(ctx, current, task_op::ENTERED, 0, u32::MAX);
    }
    Some(current)
}

/// At the end of an ioctl of a traced process.
#[inline(always)]
pub fn ended(current: Current) {
    if BEGINNING.remove(current.key()).is_ok() {
        pause::pause(current, Pause::at_syscall(hold_reason::ENTERED, NR_IOCTL));
    }
}

/// A thread ends, perhaps in that ioctl.
#[inline(always)]
pub fn thread_exits(current: Current) {
    let _ = BEGINNING.remove(current.key());
}

/// A process ends, or runs another program from now on: that one has used nothing yet.
#[inline(always)]
pub fn forget(current: Current) {
    let _ = USERS.remove(current.tgid);
}
