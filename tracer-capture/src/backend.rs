//! The choice of a backend for a recording.

use tracer_core::backend::Backend;

use crate::{
    ftrace,
    kernel::rights::{self, Capability, FTRACE_RECORDING, PERF_RECORDING, RECORDING},
    perf,
    session::Options,
    sys,
    target::pid_namespace,
};

/// A backend, and why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The backend.
    pub backend: Backend,
    /// Why eBPF is not used, in words that follow "because"; `None` if it is.
    pub because: Option<String>,
}

/// Chooses eBPF, unless this process may not use it; then perf events or, if it may not use these, ftrace, if they suffice for the
/// options. If no backend can be used, this chooses eBPF, and the session's error says what is missing.
#[must_use]
pub fn choose(options: &Options) -> Choice {
    let ebpf = Choice {
        backend: Backend::Ebpf,
        because: None,
    };
    let Some(because) = why_not_ebpf().filter(|_| not_by_samples(options).is_none()) else {
        return ebpf;
    };
    let chosen = |backend, because| Choice {
        backend,
        because: Some(because),
    };
    match why_not_perf() {
        None => chosen(Backend::Perf, because),
        Some(also) if why_not_ftrace().is_none() => {
            chosen(Backend::Ftrace, format!("{because}, and for perf events: {also}"))
        }
        Some(_) => ebpf,
    }
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

/// Returns why this process cannot record by ftrace; `None` if it can.
#[must_use]
pub fn why_not_ftrace() -> Option<String> {
    // Ids of recorders in tracefs are those of the first namespace.
    let elsewhere = || pid_namespace::require_initial().err().map(|error| error.to_string());
    missing(&FTRACE_RECORDING).or_else(elsewhere).or_else(ftrace::why_not)
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
pub fn not_by_samples(options: &Options) -> Option<&'static str> {
    let needs = [
        (!options.api.is_none(), "--api"),
        (options.reserves, "--detail full"),
        (options.stacks > 0, "--stacks"),
        (options.system, "--all"),
    ];
    needs.into_iter().find(|(wanted, _)| *wanted).map(|(_, option)| option)
}
