//! The findings on the kernel, this process, and the driver.

use tracer_capture::inspect::{Backends, Capability, Driver, Function, Kernel, Programs, Rights, State};

use super::lines::Lines;
use crate::units::known;

/// Adds what the kernel reports about itself.
pub fn kernel(out: &mut Lines, kernel: &Kernel) {
    let there = |is: bool| if is { "yes" } else { "no" };
    out.item("kernel", format_args!("{} {}", kernel.release, kernel.architecture));
    let modules = match kernel.btf_modules.as_slice() {
        [] => "none of the driver's modules".to_owned(),
        some => some.join(", "),
    };
    out.more(format_args!("BTF {}, of modules: {modules}", there(kernel.btf)));
    let tracefs = kernel.tracefs.as_deref().unwrap_or(
        "not mounted, or not readable by this user; the recorder mounts its own while it loads the programs",
    );
    out.more(format_args!("tracefs {tracefs}"));
    let (uprobes, kprobes) = (there(kernel.uprobes), there(kernel.kprobes));
    let lockdown = kernel.lockdown.as_deref().unwrap_or("unknown");
    out.more(format_args!(
        "uprobes {uprobes}, kprobes {kprobes}, lockdown {lockdown}"
    ));
    out.more(format_args!(
        "unprivileged_bpf_disabled {}, perf_event_paranoid {}, kptr_restrict {} (none of them limits root)",
        known(kernel.unprivileged_bpf_disabled),
        known(kernel.perf_event_paranoid),
        known(kernel.kptr_restrict)
    ));
}

/// Adds what this process may do.
pub fn rights(out: &mut Lines, rights: &Rights) {
    let capability = |c: &Capability| {
        let name = c.name.to_lowercase();
        if c.effective { name } else { format!("no {name}") }
    };
    let all: Vec<String> = rights.capabilities.iter().map(capability).collect();
    out.item("rights", format_args!("euid {}: {}", rights.euid, all.join(", ")));
    if rights.own_pid_namespace {
        out.more("a pid namespace of its own");
    }
}

/// Adds in which ways this process can capture, and which one `record` would choose.
pub fn backends(out: &mut Lines, backends: &Backends) {
    let all = [
        ("eBPF", "ebpf", &backends.ebpf),
        ("perf events", "perf", &backends.perf),
        ("ftrace", "ftrace", &backends.ftrace),
    ];
    let chosen = all.iter().position(|(_, _, why_not)| why_not.is_none());
    out.item(
        "backend",
        match chosen {
            Some(0) => "eBPF".to_owned(),
            Some(at) => format!("{}; less is captured than by eBPF (docs/backends.md)", all[at].0),
            None => "none".to_owned(),
        },
    );
    for (_, (name, option, why_not)) in all.iter().enumerate().filter(|(at, _)| Some(*at) != chosen) {
        match why_not {
            Some(reason) => out.more(format_args!("{name} cannot be used: {reason}")),
            None => out.more(format_args!("{name} can be used too (--backend {option})")),
        };
    }
}

/// Adds which programs the kernel accepts.
pub fn programs(out: &mut Lines, programs: &Programs) {
    if let Some(error) = &programs.error {
        out.item("programs", error);
        return lacks(out, programs);
    }
    let count = programs.programs.len();
    let loaded = programs.programs.iter().filter(|p| p.error.is_none()).count();
    let largest = programs.programs.iter().max_by_key(|p| p.verified_instructions);
    let cost = largest.and_then(|p| Some((p.verified_instructions?, &p.name)));
    let cost = cost.map_or_else(String::new, |(n, name)| {
        format!("; the largest is {name}: the verifier processed {n} instructions")
    });
    out.item("programs", format!("{loaded} of {count} eBPF programs load{cost}"));
    // The verifier's message may have many lines.
    let errors = programs.programs.iter().filter_map(|program| program.error.as_deref());
    errors.flat_map(str::lines).for_each(|line| out.more(line));
    lacks(out, programs);
    let attached = programs.events.iter().filter(|e| e.error.is_none()).count();
    out.more(format_args!(
        "{attached} of {} trace events and driver functions attach",
        programs.events.len()
    ));
    for event in &programs.events {
        if let Some(error) = &event.error {
            out.more(format_args!("{}: {error}", event.event));
        }
    }
}

/// Adds the kernel driver and its functions.
pub fn driver(out: &mut Lines, driver: &Driver) {
    let state = match driver.state {
        State::Loaded => "amdgpu is loaded",
        State::NotLoaded => "amdgpu is installed, but not loaded",
        State::NotInstalled => "amdgpu is not installed for this kernel",
        State::NoModules => "amdgpu is not present, and this kernel does not load modules",
    };
    let modules = match driver.modules.as_slice() {
        [] => String::new(),
        some => format!(" (modules here: {})", some.join(", ")),
    };
    out.item("driver", format_args!("{state}{modules}"));
    let events = &driver.events;
    if let Some(set) = events.set {
        let how = if events.raw { "raw by BTF" } else { "classic" };
        out.more(format_args!(
            "scheduler events: {set} set ({}), {how}",
            events.names.join(", ")
        ));
    } else {
        let error = events.error.as_deref().unwrap_or("not searched");
        out.more(format_args!("scheduler events: none usable, {error}"));
    }
    if let Some(error) = &driver.functions_error {
        return out.more(format_args!("functions: {error}"));
    }
    let (present, others): (Vec<&Function>, Vec<_>) = driver.functions.iter().partition(|f| f.presence == "present");
    let (ambiguous, absent): (Vec<_>, Vec<_>) = others.into_iter().partition(|f| f.presence == "ambiguous");
    out.more(format_args!(
        "functions of the driver: {} present, {} ambiguous, {} absent",
        present.len(),
        ambiguous.len(),
        absent.len()
    ));
    for function in present.iter().chain(&ambiguous) {
        let (presence, symbols) = (function.presence, function.symbols.join(", "));
        let module = function.module.as_deref().unwrap_or("kernel");
        out.more(format_args!("  {presence} [{module}]: {symbols}"));
    }
    if !absent.is_empty() && !present.is_empty() {
        let names: Vec<&str> = absent.iter().map(|f| f.name.as_str()).collect();
        out.more(format_args!("  absent: {}", names.join(", ")));
    }
}

fn lacks(out: &mut Lines, programs: &Programs) {
    let missing = programs.features.missing();
    if !missing.is_empty() {
        out.more(format_args!("this kernel lacks {}", missing.join(", ")));
    }
}
