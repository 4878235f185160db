//! The findings for people: one paragraph for each aspect, and the conclusion last, where a terminal shows it.

use std::fmt::Write;

use tracer_capture::{
    inspect::{Answer, Cost, DoorbellCost, Gpus, Inspection, Library, Site, Verdict},
    kernel::kfd_proc::{Process, Queue},
};

use tracer_core::words::Named;
use tracer_core::{foreign, units::bytes};

use super::{lines::Lines, system};
use crate::units::known;

/// Formats all findings.
pub fn write(inspection: &Inspection, verdict: &Verdict) -> String {
    let mut out = Lines::default();
    system::kernel(&mut out, &inspection.kernel);
    system::rights(&mut out, &inspection.rights);
    system::backends(&mut out, &inspection.backends);
    system::programs(&mut out, &inspection.programs);
    system::driver(&mut out, &inspection.driver);
    gpus(&mut out, &inspection.gpus);
    for found in &inspection.libraries {
        library(&mut out, found);
    }
    if inspection.libraries.is_empty() {
        out.item("library", "no HSA runtime was found; name one with --library FILE");
    }
    cost(&mut out, &inspection.uprobe_cost);
    doorbell_cost(&mut out, &inspection.doorbell_cost);
    conclusion(&mut out.0, verdict);
    out.0
}

fn gpus(out: &mut Lines, gpus: &Gpus) {
    for gpu in &gpus.gpus {
        let (name, id, scheduler, evidence) = (&gpu.gfx, gpu.gpu_id, gpu.scheduler, &gpu.scheduler_evidence);
        let product = gpu
            .product
            .as_ref()
            .map_or_else(String::new, |product| format!("{product}, "));
        let text = format!("{product}{name} (gpu_id {id}), scheduler {scheduler}: {evidence}");
        out.item("gpu", text);
    }
    if gpus.gpus.is_empty() {
        out.item("gpu", "none in the KFD topology");
    }
    if let Some(sign) = &gpus.simulated {
        out.item("simulated", format_args!("{sign}: no number here is from a real GPU"));
    }
    for node in &gpus.nodes {
        let (path, group, user) = (&node.path, &node.group, &gpus.user);
        if node.accessible {
            out.more(format_args!("{path}: accessible to {user}"));
        } else {
            out.more(format_args!(
                "{path}: not accessible to {user}; fix: sudo usermod -aG {group} USER, then log in again"
            ));
        }
    }
    if gpus.nodes.is_empty() {
        out.more("no /dev/kfd and no render node");
    }
    for process in gpus.processes.iter().flatten() {
        out.more(format_args!("process {}: {}", process.pid, queues(process)));
    }
}

/// Formats the queues that a recording would find in a process that uses the KFD.
fn queues(process: &Process) -> String {
    let queue = |queue: &Queue| {
        let by_number = || Some(format!("type {}", queue.type_number?));
        format!(
            "queue {}{} {} on gpu_id {}, ring {}",
            queue.queue_id,
            queue.context.map_or_else(String::new, |n| format!(" of context {n}")),
            known(queue.kind.map(str::to_owned).or_else(by_number)),
            known(queue.gpu_id),
            known(queue.ring_bytes.map(bytes))
        )
    };
    match process.queues.as_slice() {
        [] => "no queues".to_owned(),
        some => some.iter().map(queue).collect::<Vec<_>>().join("; "),
    }
}

fn library(out: &mut Lines, library: &Library) {
    let by = library.found_by;
    if let Some(error) = &library.error {
        return out.item("library", format_args!("{error} (found by {by})"));
    }
    let soname = library.soname.as_deref().unwrap_or("no soname");
    let build_id = library.build_id.as_deref().unwrap_or("none");
    let text = format!("{} ({soname}, build id {build_id}, found by {by})", library.path);
    out.item("library", text);
    if !library.recognised {
        out.more("tracer record does not recognize this library: its dynamic strings do not contain hsa_init");
    }
    for (family, sites) in [
        ("doorbell", library.doorbells.as_slice()),
        ("last resort", library.last_resort.as_slice()),
        ("sdma", library.sdma.as_slice()),
        ("init", library.init.as_slice()),
        ("hsa_queue", library.queue_create.as_slice()),
        ("hsa_queue", library.queue_create_described.as_slice()),
        ("not probed", library.queue_functions.as_slice()),
        ("reserve", library.reserves.as_slice()),
    ] {
        sites.iter().for_each(|found| site(out, family, found));
    }
    if !library.reserves.is_empty() {
        out.more(
            "reserve: record probes the functions behind the API table, which it reads when a process initializes the library",
        );
    }
    for note in &library.notes {
        out.more(format_args!("note: {note}"));
    }
    // How the resolver arrived at its sites.
    for decision in &library.account {
        out.more(format_args!(
            "decided: {} by {}: {} ({}): {}",
            decision.sought.name(),
            decision.step,
            decision.outcome.name(),
            decision.looked_at,
            decision.reason
        ));
    }
}

fn site(out: &mut Lines, family: &str, site: &Site) {
    let how = match site.emulated {
        true => format!("{}, emulated", site.instruction),
        false => "single-stepped".to_owned(),
    };
    let ns = site
        .ns
        .map_or_else(String::new, |ns| format!(", {ns} ns per hit on this machine"));
    out.more(format_args!(
        "{family}: {} at {:#x}+{:#x}, file offset {:#x}: {how}{ns}; by {}, confidence {}",
        site.role,
        site.function,
        site.address - site.function,
        site.file_offset,
        site.step,
        site.confidence
    ));
    if !site.details.is_empty() {
        out.more(format_args!("  {}", site.details.join("; ")));
    }
}

fn cost(out: &mut Lines, cost: &Cost) {
    if let Some(error) = &cost.error {
        return out.item("uprobes", format_args!("not measured: {error}"));
    }
    let calls = cost.calls;
    let text = format!("ns per hit on this machine ({calls} calls each, fastest batch, without the call itself)");
    out.item("uprobes", text);
    for kind in &cost.kinds {
        let how = if kind.emulated { "emulated" } else { "single-stepped" };
        if let Some(ns) = kind.ns {
            out.more(format_args!("{:<8} {ns:>6}  {how}", kind.instruction));
        } else {
            let error = kind.error.as_deref().unwrap_or("unknown");
            out.more(format_args!("{:<8} not measured: {error}", kind.instruction));
        }
    }
}

fn doorbell_cost(out: &mut Lines, cost: &DoorbellCost) {
    if let Some(error) = &cost.error {
        return out.item("doorbells", format_args!("not measured: {error}"));
    }
    let doorbells = cost.doorbells;
    let text = format!("ns that recording adds ({doorbells} doorbells each, fastest round)");
    out.item("doorbells", text);
    for (what, ns) in [
        ("doorbell of one packet", cost.doorbell_ns),
        ("each further packet", cost.packet_ns),
        ("advance of the write index, with --detail full", cost.reserve_ns),
        ("a program that does nothing, to compare", cost.empty_ns),
    ] {
        out.more(format_args!("{ns:>6}  {what}"));
    }
}

fn conclusion(out: &mut String, verdict: &Verdict) {
    out.push_str("\nWould record capture\n");
    for (name, capture) in verdict.all() {
        let answer = match capture.captured {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::Unknown => "unknown",
        };
        let _ = writeln!(out, "  {name:<10} {answer:<8} {}", foreign::line(&capture.reason));
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
        let _ = writeln!(out, "fix for {}: {}", names.join(", "), foreign::line(fix));
    }
}
