//! User stacks of threads that ring doorbells.
//!
//! Most programs have no frame pointers, so the kernel cannot walk their stacks. The program copies the registers and the top of the
//! stack, and user space unwinds them.

use aya_ebpf::{
    Global,
    bindings::pt_regs,
    macros::map,
    maps::{Array, RingBuf},
};
use core::ptr::addr_of_mut;
use tracer_common::record::{LossSource, STACK_LEN, STACK_PIECE, STACK_SMALL_PIECE, StackSample};

use crate::{
    maps::{Current, NO_WAKEUP, lose},
    user,
};

/// The maximum number of stacks per second; 0: none is taken, and the verifier removes the code.
#[unsafe(no_mangle)]
static STACK_LIMIT: Global<u32> = Global::new(0);

/// Samples. A buffer of their own, so that stacks never take the place of doorbells.
#[map]
static STACKS: RingBuf = RingBuf::with_byte_size(32 << 20, 0);

/// The second in which stacks are counted, and their number in it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Window {
    second: u64,
    taken: u64,
}

/// The window. Concurrent programs may lose a count: the limit is a bound of cost, and not exact.
#[map]
static STACK_WINDOW: Array<Window> = Array::with_max_entries(1, 0);

const SECOND_NS: u64 = 1_000_000_000;

/// Takes the stack of the current thread, which rings a doorbell at `time_ns`.
#[inline(always)]
pub fn take(regs: *const pt_regs, time_ns: u64) {
    if STACK_LIMIT.load() != 0 {
        sample(regs, time_ns);
    }
}

/// Takes the stack, or counts it. A function of its own, because the programs at doorbells have no room for more variables: old
/// kernels allow 512 bytes for a program and what it calls. The verifier does not follow its loops once per path of the caller, either.
#[inline(never)]
fn sample(regs: *const pt_regs, time_ns: u64) {
    let Some(current) = Current::traced() else {
        return;
    };
    if within(u64::from(STACK_LIMIT.load()), time_ns / SECOND_NS) {
        copy(current, regs, time_ns);
    } else {
        lose(LossSource::StackLimit, 1);
    }
}

/// Counts a stack. Returns whether it is within the limit.
#[inline(always)]
fn within(limit: u64, second: u64) -> bool {
    let Some(window) = STACK_WINDOW.get_ptr_mut(0) else {
        return false;
    };
    // SAFETY: a map value stays valid for the program's run; plain integers.
    unsafe {
        if (*window).second != second {
            (*window).second = second;
            (*window).taken = 0;
        }
        if (*window).taken >= limit {
            return false;
        }
        (*window).taken += 1;
    }
    true
}

/// Copies the stack.
#[inline(always)]
fn copy(current: Current, regs: *const pt_regs, time_ns: u64) {
    // SAFETY: fields of the program's context.
    let (ip, sp, bp) = unsafe { ((*regs).rip, (*regs).rsp, (*regs).rbp) };
    let Some(mut entry) = STACKS.reserve::<StackSample>(0) else {
        lose(LossSource::StackRing, 1);
        return;
    };
    let record = entry.as_mut_ptr();
    // SAFETY: a place within the reserved entry.
    let to: *mut u8 = unsafe { addr_of_mut!((*record).bytes).cast() };
    let len = pieces::<STACK_PIECE>(to, sp, 0, STACK_LEN / STACK_PIECE);
    // The rest of a piece that goes beyond the end of the stack.
    let len = pieces::<STACK_SMALL_PIECE>(to, sp, len, STACK_PIECE / STACK_SMALL_PIECE);
    // SAFETY: `record` is the reserved entry. Of `bytes` only the first `len` count.
    unsafe {
        addr_of_mut!((*record).header).write(current.header(0, 0, 0, time_ns));
        addr_of_mut!((*record).generation).write(current.generation);
        addr_of_mut!((*record).len).write(len as u32);
        addr_of_mut!((*record).ip).write(ip);
        addr_of_mut!((*record).sp).write(sp);
        addr_of_mut!((*record).bp).write(bp);
    }
    entry.submit(NO_WAKEUP);
}

/// Copies up to `most` pieces of the stack at `sp`, behind the `len` bytes that are in `to`, whose room is [`STACK_LEN`]. Returns the
/// bytes that are in it then: fewer if a piece cannot be read.
#[inline(always)]
fn pieces<const PIECE: usize>(to: *mut u8, sp: u64, mut len: usize, most: usize) -> usize {
    for _ in 0..most {
        if len > STACK_LEN - PIECE {
            break;
        }
        // SAFETY: there is room for a piece at `len`.
        if !unsafe { user::copy(to.add(len), PIECE as u32, sp.wrapping_add(len as u64)) } {
            break;
        }
        len += PIECE;
    }
    len
}
