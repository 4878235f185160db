//! The findings for people: one aspect a paragraph, the conclusion last, where a terminal shows it.

use std::io::{self, Write};

use tracer_capture::inspect::{
    Answer, Cost, Driver, Function, Gpus, Inspection, Kernel, Library, Programs, Rights, Site, State, Verdict,
};

/// Writes all of it.
pub fn write(out: &mut impl Write, inspection: &Inspection, verdict: &Verdict) -> io::Result<()> {
    kernel(out, &inspection.kernel)?;
    rights(out, &inspection.rights)?;
    programs(out, &inspection.programs)?;
    driver(out, &inspection.driver)?;
    gpus(out, &inspection.gpus)?;
    for found in &inspection.libraries {
        library(out, found)?;
    }
    if inspection.libraries.is_empty() {
        item(out, "library", "no HSA runtime was found; name one with --library FILE")?;
    }
    cost(out, &inspection.uprobe_cost)?;
    conclusion(out, verdict)
}

/// A line: what it is about, and what is to say.
fn item(out: &mut impl Write, about: &str, text: impl std::fmt::Display) -> io::Result<()> {
    writeln!(out, "{about:<11}{text}")
}

/// A line below it.
fn more(out: &mut impl Write, text: impl std::fmt::Display) -> io::Result<()> {
    item(out, "", text)
}

fn kernel(out: &mut impl Write, kernel: &Kernel) -> io::Result<()> {
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
            tracefs.unwrap_or("not mounted, or not for this user: mounted for the recorder alone while it loads")
        ),
    )?;
    more(
        out,
        format_args!(
            "uprobes {}, kprobes {} (nothing needs them yet), lockdown {}",
            there(kernel.uprobes),
            there(kernel.kprobes),
            kernel.lockdown.as_deref().unwrap_or("unknown")
        ),
    )?;
    more(
        out,
        format_args!(
            "unprivileged_bpf_disabled {}, perf_event_paranoid {}, kptr_restrict {} (root is above all three)",
            setting(kernel.unprivileged_bpf_disabled),
            setting(kernel.perf_event_paranoid),
            setting(kernel.kptr_restrict)
        ),
    )
}

fn rights(out: &mut impl Write, rights: &Rights) -> io::Result<()> {
    let capability = |c: &tracer_capture::inspect::Capability| {
        let name = c.name.to_lowercase();
        if c.effective { name } else { format!("no {name}") }
    };
    let all: Vec<String> = rights.capabilities.iter().map(capability).collect();
    item(out, "rights", format_args!("euid {}: {}", rights.euid, all.join(", ")))
}

fn programs(out: &mut impl Write, programs: &Programs) -> io::Result<()> {
    if let Some(error) = &programs.error {
        return item(out, "programs", error);
    }
    let count = programs.programs.len();
    let loaded = programs.programs.iter().filter(|p| p.error.is_none()).count();
    let largest = programs.programs.iter().max_by_key(|p| p.verified_instructions);
    let cost = largest.and_then(|p| Some((p.verified_instructions?, &p.name)));
    let cost = cost.map_or_else(String::new, |(n, name)| {
        format!("; the largest, {name}, took the verifier {n} instructions")
    });
    item(
        out,
        "programs",
        format_args!("{loaded} of {count} eBPF programs load{cost}"),
    )?;
    for program in &programs.programs {
        if let Some(error) = &program.error {
            more(out, error.replace('\n', "\n             "))?;
        }
    }
    let attached = programs.events.iter().filter(|e| e.error.is_none()).count();
    more(
        out,
        format_args!("{attached} of {} trace events attach", programs.events.len()),
    )?;
    for event in &programs.events {
        if let Some(error) = &event.error {
            more(out, format_args!("{}: {error}", event.event))?;
        }
    }
    Ok(())
}

fn driver(out: &mut impl Write, driver: &Driver) -> io::Result<()> {
    let state = match driver.state {
        State::Loaded => "amdgpu is loaded",
        State::NotLoaded => "amdgpu is installed, but not loaded",
        State::NotInstalled => "amdgpu is not installed for this kernel",
        State::NoModules => "amdgpu is not there, and this kernel loads no modules",
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
                error.as_deref().unwrap_or("not looked for")
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
            "functions of queues (for later probes): {} present, {} ambiguous, {} absent",
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

fn gpus(out: &mut impl Write, gpus: &Gpus) -> io::Result<()> {
    for gpu in &gpus.gpus {
        item(
            out,
            "gpu",
            format_args!(
                "{} (gpu_id {}), scheduler {}: {}",
                gpu.name, gpu.gpu_id, gpu.scheduler, gpu.evidence
            ),
        )?;
    }
    if gpus.gpus.is_empty() {
        item(out, "gpu", "none in the KFD's topology")?;
    }
    if let Some(sign) = &gpus.simulated {
        item(
            out,
            "simulated",
            format_args!("{sign}: no number here is that of a real GPU"),
        )?;
    }
    for node in &gpus.nodes {
        let (path, group, user) = (&node.path, &node.group, &gpus.user);
        if node.accessible {
            more(out, format_args!("{path}: open to {user}"))?;
        } else {
            more(
                out,
                format_args!("{path}: not open to {user}; fix: sudo usermod -aG {group} USER, then log in again"),
            )?;
        }
    }
    if gpus.nodes.is_empty() {
        more(out, "no /dev/kfd and no render node")?;
    }
    Ok(())
}

fn library(out: &mut impl Write, library: &Library) -> io::Result<()> {
    if let Some(error) = &library.error {
        return item(out, "library", format_args!("{error} (found by {})", library.found_by));
    }
    let soname = library.soname.as_deref().unwrap_or("no soname");
    let build_id = library.build_id.as_deref().unwrap_or("none");
    item(
        out,
        "library",
        format_args!(
            "{} ({soname}, build id {build_id}, found by {})",
            library.path, library.found_by
        ),
    )?;
    if !library.recognised {
        more(
            out,
            "record would not recognise it: hsa_init is not among its dynamic strings",
        )?;
    }
    for found in &library.doorbells {
        site(out, "doorbell", found)?;
    }
    for found in &library.sdma {
        site(out, "sdma", found)?;
    }
    for found in &library.init {
        site(out, "init", found)?;
    }
    for found in &library.reserves {
        site(out, "reserve", found)?;
    }
    if !library.reserves.is_empty() {
        more(
            out,
            "reserve: record probes the functions behind the API table, known once a process has initialised the library",
        )?;
    }
    for note in &library.notes {
        more(out, format_args!("note: {note}"))?;
    }
    Ok(())
}

fn site(out: &mut impl Write, family: &str, site: &Site) -> io::Result<()> {
    let ns = site.ns.map_or_else(String::new, |ns| format!(", {ns} ns a hit here"));
    let how = match (site.emulated, site.instruction.as_str()) {
        (true, instruction) => format!("{instruction}, emulated{ns}"),
        (false, _) => format!("single-stepped{ns}"),
    };
    more(
        out,
        format_args!(
            "{family}: {} at {:#x}+{:#x}, file offset {:#x}: {how}; by {}",
            site.role,
            site.function,
            site.address - site.function,
            site.file_offset,
            site.step
        ),
    )?;
    if !site.details.is_empty() {
        more(out, format_args!("  {}", site.details.join("; ")))?;
    }
    Ok(())
}

fn cost(out: &mut impl Write, cost: &Cost) -> io::Result<()> {
    if let Some(error) = &cost.error {
        return item(out, "uprobes", format_args!("not measured: {error}"));
    }
    item(
        out,
        "uprobes",
        format_args!(
            "ns a hit, measured on this machine now ({} calls each, best batch, less the call itself)",
            cost.calls
        ),
    )?;
    for kind in &cost.kinds {
        let how = if kind.emulated { "emulated" } else { "single-stepped" };
        match (kind.ns, &kind.error) {
            (Some(ns), _) => more(out, format_args!("{:<8} {ns:>6}  {how}", kind.instruction))?,
            (None, error) => more(
                out,
                format_args!(
                    "{:<8} not measured: {}",
                    kind.instruction,
                    error.as_deref().unwrap_or("unknown")
                ),
            )?,
        }
    }
    Ok(())
}

fn conclusion(out: &mut impl Write, verdict: &Verdict) -> io::Result<()> {
    writeln!(out, "\nWould record capture")?;
    for (name, capture) in verdict.all() {
        let answer = match capture.captured {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::Unknown => "unknown",
        };
        writeln!(out, "  {name:<10} {answer:<8} {}", capture.reason)?;
    }
    // Several lacks may have one cure.
    let mut fixes: Vec<(Vec<&str>, &str)> = Vec::new();
    for (name, capture) in verdict.all() {
        let Some(fix) = &capture.fix else { continue };
        match fixes.iter_mut().find(|(_, known)| known == fix) {
            Some((names, _)) => names.push(name),
            None => fixes.push((vec![name], fix)),
        }
    }
    for (names, fix) in fixes {
        writeln!(out, "fix for {}: {fix}", names.join(", "))?;
    }
    Ok(())
}
