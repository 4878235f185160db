//! The choice of a backend for a recording.

use tracer_core::backend::Backend;

use crate::{
    kernel::rights::{self, Capability, PERF_RECORDING, RECORDING},
    perf,
    session::Options,
    sys,
};

/// A backend, and why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The backend.
    pub backend: Backend,
    /// Why eBPF is not used, in words that follow "because"; `None` if it is.
    pub because: Option<String>,
}

/// Chooses eBPF, unless this process may not use it, and may use perf events, and these suffice for the options. If neither backend
/// can be used, this chooses eBPF, and the session's error says what is missing.
#[must_use]
pub fn choose(options: &Options) -> Choice {
    let because = why_not_ebpf().filter(|_| why_not_perf().is_none() && not_by_perf(options).is_none());
    let backend = if because.is_some() {
        Backend::Perf
    } else {
        Backend::Ebpf
    };
    Choice { backend, because }
}

/// Returns why this process may not use eBPF; `None` if it may.
#[must_use]
pub fn why_not_ebpf() -> Option<String> {
    let refused = || {
        // A filter of system calls refuses it, whatever the capabilities are.
        let error = sys::create_bpf_map().err()?;
        Some(format!("the kernel refuses eBPF ({error})"))
    };
    missing(&RECORDING).or_else(refused)
}

/// Returns why this process cannot record by perf events; `None` if it can.
#[must_use]
pub fn why_not_perf() -> Option<String> {
    missing(&PERF_RECORDING).or_else(perf::why_not)
}

fn missing(needed: &[Capability]) -> Option<String> {
    let missing = rights::missing_of(needed);
    let verb = match missing.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    Some(format!("{} {verb} missing", missing.join(", ").to_lowercase()))
}

/// Returns an option that only eBPF can fulfil, as users write it.
#[must_use]
pub fn not_by_perf(options: &Options) -> Option<&'static str> {
    let needs = [
        (!options.api.is_none(), "--api"),
        (options.reserves, "--detail full"),
        (options.stacks > 0, "--stacks"),
        (options.system, "--all"),
    ];
    needs.into_iter().find(|(wanted, _)| *wanted).map(|(_, option)| option)
}
