//! The headline: what ran, where, on which paths its kernels went, and what is not known of them.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use tracer_core::{
    foreign::{self, Terminal},
    known::{ByPath, Total},
    summary::{Capabilities, Copies, KernelNames, Moved, Report},
    tables::{PacketKind, Path},
    units::{bytes, duration},
    words::{Named, count},
};
use tracer_store::{
    Damage,
    manifest::{EndedBy, Exit, Manifest, Target},
};

use super::super::layout::Layout;
use super::{LABEL, nothing, queues, unread};
use crate::{record::manifest, units::known};

/// Writes the headline: the target, the machine and the path summary; if nothing was submitted, why that may be. `damage`: what
/// cannot be read.
pub fn summary(
    out: &mut impl Write,
    manifest: &Manifest,
    report: &Report,
    damage: &[Damage],
    layout: Layout,
) -> io::Result<()> {
    let mut text = Vec::new();
    headline(&mut text, manifest, report, damage)?;
    layout.labelled(out, &String::from_utf8_lossy(&text), LABEL)
}

/// Writes that the GPU was simulated, where there is no headline; nothing if it is not known to be.
pub fn simulated(out: &mut impl Write, manifest: &Manifest, layout: Layout) -> io::Result<()> {
    match &manifest.simulated {
        None => Ok(()),
        Some(sign) => layout.note(out, &format!("simulated: {}", unreal(sign))),
    }
}

fn unreal(sign: &str) -> String {
    format!("{}: no number here is from a real GPU", Terminal(sign))
}

fn headline(out: &mut impl Write, manifest: &Manifest, report: &Report, damage: &[Damage]) -> io::Result<()> {
    let what = match &manifest.target {
        Target::Command { argv } => argv.join(" "),
        Target::Attached { pids } => format!("processes {pids:?}"),
        Target::System => "every process".to_owned(),
        Target::Imported { from } => format!("imported from {from}"),
    };
    let ended = match (&manifest.target, manifest.exit) {
        (Target::Imported { .. }, _) => "text of another tool, with times by its clock".to_owned(),
        (_, Some(Exit::Code(code))) => format!("exit {code}"),
        (_, Some(Exit::Signal(signal))) => format!("killed by signal {signal}"),
        (Target::Attached { .. } | Target::System, None) => "only what was submitted during the recording".to_owned(),
        (_, None) if !manifest.complete => "its end was not recorded".to_owned(),
        (_, None) => "still running at the end of the recording".to_owned(),
    };
    writeln!(out, "target     {} ({ended})", Terminal(&what))?;
    let host = &manifest.host;
    if host.name.is_empty() {
        // The text of another tool does not name it.
        let time = match &*manifest.started.time {
            "" => "time unknown",
            time => time,
        };
        writeln!(out, "host       unknown, Linux unknown, {}", Terminal(time))?;
    } else {
        writeln!(
            out,
            "host       {}, Linux {}, {}",
            Terminal(&host.name),
            Terminal(&host.kernel_release),
            Terminal(&manifest.started.time)
        )?;
    }
    if let Some(ns) = wall_ns(manifest) {
        writeln!(out, "recorded   {}", duration(ns))?;
    }
    for gpu in &manifest.devices {
        let (name, id, scheduler) = (Terminal(&gpu.name), gpu.gpu_id, gpu.scheduler.kind.name());
        let evidence = foreign::line(gpu.scheduler.evidence.join("; "));
        let units = gpu
            .compute_units
            .map_or_else(String::new, |units| format!(", {units} compute units"));
        let product = gpu
            .product
            .as_deref()
            .map_or_else(String::new, |name| format!("{}, ", Terminal(name)));
        writeln!(
            out,
            "gpu        {product}{name} (gpu_id {id}){units}, scheduler {scheduler}: {evidence}"
        )?;
    }
    if let Some(sign) = &manifest.simulated {
        writeln!(out, "simulated  {}", unreal(sign))?;
    }
    unread::parts(out, damage)?;
    if let Some(nothing) = report.nothing {
        nothing::causes(out, nothing, manifest, report)?;
        return end(out, manifest, report);
    }
    let watched = manifest::parse(&manifest.capabilities);
    let dispatches = &report.dispatches;
    let seen = report
        .kernels
        .iter()
        .fold(report.other_kernels, |sum, kernel| sum + kernel.count);
    let unreadable = report.opaque_queues;
    let unknown_formats = report.packets.by_kind.get(PacketKind::VendorOther.name());
    match dispatches.total {
        None if unread::hides(Total::Dispatches, damage) => {
            writeln!(out, "dispatches unknown: tracer can read {seen}")?;
        }
        None if unreadable > 0 => writeln!(
            out,
            "dispatches unknown: tracer saw {seen}, and cannot read the commands of {unreadable} queues"
        )?,
        None if let Some(n) = unknown_formats => writeln!(
            out,
            "dispatches unknown: tracer saw {seen}, and does not know the format of {}",
            count(*n, "vendor packet")
        )?,
        None if dispatches
            .by_path
            .unseen
            .is_some_and(|unseen| unseen == seen && seen > 0) =>
        {
            writeln!(out, "dispatches unknown: {}", paths(&dispatches.by_path, &watched))?;
        }
        None if watched.packets && report.unseen.found > 0 && !report.packets.unread.is_empty() => writeln!(
            out,
            "dispatches unknown: tracer saw {seen}; the GPU took others without a doorbell, and tracer could not read them"
        )?,
        None if seen > 0 && matches!(manifest.target, Target::Imported { .. }) => writeln!(
            out,
            "dispatches unknown: the log has {seen}, and lacks what other libraries submit, and the doorbells"
        )?,
        None if seen > 0 => writeln!(
            out,
            "dispatches unknown: tracer saw {seen}, and watched only some of the doorbells"
        )?,
        total => writeln!(
            out,
            "dispatches {}: {}",
            known(total),
            paths(&dispatches.by_path, &watched)
        )?,
    }
    let consumed = ": the GPU took the packet before tracer read it, but its body was still there";
    of_them(out, dispatches.by_evidence.body, consumed)?;
    of_them(out, dispatches.aggregated, AGGREGATED)?;
    let internal = ": the runtime's own, on its internal queues";
    of_them(out, dispatches.internal, internal)?;
    let doorbells = &report.doorbells;
    let latency = doorbells.reserve_to_doorbell_ns.map_or_else(String::new, |ns| {
        let (p50, p99, max) = (duration(ns.p50), duration(ns.p99), duration(ns.max));
        format!(", from reserve p50 {p50}, p99 {p99}, max {max} (probes included)")
    });
    writeln!(out, "doorbells  {}{latency}", known(doorbells.total))?;
    of_them(out, doorbells.aggregated, AGGREGATED)?;
    let (packets, by_kind) = (known(report.packets.total), kinds(&report.packets.by_kind));
    writeln!(out, "packets    {packets} other than dispatches{by_kind}")?;
    if let Some(KernelNames { total, mangled }) = report.kernel_names
        && mangled > 0
    {
        writeln!(out, "names      {mangled} of {total} kernel names stay mangled")?;
    }
    unseen(out, report, &watched)?;
    queues::requested(out, report)?;
    let (copies, by_path) = (known(report.copies.total), copy_paths(&report.copies.by_path));
    writeln!(out, "copies     {copies}: {by_path}")?;
    moved(out, &report.copies)?;
    ring_summary(out, report)?;
    writeln!(out, "ioctls     {}", known(report.ioctls.total))?;
    if let Some(total) = report.api_calls.total {
        let counted = match report.api_calls.counted_only {
            Some(true) => ", counted only: no submission names its call",
            _ => "",
        };
        writeln!(out, "api calls  {total}{counted}")?;
    }
    end(out, manifest, report)
}

/// Returns the time from the start to the end of the recording; `None` if its end is unknown.
pub fn wall_ns(manifest: &Manifest) -> Option<u64> {
    let ended = manifest.ended.as_ref()?;
    ended.monotonic_ns.checked_sub(manifest.started.monotonic_ns)
}

/// Writes the losses, and whether the trace is complete.
fn end(out: &mut impl Write, manifest: &Manifest, report: &Report) -> io::Result<()> {
    let losses = &report.losses;
    writeln!(out, "losses     {}{}", known(losses.total), kinds(&losses.by_source))?;
    let complete = match (manifest.complete, report.complete) {
        (false, _) => "no: the recorder did not finish; the numbers are those that it had written",
        (true, false) => "no: parts of the trace cannot be read",
        (true, true) => "yes",
    };
    writeln!(out, "complete   {complete}{}", ended_by(manifest.ended_by.as_ref()))
}

/// What distinguishes submissions that have no rows.
const AGGREGATED: &str = ": aggregated, counted in runs, without a row each";

/// Writes how many of the submissions that were just counted are of some kind; nothing if none is.
fn of_them(out: &mut impl Write, count: Option<u64>, kind: &str) -> io::Result<()> {
    match count {
        None | Some(0) => Ok(()),
        Some(n) => writeln!(out, "           {n} of them{kind}"),
    }
}

/// Names what ended the recording, unless its subject exited.
fn ended_by(ended_by: Option<&EndedBy>) -> String {
    match ended_by {
        Some(EndedBy::Duration) => ", ended after --duration".to_owned(),
        Some(EndedBy::Signal { name }) => format!(", ended by {}", Terminal(name)),
        Some(EndedBy::User) => ", ended by the user".to_owned(),
        None | Some(EndedBy::CommandExited | EndedBy::TargetExited | EndedBy::Unknown) => String::new(),
    }
}

/// Writes how many packets the GPU took without a probe seeing them; nothing if a doorbell is known for all of them.
fn unseen(out: &mut impl Write, report: &Report, watched: &Capabilities) -> io::Result<()> {
    let unseen = &report.unseen;
    if !watched.unseen || unseen.total == Some(0) {
        return Ok(());
    }
    if unseen.total.is_none() && unseen.found == 0 && unseen.queues_open == 0 {
        return writeln!(
            out,
            "unseen     unknown: the trace does not have the last samples of its queues"
        );
    }
    let open = match unseen.queues_open {
        0 => String::new(),
        open => format!("; tracer could not watch {open} queues until they were destroyed"),
    };
    let found = unseen.found;
    writeln!(
        out,
        "unseen     the GPU took {found} packets before tracer saw a doorbell for them{open}"
    )
}

/// Writes the jobs on rings, and which processes they belong to.
fn ring_summary(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let jobs = &report.ring_jobs;
    let (Some(total), Some(traced)) = (jobs.total, jobs.traced) else {
        return writeln!(out, "ring jobs  unknown: rings of the kernel driver were not watched");
    };
    write!(out, "ring jobs  {total}: {traced} submitted by traced processes")?;
    match jobs.submitter_unknown {
        Some(unknown) if unknown > 0 => writeln!(out, ", {unknown} from an unknown submitter"),
        _ => writeln!(out),
    }
}

/// Formats what the copies move, by direction.
fn moved(out: &mut impl Write, copies: &Copies) -> io::Result<()> {
    let one = |(direction, moved): (&String, &Moved)| {
        format!("{} {} in {}", Terminal(direction), bytes(moved.bytes), moved.count)
    };
    let mut parts: Vec<String> = copies.by_direction.iter().map(one).collect();
    if let Some(unread) = copies.unread.filter(|&n| n > 0) {
        parts.push(format!("{unread} of unknown size"));
    }
    if !parts.is_empty() {
        writeln!(out, "           {}", parts.join(", "))?;
    }
    let by_kernel = &copies.kernels;
    let Some(count) = by_kernel.count.filter(|&n| n > 0) else {
        return Ok(());
    };
    let size = match (by_kernel.bytes, by_kernel.unknown) {
        (_, Some(unknown)) if unknown == count => "of unknown size".to_owned(),
        (moved, Some(0)) => known(moved.map(bytes)),
        (moved, unknown) => format!(
            "{} in {}, {} of unknown size",
            known(moved.map(bytes)),
            count - unknown.unwrap_or(0),
            known(unknown)
        ),
    };
    writeln!(
        out,
        "           {count} more by kernels, which are among the dispatches: {size}"
    )
}

/// Formats the dispatches by path: `doorbell 100.0 % (12), ring not watched, ...`. A path that was watched can be unknown.
fn paths(by_path: &ByPath, watched: &Capabilities) -> String {
    let is_watched = |path| match path {
        Path::Doorbell => watched.packets,
        Path::Ring => watched.kernel_rings,
        Path::Thunk => watched.thunk,
        Path::Unseen => watched.unseen,
    };
    each_path(by_path, |path| if is_watched(path) { "unknown" } else { "not watched" })
}

/// Formats the copies by path.
fn copy_paths(by_path: &ByPath) -> String {
    each_path(by_path, |_| "not watched")
}

fn each_path(by_path: &ByPath, missing: impl Fn(Path) -> &'static str) -> String {
    let total = by_path.seen();
    let one = |(path, count): (Path, Option<u64>)| match count {
        None => format!("{} {}", path.name(), missing(path)),
        Some(0) => format!("{} 0", path.name()),
        Some(n) => format!("{} {n} ({:.1} %)", path.name(), n as f64 * 100.0 / total as f64),
    };
    by_path.each().map(one).join(", ")
}

/// Formats counts by name, after what they are parts of; nothing without counts.
fn kinds(by_kind: &BTreeMap<String, u64>) -> String {
    if by_kind.is_empty() {
        return String::new();
    }
    format!(": {}", listed(by_kind))
}

pub(super) fn listed(counts: &BTreeMap<String, u64>) -> String {
    let one = |(name, n): (&String, &u64)| format!("{} {n}", Terminal(name));
    counts.iter().map(one).collect::<Vec<_>>().join(", ")
}
