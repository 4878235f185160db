//! Functions of this binary that stand for those that ring doorbells.

/// A function that a producer calls with the runtime's object and a value.
pub type Function = extern "C" fn(*const u64, u64);

// One function for each probe. They begin as the functions of ROCr do: with `push`, which the kernel emulates. They are global,
// because a release build may put the assembly and its users into different objects.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".pushsection .text.tracer_doorbell, \"ax\", @progbits",
    ".irp name, alone, empty, doorbell, reserve",
    ".balign 64",
    ".globl tracer_doorbell_\\name",
    ".hidden tracer_doorbell_\\name",
    "tracer_doorbell_\\name:",
    "push rbp",
    "pop rbp",
    "ret",
    ".endr",
    ".popsection",
);

/// The functions: without a probe, and one for each program.
pub struct Functions {
    pub alone: Function,
    pub empty: Function,
    pub doorbell: Function,
    pub reserve: Function,
}

/// Returns the functions; `None` on an architecture other than x86-64.
#[cfg(target_arch = "x86_64")]
pub fn functions() -> Option<Functions> {
    // SAFETY: the code keeps to the ABI, and uses no argument.
    unsafe extern "C" {
        safe fn tracer_doorbell_alone(this: *const u64, value: u64);
        safe fn tracer_doorbell_empty(this: *const u64, value: u64);
        safe fn tracer_doorbell_doorbell(this: *const u64, value: u64);
        safe fn tracer_doorbell_reserve(this: *const u64, value: u64);
    }
    Some(Functions {
        alone: tracer_doorbell_alone,
        empty: tracer_doorbell_empty,
        doorbell: tracer_doorbell_doorbell,
        reserve: tracer_doorbell_reserve,
    })
}

/// Returns the functions; `None` on an architecture other than x86-64.
#[cfg(not(target_arch = "x86_64"))]
pub fn functions() -> Option<Functions> {
    None
}
