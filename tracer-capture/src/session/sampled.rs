//! The backends without eBPF: perf and ftrace.

use std::{
    io,
    os::fd::AsFd,
    sync::{Arc, mpsc},
};

use tracer_core::{backend::Backend, family::Family};

use super::{Options, SetUp, Source};
use crate::{
    CaptureError,
    backend::not_by_samples,
    examination::Holds,
    ftrace::{self, Instance},
    inventory::{Inventory, Probe},
    pause::{
        entries::Entries,
        guardian::{Guardian, Left},
        keeper::{Keeper, Pauses},
        known::KnownFiles,
    },
    perf,
    probes::{Prober, ring},
    samples::{self, Attach, IOCTL_EVENTS, Parts},
    sys,
};

/// Most processes that wait to be examined. Further ones are not paused, and count as lost.
const MAX_HOLDS: usize = 4096;

/// What the uprobe PMU lacks beside that.
const BY_PMU: &str = "uprobes use the uprobe PMU, because tracefs cannot be written: a doorbell whose thread moves to another processor \
    at that moment is seen twice or not at all; mount tracefs with `mount -t tracefs nodev /sys/kernel/tracing`";

/// Opens a backend's buffers and the events of every process.
pub(super) fn set_up(
    options: Options,
    guardian: Option<&Guardian>,
    inventory: &mut Inventory,
) -> Result<SetUp, CaptureError> {
    if let Some(option) = not_by_samples(&options) {
        return Err(CaptureError::NeedsEbpf(option));
    }
    let (entries, memory) = Entries::in_memory()?;
    // No process is paused, and nothing is left, before the guardians know it.
    let share = |left: Left<'_>| guardian.map_or(Ok(()), |guardian| guardian.share(memory.as_fd(), left));
    let opened = match options.backend {
        Backend::Ftrace => ftrace(&options, inventory, share)?,
        _ => perf(&options, inventory, share)?,
    };
    let ioctl = |event| trace_event(Family::Ioctl, "syscalls", event, opened.no_ioctls.clone());
    inventory.add(IOCTL_EVENTS.map(ioctl).to_vec());
    if let Some(rings) = &opened.parts.rings {
        let job = |event| trace_event(Family::Ring, ring::GROUP, event, None);
        inventory.add(rings.names.map(job).to_vec());
    }
    let keeper = Keeper::start(Pauses::new(entries, options.pause_limit))?;
    let prober = Prober::of_samples(opened.probes);
    let (sender, receiver) = mpsc::sync_channel(MAX_HOLDS);
    let source = samples::Source::new(opened.parts, options.follow, Arc::clone(keeper.pauses()), sender);
    Ok(SetUp {
        source: Source::Sampled(Box::new(source)),
        prober,
        keeper,
        known: KnownFiles::in_memory()?,
        holds: Holds::Channel(receiver, None),
    })
}

/// A backend that is open.
struct Opened {
    parts: Parts,
    probes: Arc<dyn Attach>,
    /// Why ioctls are not captured.
    no_ioctls: Option<String>,
}

/// Calls a function in a thread of its own: it may need its own mount namespace to see tracefs, which ends with the thread.
fn apart<T: Send>(open: impl FnOnce() -> Result<T, CaptureError> + Send) -> Result<T, CaptureError> {
    let opened = std::thread::scope(|scope| scope.spawn(open).join());
    opened.map_err(|_| CaptureError::system("opening trace events", io::Error::other("a panic")))?
}

fn perf(
    options: &Options,
    inventory: &mut Inventory,
    share: impl FnOnce(Left<'_>) -> Result<(), CaptureError>,
) -> Result<Opened, CaptureError> {
    if let Some(reason) = perf::why_not() {
        return Err(CaptureError::NotUsable("perf", reason));
    }
    let (opened, no_ioctls) = apart(|| {
        // Without tracefs the trace events of system calls have no numbers.
        let tracefs = sys::ensure_tracefs().map_err(CaptureError::NoTracefs).err();
        let mut not_seen = None;
        let opened = perf::open(options.buffer_bytes as usize, |error| not_seen = Some(error))?;
        Ok((opened, not_seen.map(|error| tracefs.unwrap_or(error).to_string())))
    })?;
    let (parts, probes) = opened;
    match probes.named() {
        Some(named) => share(Left::Uprobes(named.control(), &named.group))?,
        None => {
            inventory.warn(BY_PMU.to_owned());
            share(Left::Nothing)?;
        }
    }
    inventory.warn(weaker("perf events"));
    inventory.add(vec![of_processes("perf side band")]);
    Ok(Opened {
        parts,
        probes,
        no_ioctls,
    })
}

fn ftrace(
    options: &Options,
    inventory: &mut Inventory,
    share: impl FnOnce(Left<'_>) -> Result<(), CaptureError> + Send,
) -> Result<Opened, CaptureError> {
    let (parts, instance) = apart(|| {
        sys::ensure_tracefs().map_err(CaptureError::NoTracefs)?;
        let instance = Arc::new(Instance::create(options.buffer_bytes as usize)?);
        share(instance.left())?;
        Ok((ftrace::open(&instance)?, instance))
    })?;
    inventory.warn(weaker("ftrace"));
    inventory.add(vec![of_processes("trace events of processes")]);
    Ok(Opened {
        parts,
        // Its attachments share it.
        probes: Arc::new(instance),
        no_ioctls: None,
    })
}

/// Returns what a recording lacks, for its readers.
fn weaker(by: &str) -> String {
    format!(
        "captured by {by}, not eBPF: copies, calls of the kernel driver and who created queues were not watched (docs/backends.md)"
    )
}

fn of_processes(target: &str) -> Probe {
    Probe {
        family: Family::Process,
        target: target.to_owned(),
        role: "forks, new programs and exits".to_owned(),
        ..Probe::default()
    }
}

fn trace_event(family: Family, group: &str, event: &str, error: Option<String>) -> Probe {
    Probe {
        family,
        target: format!("{group}:{event}"),
        role: event.to_owned(),
        error,
        ..Probe::default()
    }
}
