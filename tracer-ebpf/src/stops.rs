//! Stops of paused processes by others. The kernel keeps one SIGSTOP for a process, whoever sent it: a user's that comes before the
//! process has taken the program's own falls together with it. So each one is noted as it is sent, in the entries of the
//! process, and whoever ends the pause leaves the process stopped.

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};
use tracer_common::pause::{ENTRIES, RESUMES, word};

use crate::{
    kernel,
    pause::{PAUSES, SIGSTOP, layout},
};

/// SIGCONT on x86-64.
const SIGCONT: u32 = 18;
/// Signals of the kernel itself come with this instead of an address (SEND_SIG_PRIV of include/linux/sched/signal.h): those
/// that programs send, and those of ptrace.
const FROM_KERNEL: u64 = 1;
/// TRACE_SIGNAL_ALREADY_PENDING of include/trace/events/signal.h.
const ALREADY_PENDING: u32 = 2;
/// `si_code` and `si_value` of a queued signal in `siginfo_t`, and the code SI_QUEUE (include/uapi/asm-generic/siginfo.h).
const CODE: u32 = 8;
const VALUE: u32 = 24;
const SI_QUEUE: i32 = -1;

/// Arguments: signal, `struct kernel_siginfo *`, `struct task_struct *` that gets it, whether it is for the process, result.
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
    // Its own, which is the first: nothing to note. A stop by ptrace is for one thread.
    if is_from_kernel && (signal == SIGCONT || !is_for_process || result != ALREADY_PENDING) {
        return 0;
    }
    if signal == SIGCONT && resumes(info) {
        return 0;
    }
    // SAFETY: any bytes are a valid number.
    let Some(tgid) = (unsafe { kernel::at::<u32>(ctx.arg(2), layout().tgid) }) else {
        return 0;
    };
    if is_from_kernel {
        note_own(tgid);
    } else {
        note(tgid, signal == SIGSTOP);
    }
    0
}

/// Whether it is the SIGCONT by which a tracer resumes a process.
#[inline(always)]
fn resumes(info: u64) -> bool {
    // SAFETY: any bytes are valid numbers.
    unsafe { kernel::at::<i32>(info, CODE) == Some(SI_QUEUE) && kernel::at::<u64>(info, VALUE) == Some(RESUMES) }
}

/// The entry's words, and its token, if it is of that process.
#[inline(always)]
fn entry(at: u32, tgid: u32) -> Option<(*mut u64, u64)> {
    let words = PAUSES.get_ptr_mut(at)?.cast::<u64>();
    // SAFETY: words of the entry, each of which is stored as a whole.
    let (thread, owner, sealed) = unsafe {
        (
            words.add(word::THREAD).read_volatile(),
            words.add(word::OWNER).read_volatile(),
            words.add(word::SEALED).read_volatile(),
        )
    };
    ((thread >> 32) as u32 == tgid && owner != 0 && owner == sealed).then_some((words, owner))
}

/// Somebody else has stopped the process, or resumed it.
#[inline(always)]
fn note(tgid: u32, is_stopped: bool) {
    for at in 1..ENTRIES {
        if let Some((words, token)) = entry(at, tgid) {
            // SAFETY: as above. A token that is another pause's by now says nothing there.
            unsafe {
                words
                    .add(word::STOPPED)
                    .write_volatile(if is_stopped { token } else { 0 });
            };
        }
    }
}

/// The program's own stop has met another one that the process had not taken: somebody else's, if no other thread of the
/// process is paused, or if that is known of another one already.
#[inline(always)]
fn note_own(tgid: u32) {
    let mut entries = 0_u32;
    let mut is_stopped = false;
    for at in 1..ENTRIES {
        if let Some((words, token)) = entry(at, tgid) {
            entries += 1;
            // SAFETY: as above.
            is_stopped |= unsafe { words.add(word::STOPPED).read_volatile() } == token;
        }
    }
    if entries == 1 || is_stopped {
        note(tgid, true);
    }
}
