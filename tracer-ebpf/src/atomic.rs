//! Atomic changes of words that programs on several processors share.
//!
//! The instructions exist since Linux 5.12. The compiler emits them only for a newer instruction set (`v3`), which would also
//! change every other program. So they are written as bytes (struct bpf_insn of include/uapi/linux/bpf.h): BPF_STX | BPF_ATOMIC |
//! BPF_DW, registers, no offset, and the operation.

use core::arch::asm;

/// Adds `n` and returns the previous value.
///
/// # Safety
/// `word` must be aligned and valid for reads and writes. While several programs may change it, all of them do so by functions of this
/// module; a program that has it to itself may also write it.
#[inline(always)]
pub unsafe fn add(word: *mut u64, mut n: u64) -> u64 {
    // SAFETY: the caller's promise; BPF_ADD | BPF_FETCH, word at r1, operand and result in r2.
    unsafe { asm!(".byte 0xdb, 0x21, 0, 0, 0x01, 0, 0, 0", in("r1") word, inout("r2") n) };
    n
}

/// Stores `new` if the word is `expected`, and returns the previous value.
///
/// # Safety
/// See [`add`].
#[inline(always)]
pub unsafe fn swap(word: *mut u64, expected: u64, new: u64) -> u64 {
    let mut found = expected;
    // SAFETY: the caller's promise; BPF_CMPXCHG, word at r1, new value in r2, expected and found in r0.
    unsafe { asm!(".byte 0xdb, 0x21, 0, 0, 0xf1, 0, 0, 0", in("r1") word, in("r2") new, inout("r0") found) };
    found
}

/// The number of attempts to raise a value that others raise at the same time. Each attempt that fails requires another program
/// that stores a value above the previous one and below the one being tried.
const TRIES: usize = 16;

/// Raises a word to at least `n`, unless other programs win each attempt.
///
/// # Safety
/// See [`add`].
#[inline(always)]
pub unsafe fn raise(word: *mut u64, n: u64) {
    for _ in 0..TRIES {
        // SAFETY: the caller's promise.
        let seen = unsafe { word.read_volatile() };
        if seen >= n {
            return;
        }
        // SAFETY: the caller's promise.
        if unsafe { swap(word, seen, n) } == seen {
            return;
        }
    }
}
