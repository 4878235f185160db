//! Stops of paused processes by other processes. The kernel keeps one SIGSTOP for a process, independent of its senders. A user's
//! SIGSTOP that arrives before the process has taken the program's own merges with it. So the programs note each one when it is
//! sent, in the entries of the process, and the recorder or guardian that ends the pause leaves the process stopped.

use core::ffi::c_void;

use aya_ebpf::{
    helpers::{bpf_get_current_pid_tgid, generated::bpf_loop},
    macros::raw_tracepoint,
    programs::RawTracePointContext,
};
use tracer_common::pause::{ENTRIES, header, word};

use crate::{
    kernel,
    pause::{PAUSES, SIGSTOP, layout},
};

/// SIGCONT on x86-64.
const SIGCONT: u32 = 18;
/// Signals of the kernel itself have this value instead of an address (SEND_SIG_PRIV of include/linux/sched/signal.h): signals that
/// eBPF programs send, and signals of ptrace.
const FROM_KERNEL: u64 = 1;
/// TRACE_SIGNAL_ALREADY_PENDING of include/trace/events/signal.h.
const ALREADY_PENDING: u32 = 2;
/// `si_code` and `si_value` of a queued signal in `siginfo_t`, and the code SI_QUEUE (include/uapi/asm-generic/siginfo.h).
const CODE: u32 = 8;
const VALUE: u32 = 24;
const SI_QUEUE: i32 = -1;

/// Arguments: signal, `struct kernel_siginfo *`, `struct task_struct *` of the receiver, whether the signal is for the process,
/// result.
#[raw_tracepoint]
pub fn stop_sent(ctx: RawTracePointContext) -> i32 {
    let signal = ctx.arg::<u64>(0) as u32;
    if signal != SIGSTOP && signal != SIGCONT {
        return 0;
    }
    let info: u64 = ctx.arg(1);
    let is_from_kernel = info == FROM_KERNEL;
    let is_for_process = ctx.arg::<u64>(3) as u32 != 0;
    let result = ctx.arg::<u64>(4) as u32;
    // The program's own stop, if it is the first: nothing to note. A stop by ptrace is for one thread.
    if is_from_kernel && (signal == SIGCONT || !is_for_process || result != ALREADY_PENDING) {
        return 0;
    }
    if signal == SIGCONT && is_own(info) {
        return 0;
    }
    // SAFETY: any bytes are a valid number.
    let Some(tgid) = (unsafe { kernel::at::<u32>(ctx.arg(2), layout().tgid) }) else {
        return 0;
    };
    if is_from_kernel {
        // The program's own stop has met another one that the process had not taken. It came from another process, if no other
        // thread of the process is paused, or if that is already known of another thread. With two tracers this is so for the later
        // one, and the first one resumes the process.
        let found = go_over(tgid, Note::Nothing);
        if found.is_sending != 0 && (found.entries == 1 || found.is_stopped != 0) {
            go_over(tgid, Note::Stopped);
        }
    } else {
        go_over(tgid, if signal == SIGSTOP { Note::Stopped } else { Note::GoesOn });
    }
    0
}

/// Returns whether this is the SIGCONT with which this recorder resumes a process.
#[inline(always)]
fn is_own(info: u64) -> bool {
    let Some(first) = PAUSES.get(0) else { return false };
    let own = first[header::RESUMES];
    // SAFETY: any bytes are valid numbers.
    unsafe { kernel::at::<i32>(info, CODE) == Some(SI_QUEUE) && kernel::at::<u64>(info, VALUE) == Some(own) }
}

/// What to note in entries.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Note {
    /// Nothing; the entries are only read.
    Nothing,
    /// Another process has stopped the process.
    Stopped,
    /// Another process has resumed it.
    GoesOn,
}

/// A search over the entries of a process.
#[repr(C)]
struct Search {
    tgid: u32,
    note: u32,
    /// The number of its entries.
    entries: u32,
    /// Whether one of them says that another process has stopped it.
    is_stopped: u32,
    /// Whether the program that pauses the current thread is about to stop it. Otherwise another tracer's program is.
    is_sending: u32,
}

#[inline(always)]
fn go_over(tgid: u32, note: Note) -> Search {
    let mut search = Search {
        tgid,
        note: note as u32,
        entries: 0,
        is_stopped: 0,
        is_sending: 0,
    };
    let context = (&raw mut search).cast();
    // SAFETY: the callback takes an index and the context, which outlives the call.
    unsafe { bpf_loop(ENTRIES - 1, look_at as *mut c_void, context, 0) };
    search
}

/// Examines the entry after the one with this index, because the first entry of the map is its header; a callback of `bpf_loop`.
#[inline(never)]
extern "C" fn look_at(index: u32, context: *mut c_void) -> i64 {
    // SAFETY: `go_over` passes it, and nothing else uses it during the call.
    let search = unsafe { &mut *context.cast::<Search>() };
    let Some(entry) = PAUSES.get_ptr_mut(index + 1) else {
        return 1;
    };
    let words = entry.cast::<u64>();
    // SAFETY: words of the entry, each of which is read and stored as a whole. If another pause has the entry by now, a token in it
    // means nothing.
    unsafe {
        let thread = words.add(word::THREAD).read_volatile();
        let owner = words.add(word::OWNER).read_volatile();
        let sealed = words.add(word::SEALED).read_volatile();
        if (thread >> 32) as u32 != search.tgid || owner == 0 || owner != sealed {
            return 0;
        }
        let stopped = words.add(word::STOPPED);
        search.entries += 1;
        search.is_stopped |= u32::from(stopped.read_volatile() == owner);
        let is_sent = words.add(word::SENT).read_volatile() == owner;
        search.is_sending |= u32::from(thread == bpf_get_current_pid_tgid() && !is_sent);
        if search.note == Note::Stopped as u32 {
            stopped.write_volatile(owner);
        } else if search.note == Note::GoesOn as u32 {
            stopped.write_volatile(0);
        }
    }
    0
}
