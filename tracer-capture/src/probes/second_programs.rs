//! Two programs for one event, of which one is enough.
//!
//! Since Linux 7, programs of system call events can be preempted. While one is preempted, the kernel skips it for every other
//! thread on that processor (`bpf_prog_run_array_sleepable`, include/linux/bpf.h; each program has a flag of its own). A second
//! program that does the same has another flag. Both write what one would write: events are lost only if threads were preempted in
//! both.

use super::Prober;
use crate::{
    inventory::Probe,
    kernel::{btf::Btf, kallsyms::Kallsyms},
};
use tracer_core::family::Family;

/// The function that runs programs preemptibly (kernel/trace/bpf_trace.c).
pub const PREEMPTIBLE: &str = "trace_call_bpf_faultable";

/// The suffix of the names of second programs.
pub const SUFFIX: &str = "_twin";

/// Returns whether this is a second program.
#[must_use]
pub fn is(program: &str) -> bool {
    program.ends_with(SUFFIX)
}

/// Returns whether this kernel needs twins, by its types or its functions. A kernel that hides both may need them.
#[must_use]
pub fn needed(btf: Option<&Btf>, symbols: Option<&Kallsyms>) -> bool {
    let is_symbol = symbols.map(|symbols| !symbols.find(PREEMPTIBLE).is_empty());
    let is_type = btf.map(|btf| btf.has_function(PREEMPTIBLE));
    match (is_type, is_symbol) {
        (None, None) => true,
        (is_type, is_symbol) => is_type == Some(true) || is_symbol == Some(true),
    }
}

/// Attaches to system call events: `[program, its twin, event]` each.
pub fn attach<const N: usize>(
    prober: &mut Prober,
    twins: bool,
    family: Family,
    events: [[&'static str; 3]; N],
) -> Vec<Probe> {
    let mut probes = Vec::new();
    for [program, twin, event] in events {
        probes.push(prober.tracepoint(program, family, "syscalls", event));
        if twins {
            probes.push(prober.tracepoint(twin, family, "syscalls", event));
        }
    }
    probes
}
