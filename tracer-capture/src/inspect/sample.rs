//! Functions of a few instructions, one for each kind of instruction that a uprobe may replace: the cost is measured on them.

use crate::runtime::resolver::InstructionKind;

/// A function without arguments and result.
pub type Function = extern "C" fn();

/// A function that begins with a certain instruction.
pub struct Sample {
    /// The instruction's name.
    pub instruction: &'static str,
    /// Its kind, by which probes are placed.
    pub kind: InstructionKind,
    /// The function.
    pub function: Function,
}

// The functions are assembly, because the first instruction of a compiled function is unknown. Each keeps to the System V ABI for
// x86-64: `push` and `call` leave the stack as it was, `mov` changes rax only, which a caller does not expect to be kept.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".pushsection .text.tracer_sample, \"ax\", @progbits",
    ".balign 16",
    "tracer_sample_nop: nop",
    "ret",
    ".balign 16",
    "tracer_sample_push: push rbp",
    "pop rbp",
    "ret",
    ".balign 16",
    "tracer_sample_call: call 2f",
    "ret",
    "2: ret",
    ".balign 16",
    "tracer_sample_jcc: je 2f",
    "2: ret",
    ".balign 16",
    "tracer_sample_mov: mov rax, rdi",
    "ret",
    ".balign 16",
    "tracer_sample_endbr64: endbr64",
    "ret",
    ".popsection",
);

#[cfg(target_arch = "x86_64")]
mod code {
    // SAFETY: defined above, without arguments and result.
    unsafe extern "C" {
        pub safe fn tracer_sample_nop();
        pub safe fn tracer_sample_push();
        pub safe fn tracer_sample_call();
        pub safe fn tracer_sample_jcc();
        pub safe fn tracer_sample_mov();
        pub safe fn tracer_sample_endbr64();
    }
}

/// Returns all samples; none on an architecture other than x86-64.
#[cfg(target_arch = "x86_64")]
pub fn all() -> Vec<Sample> {
    use InstructionKind::{Call, Jcc, Nop, Other, Push};
    let sample = |instruction, kind, function| Sample {
        instruction,
        kind,
        function,
    };
    vec![
        sample("nop", Nop, code::tracer_sample_nop),
        sample("push", Push, code::tracer_sample_push),
        sample("call", Call, code::tracer_sample_call),
        sample("jcc", Jcc, code::tracer_sample_jcc),
        sample("mov", Other, code::tracer_sample_mov),
        sample("endbr64", Other, code::tracer_sample_endbr64),
    ]
}

/// Returns all samples; none on an architecture other than x86-64.
#[cfg(not(target_arch = "x86_64"))]
pub fn all() -> Vec<Sample> {
    Vec::new()
}
