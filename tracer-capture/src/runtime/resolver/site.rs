//! Finds the place in a function where a uprobe is cheap, sees the arguments, and is hit once per call.
//!
//! The kernel executes a few kinds of instructions itself (`arch/x86/kernel/uprobes.c`, `branch_setup_xol_ops` and
//! `push_setup_xol_ops`). It single-steps the others, which costs 12 times as much in a virtual machine and 3 times on bare metal.
//! `endbr64`, the first instruction of most functions, is one of the others.

use serde::{Deserialize, Serialize};

use iced_x86::{Code, Instruction, InstructionInfoFactory, Register};

use super::code::{Body, Step};
use super::elf::Image;
use super::operands::written;

/// The kind of the instruction that a uprobe replaces, which determines the cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum InstructionKind {
    /// The one-byte `nop`; emulated.
    Nop,
    /// `push r64`; emulated.
    Push,
    /// A conditional jump; emulated.
    Jcc,
    /// A direct jump; emulated.
    Jmp,
    /// A direct call; emulated.
    Call,
    /// Any other instruction: the kernel single-steps it.
    #[strum(to_string = "single-stepped")]
    Other,
}

impl InstructionKind {
    /// Returns whether the kernel emulates the instruction.
    pub fn is_emulated(self) -> bool {
        self != Self::Other
    }

    /// Accepts only encodings without prefixes that the kernel refuses (0x66) or counts (REX on `push` must be exactly REX.B).
    pub(super) fn of(instruction: &Instruction) -> Self {
        match (instruction.code(), instruction.len()) {
            (Code::Nopd, 1) => Self::Nop,
            (Code::Push_r64, 1) => Self::Push,
            (Code::Push_r64, 2) if instruction.op0_register() >= Register::R8 => Self::Push,
            (_, 2) if instruction.is_jcc_short() => Self::Jcc,
            (_, 6) if instruction.is_jcc_near() => Self::Jcc,
            (_, 2) if instruction.is_jmp_short() => Self::Jmp,
            (_, 5) if instruction.is_jmp_near() => Self::Jmp,
            (Code::Call_rel32_64, 5) => Self::Call,
            _ => Self::Other,
        }
    }
}

/// An integer argument register of the System V x86-64 ABI (section 3.2.3), in passing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Argument {
    /// First: `this` in a method, the queue in the C API.
    Rdi,
    /// Second.
    Rsi,
    /// Third.
    Rdx,
    /// Fourth.
    Rcx,
    /// Fifth.
    R8,
    /// Sixth.
    R9,
    /// Not an argument: the stack pointer. It points to the return address; the arguments after the sixth follow.
    Rsp,
}

impl Argument {
    pub(super) fn register(self) -> Register {
        match self {
            Self::Rdi => Register::RDI,
            Self::Rsi => Register::RSI,
            Self::Rdx => Register::RDX,
            Self::Rcx => Register::RCX,
            Self::R8 => Register::R8,
            Self::R9 => Register::R9,
            Self::Rsp => Register::RSP,
        }
    }
}

/// The best place for a uprobe in a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionSite {
    /// Offset from the function's first byte.
    pub offset: u64,
    /// The instruction at this place.
    pub instruction: InstructionKind,
}

/// A place for a uprobe in the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProbePoint {
    /// Address of the function, as linked.
    pub function: u64,
    /// Address of the probed instruction, as linked.
    pub vaddr: u64,
    /// Offset of the probed instruction in the file, which perf and the kernel's uprobes need.
    pub file_offset: u64,
    /// The instruction at this place.
    pub instruction: InstructionKind,
}

/// Finds the best place for a uprobe in the function whose code starts with `code` and is loaded at `vaddr`.
///
/// The probe is hit exactly once per call, and the registers in `keep` still contain the arguments there. The place is the first
/// emulated instruction of the function's straight-line prefix, else the function's first instruction. `code` may be cut short, but
/// then only the loops inside it are known. Returns `None` if the first instruction cannot be decoded or is the target of a loop.
pub fn site_in_function(code: &[u8], vaddr: u64, keep: &[Argument]) -> Option<FunctionSite> {
    choose(&Body::decode(vaddr, code), keep, &[])
}

/// Largest number of instructions to examine. In the runtimes measured, the place is one of the first six instructions, or the
/// first of all. A malicious function may be as long as its file, and each instruction requires a check of every jump.
const MAX_PREFIX: usize = 64;

/// Like [`site_in_function`]. The place also precedes every instruction in `before`.
fn choose(body: &Body, keep: &[Argument], before: &[u64]) -> Option<FunctionSite> {
    let first = body.instructions.first()?;
    if body.is_jump_target(first.ip()) {
        return None;
    }
    let mut info = InstructionInfoFactory::new();
    for instruction in body.instructions.iter().take(MAX_PREFIX) {
        let kind = InstructionKind::of(instruction);
        if body.is_jump_target(instruction.ip()) || before.contains(&instruction.ip()) {
            break;
        }
        if kind.is_emulated() {
            return Some(FunctionSite {
                offset: instruction.ip().wrapping_sub(first.ip()),
                instruction: kind,
            });
        }
        let mut written = written(instruction, &mut info);
        let overwrites = written.any(|register| keep.iter().any(|argument| argument.register() == register));
        if Step::of(instruction) != Step::Next || overwrites {
            break;
        }
    }
    Some(FunctionSite {
        offset: 0,
        instruction: InstructionKind::of(first),
    })
}

/// Like [`choose`]. Returns the place in the library. The place is in the code that was read as that function, even if other
/// segments overlap it.
pub(super) fn probe_point(image: &Image<'_>, body: &Body, keep: &[Argument], before: &[u64]) -> Option<ProbePoint> {
    let FunctionSite { offset, instruction } = choose(body, keep, before)?;
    let function = body.range.start;
    Some(ProbePoint {
        function,
        vaddr: function.checked_add(offset)?,
        file_offset: image.code_offset(function)?.checked_add(offset)?,
        instruction,
    })
}
