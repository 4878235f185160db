//! The findings for people: one paragraph for each aspect, and the conclusion last, where a terminal shows it.

use std::io::{self, Write};

use tracer_capture::{
    inspect::{Answer, Cost, Gpus, Inspection, Library, Site, Verdict},
    kernel::kfd_proc::{Process, Queue},
    runtime::resolver::Decision,
};

use tracer_core::words::Named;
use tracer_core::{foreign, units::bytes};

use super::{
    lines::{item, more},
    system,
};

/// Writes all findings.
pub fn write(out: &mut impl Write, inspection: &Inspection, verdict: &Verdict) -> io::Result<()> {
    system::kernel(out, &inspection.kernel)?;
    system::rights(out, &inspection.rights)?;
    system::programs(out, &inspection.programs)?;
    system::driver(out, &inspection.driver)?;
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
        item(out, "gpu", "none in the KFD topology")?;
    }
    if let Some(sign) = &gpus.simulated {
        item(
            out,
            "simulated",
            format_args!("{sign}: no number here is from a real GPU"),
        )?;
    }
    for node in &gpus.nodes {
        let (path, group, user) = (&node.path, &node.group, &gpus.user);
        if node.accessible {
            more(out, format_args!("{path}: accessible to {user}"))?;
        } else {
            more(
                out,
                format_args!("{path}: not accessible to {user}; fix: sudo usermod -aG {group} USER, then log in again"),
            )?;
        }
    }
    if gpus.nodes.is_empty() {
        more(out, "no /dev/kfd and no render node")?;
    }
    gpus.processes
        .iter()
        .flatten()
        .try_for_each(|found| process(out, found))
}

/// Writes a process that uses the KFD, with the queues that a recording would find there.
fn process(out: &mut impl Write, process: &Process) -> io::Result<()> {
    let unknown = || "unknown".to_owned();
    let queue = |queue: &Queue| {
        let kind = queue
            .kind
            .map(str::to_owned)
            .or_else(|| Some(format!("type {}", queue.type_number?)));
        format!(
            "queue {}{} {} on gpu_id {}, ring {}",
            queue.queue_id,
            queue.context.map_or_else(String::new, |n| format!(" of context {n}")),
            kind.unwrap_or_else(unknown),
            queue.gpu_id.map_or_else(unknown, |id| id.to_string()),
            queue.ring_bytes.map_or_else(unknown, bytes)
        )
    };
    let queues: Vec<String> = process.queues.iter().map(queue).collect();
    let queues = if queues.is_empty() {
        "no queues".to_owned()
    } else {
        queues.join("; ")
    };
    more(out, format_args!("process {}: {queues}", process.pid))
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
            "tracer record does not recognize this library: its dynamic strings do not contain hsa_init",
        )?;
    }
    for found in &library.doorbells {
        site(out, "doorbell", found)?;
    }
    for found in &library.last_resort {
        site(out, "last resort", found)?;
    }
    for found in &library.sdma {
        site(out, "sdma", found)?;
    }
    if let Some(found) = &library.init {
        site(out, "init", found)?;
    }
    if let Some(found) = &library.queue_create {
        site(out, "hsa_queue", found)?;
    }
    for found in &library.queue_functions {
        site(out, "not probed", found)?;
    }
    for found in &library.reserves {
        site(out, "reserve", found)?;
    }
    if !library.reserves.is_empty() {
        more(
            out,
            "reserve: record probes the functions behind the API table, which it reads when a process initializes the library",
        )?;
    }
    for note in &library.notes {
        more(out, format_args!("note: {note}"))?;
    }
    account(out, &library.account)
}

/// Writes how the resolver arrived at its sites.
fn account(out: &mut impl Write, account: &[Decision]) -> io::Result<()> {
    account.iter().try_for_each(|decision| {
        more(
            out,
            format_args!(
                "decided: {} by {}: {} ({}): {}",
                decision.sought.name(),
                decision.step,
                decision.outcome.name(),
                decision.looked_at,
                decision.reason
            ),
        )
    })
}

fn site(out: &mut impl Write, family: &str, site: &Site) -> io::Result<()> {
    let ns = site
        .ns
        .map_or_else(String::new, |ns| format!(", {ns} ns per hit on this machine"));
    let how = match (site.emulated, site.instruction.as_str()) {
        (true, instruction) => format!("{instruction}, emulated{ns}"),
        (false, _) => format!("single-stepped{ns}"),
    };
    more(
        out,
        format_args!(
            "{family}: {} at {:#x}+{:#x}, file offset {:#x}: {how}; by {}, confidence {}",
            site.role,
            site.function,
            site.address - site.function,
            site.file_offset,
            site.step,
            site.confidence
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
            "ns per hit on this machine ({} calls each, fastest batch, without the call itself)",
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
        writeln!(out, "  {name:<10} {answer:<8} {}", foreign::line(&capture.reason))?;
    }
    // Several gaps may have the same fix.
    let mut fixes: Vec<(Vec<&str>, &str)> = Vec::new();
    for (name, capture) in verdict.all() {
        let Some(fix) = &capture.fix else { continue };
        match fixes.iter_mut().find(|(_, known)| known == fix) {
            Some((names, _)) => names.push(name),
            None => fixes.push((vec![name], fix)),
        }
    }
    for (names, fix) in fixes {
        writeln!(out, "fix for {}: {}", names.join(", "), foreign::line(fix))?;
    }
    Ok(())
}
