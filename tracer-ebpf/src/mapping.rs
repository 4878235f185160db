//! Executable mappings of traced processes: each is a library that may want probes, so the process stops until user
//! space has looked at it. The first dispatch can't come before its probe.

use aya_ebpf::{
    EbpfContext, Global,
    helpers::{bpf_ktime_get_ns, generated::bpf_get_attach_cookie, generated::bpf_send_signal},
    macros::{map, tracepoint, uprobe},
    maps::HashMap,
    programs::{ProbeContext, TracePointContext},
};
use tracer_common::record::{Hold, LossSource, hold_reason, kind};

use crate::{
    ioctl::SYSCALL_ARGS,
    maps::{Current, HOLDS, lose},
};

/// Whether processes are held at all.
#[unsafe(no_mangle)]
static HOLD: Global<u8> = Global::new(1);

/// PROT_EXEC of include/uapi/asm-generic/mman-common.h.
const PROT_EXEC: u64 = 4;
/// SIGSTOP on x86-64.
const SIGSTOP: u32 = 19;
/// Ring buffer flag: wake the reader.
const FORCE_WAKEUP: u64 = 2;

/// Executable file mappings under way, one a thread.
#[map]
static MAPPING: HashMap<u64, u8> = HashMap::with_max_entries(16 << 10, 0);

#[tracepoint]
pub fn mmap_enter(ctx: TracePointContext) -> u32 {
    enter(&ctx)
}

/// A twin, as those of ioctls.
#[tracepoint]
pub fn mmap_enter_twin(ctx: TracePointContext) -> u32 {
    enter(&ctx)
}

#[inline(always)]
fn enter(ctx: &TracePointContext) -> u32 {
    if let Some(current) = Current::traced() {
        // SAFETY: syscalls:sys_enter_mmap holds (addr, len, prot, flags, fd, off), 8 bytes each.
        let (prot, fd) = unsafe {
            (
                ctx.read_at::<u64>(SYSCALL_ARGS + 16),
                ctx.read_at::<u64>(SYSCALL_ARGS + 32),
            )
        };
        if let (Ok(prot), Ok(fd)) = (prot, fd)
            && prot & PROT_EXEC != 0
            && fd as i32 >= 0
            && MAPPING.insert(current.key(), 1, 0).is_err()
        {
            lose(LossSource::HoldRing, 1);
        }
    }
    0
}

#[tracepoint]
pub fn mmap_exit(ctx: TracePointContext) -> u32 {
    exit(&ctx)
}

/// A twin, as those of ioctls: the first one that runs holds the process.
#[tracepoint]
pub fn mmap_exit_twin(ctx: TracePointContext) -> u32 {
    exit(&ctx)
}

#[inline(always)]
fn exit(ctx: &TracePointContext) -> u32 {
    if let Some(current) = Current::traced()
        && MAPPING.remove(current.key()).is_ok()
    {
        // SAFETY: syscalls:sys_exit_mmap holds the result at this offset.
        let address = unsafe { ctx.read_at::<i64>(SYSCALL_ARGS) }.unwrap_or(-1);
        // Errors are -4095..=-1.
        if !(-4095..0).contains(&address) {
            hold(current, hold_reason::MAPPED, 0, address as u64, LossSource::HoldRing);
        }
    }
    0
}

/// Entry of `hsa_init`: the library is relocated and its API table filled. Attach cookie: the site's number.
#[uprobe]
pub fn runtime_init(ctx: ProbeContext) -> u32 {
    if let Some(current) = Current::traced() {
        // SAFETY: a helper without preconditions but a context, which this is.
        let cookie = unsafe { bpf_get_attach_cookie(ctx.as_ptr()) };
        hold(
            current,
            hold_reason::RUNTIME_INIT,
            cookie as u32,
            0,
            LossSource::HoldRing,
        );
    }
    0
}

/// Stops the process and tells user space, which lets it go on. The record is reserved first: a process that nobody
/// would hear of is not stopped, and `loss` counts it.
#[inline(always)]
pub fn hold(current: Current, reason: u16, site: u32, address: u64, loss: LossSource) {
    if HOLD.load() == 0 {
        return;
    }
    let Some(mut entry) = HOLDS.reserve::<Hold>(0) else {
        lose(loss, 1);
        return;
    };
    // SAFETY: helpers without preconditions.
    let (time_ns, stopped) = unsafe { (bpf_ktime_get_ns(), bpf_send_signal(SIGSTOP)) };
    if stopped != 0 {
        lose(LossSource::HoldFailed, 1);
    }
    diagnose!(
        "process {} is held, reason {}, result of its stop {}",
        current.tgid,
        reason,
        stopped
    );
    entry.write(Hold {
        header: current.header(kind::HOLD, reason, site, time_ns),
        address,
        stopped,
        generation: current.generation,
        pad: 0,
    });
    entry.submit(FORCE_WAKEUP);
}
