//! The whole machine is traced: a process enters by its first ioctl of the KFD's, whoever started it and whatever its
//! runtime is called. No queue is made without one. When that ioctl ends the process is held, as at a mapping, until its
//! probes are in: it has submitted nothing by then. Who never uses the KFD is never stopped.

use aya_ebpf::{Global, helpers::bpf_get_current_pid_tgid, macros::map, maps::HashMap, programs::TracePointContext};
use tracer_common::{
    kfd,
    record::{LossSource, gate, hold_reason, task_op},
};

use crate::{
    ioctl::SYSCALL_ARGS,
    mapping,
    maps::{Current, TRACED, generation, is_open, lose},
    process,
};

/// The tracer's own process, where every other one is traced; 0: only those that are named. Without it the verifier takes
/// all of this out of the programs.
#[unsafe(no_mangle)]
static SYSTEM: Global<u32> = Global::new(0);

/// Threads in an ioctl by which their process entered.
#[map]
static ENTERING: HashMap<u64, u8> = HashMap::with_max_entries(4096, 0);

/// BPF_NOEXIST of include/uapi/linux/bpf.h.
const NOEXIST: u64 = 1;

/// Whether every process is to be traced.
#[inline(always)]
pub fn is_traced() -> bool {
    SYSTEM.load() != 0
}

/// At the entry of an ioctl of a process that is not traced: it is from now on, if it begins to use the KFD.
#[inline(always)]
pub fn enter(ctx: &TracePointContext) -> Option<Current> {
    if !is_traced() {
        return None;
    }
    // SAFETY: the tracepoint's record holds the command at this offset; see `ioctl.rs`.
    let cmd = unsafe { ctx.read_at::<u64>(SYSCALL_ARGS + 8) }.ok()? as u32;
    let tgid = (bpf_get_current_pid_tgid() >> 32) as u32;
    if !kfd::begins(cmd) || tgid == SYSTEM.load() || !is_open(gate::ADMITS) {
        return None;
    }
    let first = TRACED.insert(tgid, generation(), NOEXIST).is_ok();
    let Some(current) = Current::traced() else {
        lose(LossSource::TracedMap, 1);
        return None;
    };
    if ENTERING.insert(current.key(), 1, 0).is_err() {
        lose(LossSource::HoldRing, 1);
    }
    // Else another thread of it did so at the same time.
    if first {
        diagnose!("process {} enters by ioctl {:x}", tgid, cmd);
        process::emit(ctx, current, task_op::ENTERED, 0, u32::MAX);
    }
    Some(current)
}

/// At the end of an ioctl of a traced process.
#[inline(always)]
pub fn hold(current: Current) {
    if is_traced() && ENTERING.remove(current.key()).is_ok() && is_open(gate::ADMITS) {
        mapping::hold(current, hold_reason::ENTERED, 0, 0, LossSource::HoldRing);
    }
}

/// A thread ends, perhaps in that ioctl.
#[inline(always)]
pub fn forget(current: Current) {
    if is_traced() {
        let _ = ENTERING.remove(current.key());
    }
}
