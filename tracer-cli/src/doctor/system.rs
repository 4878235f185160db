//! The findings on the kernel, this process, and the driver.

use std::io::{self, Write};

use tracer_capture::inspect::{Capability, Driver, Function, Kernel, Programs, Rights, State};

use super::lines::{item, more};

/// Writes what the kernel reports about itself.
pub fn kernel(out: &mut impl Write, kernel: &Kernel) -> io::Result<()> {
    let there = |is: bool| if is { "yes" } else { "no" };
    let setting = |value: Option<i32>| value.map_or_else(|| "unknown".to_owned(), |v| v.to_string());
    item(
        out,
        "kernel",
        format_args!("{} {}", kernel.release, kernel.architecture),
    )?;
    let modules = match kernel.btf_modules.as_slice() {
        [] => "none of the driver's modules".to_owned(),
        some => some.join(", "),
    };
    more(out, format_args!("BTF {}, of modules: {modules}", there(kernel.btf)))?;
    let tracefs = kernel.tracefs.as_deref();
    more(
        out,
        format_args!(
            "tracefs {}",
            tracefs.unwrap_or(
                "not mounted, or not readable by this user; the recorder mounts its own while it loads the programs"
            )
        ),
    )?;
    more(
        out,
        format_args!(
            "uprobes {}, kprobes {}, lockdown {}",
            there(kernel.uprobes),
            there(kernel.kprobes),
            kernel.lockdown.as_deref().unwrap_or("unknown")
        ),
    )?;
    more(
        out,
        format_args!(
            "unprivileged_bpf_disabled {}, perf_event_paranoid {}, kptr_restrict {} (none of them limits root)",
            setting(kernel.unprivileged_bpf_disabled),
            setting(kernel.perf_event_paranoid),
            setting(kernel.kptr_restrict)
        ),
    )
}

/// Writes what this process may do.
pub fn rights(out: &mut impl Write, rights: &Rights) -> io::Result<()> {
    let capability = |c: &Capability| {
        let name = c.name.to_lowercase();
        if c.effective { name } else { format!("no {name}") }
    };
    let all: Vec<String> = rights.capabilities.iter().map(capability).collect();
    item(out, "rights", format_args!("euid {}: {}", rights.euid, all.join(", ")))?;
    if rights.own_pid_namespace {
        more(out, "a pid namespace of its own")?;
    }
    Ok(())
}

/// Writes which programs the kernel accepts.
pub fn programs(out: &mut impl Write, programs: &Programs) -> io::Result<()> {
    if let Some(error) = &programs.error {
        item(out, "programs", error)?;
        return lacks(out, programs);
    }
    let count = programs.programs.len();
    let loaded = programs.programs.iter().filter(|p| p.error.is_none()).count();
    let largest = programs.programs.iter().max_by_key(|p| p.verified_instructions);
    let cost = largest.and_then(|p| Some((p.verified_instructions?, &p.name)));
    let cost = cost.map_or_else(String::new, |(n, name)| {
        format!("; the largest is {name}: the verifier processed {n} instructions")
    });
    item(
        out,
        "programs",
        format_args!("{loaded} of {count} eBPF programs load{cost}"),
    )?;
    for program in &programs.programs {
        if let Some(error) = &program.error {
            // The verifier's message may have many lines.
            error.lines().try_for_each(|line| more(out, line))?;
        }
    }
    lacks(out, programs)?;
    let attached = programs.events.iter().filter(|e| e.error.is_none()).count();
    more(
        out,
        format_args!(
            "{attached} of {} trace events and driver functions attach",
            programs.events.len()
        ),
    )?;
    for event in &programs.events {
        if let Some(error) = &event.error {
            more(out, format_args!("{}: {error}", event.event))?;
        }
    }
    Ok(())
}

/// Writes the kernel driver and its functions.
pub fn driver(out: &mut impl Write, driver: &Driver) -> io::Result<()> {
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
    item(out, "driver", format_args!("{state}{modules}"))?;
    let events = &driver.events;
    match (events.set, &events.error) {
        (Some(set), _) => more(
            out,
            format_args!(
                "scheduler events: {set} set ({}), {}",
                events.names.join(", "),
                if events.raw { "raw by BTF" } else { "classic" }
            ),
        )?,
        (None, error) => more(
            out,
            format_args!(
                "scheduler events: none usable, {}",
                error.as_deref().unwrap_or("not searched")
            ),
        )?,
    }
    if let Some(error) = &driver.functions_error {
        return more(out, format_args!("functions: {error}"));
    }
    let (present, others): (Vec<&Function>, Vec<_>) = driver.functions.iter().partition(|f| f.presence == "present");
    let (ambiguous, absent): (Vec<_>, Vec<_>) = others.into_iter().partition(|f| f.presence == "ambiguous");
    more(
        out,
        format_args!(
            "functions of the driver: {} present, {} ambiguous, {} absent",
            present.len(),
            ambiguous.len(),
            absent.len()
        ),
    )?;
    for function in present.iter().chain(&ambiguous) {
        let module = function.module.as_deref().unwrap_or("kernel");
        more(
            out,
            format_args!("  {} [{module}]: {}", function.presence, function.symbols.join(", ")),
        )?;
    }
    if !absent.is_empty() && !present.is_empty() {
        let names: Vec<&str> = absent.iter().map(|f| f.name.as_str()).collect();
        more(out, format_args!("  absent: {}", names.join(", ")))?;
    }
    Ok(())
}

fn lacks(out: &mut impl Write, programs: &Programs) -> io::Result<()> {
    let missing = programs.features.missing();
    if missing.is_empty() {
        return Ok(());
    }
    more(out, format_args!("this kernel lacks {}", missing.join(", ")))
}
