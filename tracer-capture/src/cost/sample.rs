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
/// Defines the samples. A row has the instruction, its kind, and the code of a function that begins with it.
#[cfg(target_arch = "x86_64")]
macro_rules! samples {
    ($($instruction:ident: $kind:ident, [$($line:literal),+];)+) => {
        // Aligned, so that the cost does not depend on where the linker puts them.
        core::arch::global_asm!(
            ".pushsection .text.tracer_sample, \"ax\", @progbits",
            $(".balign 16", concat!("tracer_sample_", stringify!($instruction), ":"), $($line,)+)+
            ".popsection",
        );

        /// Returns all samples; none on an architecture other than x86-64.
        pub fn all() -> Vec<Sample> {
            // SAFETY: the code keeps to the ABI of functions without arguments and result.
            unsafe extern "C" {
                $(
                    #[link_name = concat!("tracer_sample_", stringify!($instruction))]
                    safe fn $instruction();
                )+
            }
            let sample = |instruction, kind, function| Sample { instruction, kind, function };
            vec![$(sample(stringify!($instruction), InstructionKind::$kind, $instruction)),+]
        }
    };
}

#[cfg(target_arch = "x86_64")]
samples! {
    nop: Nop, ["nop", "ret"];
    push: Push, ["push rbp", "pop rbp", "ret"];
    call: Call, ["call 2f", "ret", "2: ret"];
    jcc: Jcc, ["je 2f", "2: ret"];
    mov: Other, ["mov rax, rdi", "ret"];
    endbr64: Other, ["endbr64", "ret"];
}

/// Returns all samples; none on an architecture other than x86-64.
#[cfg(not(target_arch = "x86_64"))]
pub fn all() -> Vec<Sample> {
    Vec::new()
}
