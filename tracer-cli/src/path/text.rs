//! The path of a packet for people: one line per step, with the time since the launch began.

use std::fmt::Write;

use tracer_common::aql::{Packet as Aql, Scope};
use tracer_core::{
    foreign::Terminal,
    packet_path::{Packet, PacketPath},
    tables::{Dispatch, Evidence, OtherPacket, Path, Table, Unread},
    units::{bytes, duration},
    words::{Named, count},
};
use tracer_export::folded;
use tracer_store::manifest::Manifest;

use crate::{report::layout::Layout, units::known};

/// The maximum number of functions of a stack.
const MAX_FRAMES: usize = 48;
/// Columns of the times.
const TIMES: usize = 12;

/// Returns the path as text.
pub fn path(path: &PacketPath, manifest: &Manifest, layout: Layout) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text, path, manifest);
    layout.wrap(&text, TIMES)
}

fn write(out: &mut String, path: &PacketPath, manifest: &Manifest) -> std::fmt::Result {
    heading(out, path, manifest)?;
    let zero = path.begin_ns().unwrap_or_else(|| doorbell_ns(path));
    let mut step = |at_ns: u64, what: String| {
        let since = match at_ns.checked_sub(zero) {
            Some(since) => format!("+{}", duration(since)),
            None => format!("-{}", duration(zero - at_ns)),
        };
        writeln!(out, "{since:>10}  {what}")
    };
    for call in &path.calls {
        let stream = match call.stream {
            None => String::new(),
            Some(0) => ", default stream".to_owned(),
            Some(stream) => format!(", stream {stream:#x}"),
        };
        let (function, layer) = (Terminal(&call.function), Terminal(&call.layer));
        step(
            call.enter_ns,
            format!("{function} ({layer}){stream}, thread {}", call.tid),
        )?;
    }
    for ioctl in &path.ioctls {
        let took = known(ioctl.duration_ns().map(duration));
        step(ioctl.enter_ns, format!("ioctl {}: {took}", Terminal(&ioctl.name)))?;
    }
    if let Packet::Dispatch(dispatch) = &path.packet {
        if let Some(ns) = dispatch.reserve_ns {
            step(ns, format!("index {} reserved", path.index))?;
        } else if let Some(ns) = dispatch.unreserved_ns {
            step(ns, format!("index {} not reserved yet", path.index))?;
        }
    }
    match &path.doorbell {
        Some(doorbell) => {
            let (value, published) = (doorbell.value, count(doorbell.published, "packet"));
            let (read, write) = (doorbell.read_index, doorbell.write_index);
            let indexes = format!("read index {read}, write index {write}");
            step(
                doorbell.time_ns,
                format!("doorbell {value} stored, which publishes {published}; {indexes}"),
            )?;
        }
        None => writeln!(out, "{:>10}  doorbell: {}", "", no_doorbell(&path.packet))?,
    }
    stack(out, path, manifest)?;
    taken(out, path, zero)?;
    let details = match &path.packet {
        Packet::Dispatch(dispatch) => fields(dispatch),
        Packet::InRun(run) => format!(
            "packet      one of a run of {}: the trace has no fields of single ones",
            count(run.count, "dispatch")
        ),
        Packet::Other(other) => format!(
            "packet      {}, header {:#06x}, completion signal {:#x}{}",
            other.kind.name(),
            other.header,
            other.completion_signal,
            waits(other.waits_for)
        ),
    };
    writeln!(out, "{details}")?;
    writeln!(out, "evidence    {}", evidence(path))
}

/// Returns the signals that a barrier waits for.
fn waits(signals: Option<[u64; 5]>) -> String {
    let Some(signals) = signals else { return String::new() };
    let signals: Vec<_> = signals
        .iter()
        .filter(|&&signal| signal != 0)
        .map(|signal| format!("{signal:#x}"))
        .collect();
    match signals.is_empty() {
        true => ", waits for no signal".to_owned(),
        false => format!(", waits for {}", signals.join(", ")),
    }
}

fn heading(out: &mut String, path: &PacketPath, manifest: &Manifest) -> std::fmt::Result {
    let (what, way) = match &path.packet {
        Packet::Dispatch(row) => (kernel(row.kernel.as_deref(), Some(row.kernel_object)), row.path),
        Packet::InRun(row) => (kernel(row.kernel.as_deref(), row.kernel_object), row.path),
        Packet::Other(row) => (row.kind.name().to_owned(), row.path),
    };
    writeln!(out, "{what}")?;
    let mut place = format!("packet {} of queue {}", path.index, path.packet.queue());
    if let Some(queue) = &path.queue {
        let (id, gpu) = (known(queue.queue_id), known(queue.gpu_id));
        let _ = write!(place, " (KFD queue {id}, gpu_id {gpu}, process {})", queue.pid);
    }
    writeln!(out, "{place}, path {}", way.name())?;
    if let Some(sign) = &manifest.simulated {
        writeln!(out, "simulated: {}; no time here is from a real GPU", Terminal(sign))?;
    }
    writeln!(out)
}

fn kernel(name: Option<&str>, object: Option<u64>) -> String {
    match (name, object) {
        (Some(name), _) => Terminal(name).to_string(),
        (None, Some(object)) => format!("kernel {object:#x}"),
        (None, None) => "a kernel of a run of several".to_owned(),
    }
}

/// Returns the time of the doorbell; of a packet that nothing rang for, the time at which tracer found it.
fn doorbell_ns(path: &PacketPath) -> u64 {
    match (&path.doorbell, &path.packet) {
        (Some(doorbell), _) => doorbell.time_ns,
        (None, Packet::Dispatch(row)) => row.time_ns,
        (None, Packet::InRun(row)) => row.begin_ns,
        (None, Packet::Other(row)) => row.time_ns,
    }
}

fn no_doorbell(packet: &Packet) -> &'static str {
    let way = match packet {
        Packet::Dispatch(row) => row.path,
        Packet::InRun(_) => return "without a row: doorbells were aggregated",
        Packet::Other(row) => row.path,
    };
    match way {
        Path::Unseen => "none was seen: the GPU took the packet without one that a probe saw",
        _ => "the trace has no row of it",
    }
}

/// Writes the functions that its thread was in, the innermost first, if the recording has stacks.
fn stack(out: &mut String, path: &PacketPath, manifest: &Manifest) -> std::fmt::Result {
    if manifest.count(Table::Stacks).unwrap_or(0) == 0 {
        return Ok(());
    }
    let Some(stack) = &path.stack else {
        return writeln!(out, "stack       not taken, or above the limit of stacks per second");
    };
    let Some(frames) = &stack.frames else {
        return writeln!(out, "stack       unknown: the process had exited");
    };
    let frames: Vec<&str> = frames.lines().rev().collect();
    for (at, frame) in frames.iter().take(MAX_FRAMES).enumerate() {
        let name = if at == 0 { "stack" } else { "" };
        writeln!(out, "{name:<11} {}", Terminal(&folded::frame(frame)))?;
    }
    match (frames.len().saturating_sub(MAX_FRAMES) as u64, stack.complete) {
        (0, true) => Ok(()),
        (0, false) => writeln!(out, "{:<11} truncated: its callers are missing", ""),
        (more, _) => writeln!(out, "{:<11} and {} more", "", count(more, "caller")),
    }
}

/// Writes when the GPU took the packet, and when it finished.
fn taken(out: &mut String, path: &PacketPath, zero: u64) -> std::fmt::Result {
    let since = |ns: u64| duration(ns.saturating_sub(zero));
    let range = match (path.not_taken, path.taken) {
        (Some(before), Some(after)) => format!(
            "taken between +{} (read index {}) and +{} (read index {}), by samples",
            since(before.time_ns),
            before.read_index,
            since(after.until_ns),
            after.read_index
        ),
        (None, Some(after)) => format!(
            "taken before +{}: read index {} at a sample",
            since(after.until_ns),
            after.read_index
        ),
        (Some(before), None) => format!(
            "unknown when it was taken: the last sample, at +{}, had read index {}",
            since(before.time_ns),
            before.read_index
        ),
        (None, None) => "unknown when it was taken: no sample of the queue is recorded".to_owned(),
    };
    writeln!(out, "GPU         {range}")?;
    let done = match &path.gpu {
        None => format!("unknown: {}", why_no_time(&path.packet)),
        Some(gpu) => match (gpu.start_ns, gpu.end_ns) {
            (Some(start), Some(end)) => format!(
                "ran from +{} to +{} ({}), by the GPU's clock, +- {}",
                since(start),
                since(end),
                duration(end.saturating_sub(start)),
                known(gpu.clock_error_ns.map(duration))
            ),
            _ => format!(
                "ran for {} ticks of the GPU's clock, which is not dated",
                gpu.end_ticks.saturating_sub(gpu.start_ticks)
            ),
        },
    };
    writeln!(out, "done        {done}")
}

fn why_no_time(packet: &Packet) -> &'static str {
    match packet {
        Packet::Dispatch(row) if row.completion_signal == 0 => "it has no completion signal",
        Packet::Dispatch(_) => "its completion signal has no times, or not for it alone",
        Packet::InRun(_) | Packet::Other(_) => "the trace has times of single dispatches only",
    }
}

/// Formats the fields of a dispatch packet.
fn fields(row: &Dispatch) -> String {
    let size = |size: [u32; 3]| size.map(|n| n.to_string()).join("x");
    format!(
        "packet      header {:#06x} ({}), setup {}\n            grid {}, workgroup {}, private {}, group {}\n            \
         kernel object {:#x}, kernarg {:#x}, completion signal {:#x}",
        row.header,
        flags(row.header),
        row.dimensions,
        size(row.grid),
        size(row.workgroup.map(u32::from)),
        bytes(row.private_segment.into()),
        bytes(row.group_segment.into()),
        row.kernel_object,
        row.kernarg,
        row.completion_signal
    )
}

/// Formats the barrier bit and the fences of a header.
fn flags(header: u16) -> String {
    let packet = Aql::with_header(header);
    let scope = |scope| match scope {
        Scope::None => "none",
        Scope::Agent => "agent",
        Scope::System => "system",
        Scope::Reserved => "reserved",
    };
    let barrier = if packet.barrier() { "barrier, " } else { "" };
    let (acquire, release) = (scope(packet.acquire()), scope(packet.release()));
    format!("{barrier}acquire {acquire}, release {release}")
}

fn evidence(path: &PacketPath) -> String {
    let packet = match &path.packet {
        Packet::Dispatch(row) => of_evidence(row.evidence),
        Packet::InRun(run) => of_evidence(run.evidence),
        Packet::Other(other) => of_other(other),
    };
    let at_least = if path.more_ioctls { "more than " } else { "" };
    let ioctls = match (path.begin_ns(), path.ioctls.len() as u64) {
        (None, _) => "the launch's begin is not recorded, so ioctls in it are unknown".to_owned(),
        (Some(_), 0) => "no ioctl of the thread from there to the doorbell".to_owned(),
        (Some(_), n) => format!(
            "{at_least}{} of the thread from there to the doorbell",
            count(n, "ioctl")
        ),
    };
    format!("{packet}; {ioctls}")
}

const fn of_evidence(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Header => "the packet's header was valid when tracer read it",
        Evidence::Body => "the GPU had taken the packet; the body left in its slot can only be a dispatch",
        Evidence::Log => "the runtime's log says that it wrote the packet; nobody read the packet or saw the doorbell",
    }
}

const fn of_other(packet: &OtherPacket) -> &'static str {
    match packet.unread {
        None => "the packet's header was read",
        Some(Unread::Reused) => "unread: its slot was used again before",
        Some(Unread::Consumed) => "unread: the GPU had taken it, and its body does not show its kind",
        Some(Unread::NeverValid) => "unread: its header never became valid",
        Some(Unread::Unreadable) => "unread: the process's memory could not be read",
    }
}
