//! The perf backend: for machines that do not permit eBPF.

use std::{
    io,
    os::fd::AsFd,
    sync::{Arc, mpsc},
};

use tracer_core::family::Family;

use super::{Options, SetUp, Source};
use crate::{
    CaptureError,
    backend::not_by_perf,
    examination::Holds,
    inventory::{Inventory, Probe},
    pause::{
        entries::Entries,
        guardian::{Guardian, Left},
        keeper::{Keeper, Pauses},
        known::KnownFiles,
    },
    perf::{self, Opened},
    probes::{Prober, ring},
    sys,
};

/// Most processes that wait to be examined. Further ones are not paused, and count as lost.
const MAX_HOLDS: usize = 4096;

/// What a recording by perf lacks, for its readers.
const WEAKER: &str = "captured by perf events, not eBPF: copies, calls of the kernel driver and who created queues were not watched \
    (docs/backends.md)";

/// What the uprobe PMU lacks beside that.
const BY_PMU: &str = "uprobes use the uprobe PMU, because tracefs cannot be written: a doorbell whose thread moves to another processor \
    at that moment is seen twice or not at all; mount tracefs with `mount -t tracefs nodev /sys/kernel/tracing`";

/// Opens the buffers and the events of every process.
pub(super) fn set_up(
    options: Options,
    guardian: Option<&Guardian>,
    inventory: &mut Inventory,
) -> Result<SetUp, CaptureError> {
    if let Some(option) = not_by_perf(&options) {
        return Err(CaptureError::NeedsEbpf(option));
    }
    if let Some(reason) = perf::why_not() {
        return Err(CaptureError::NoPerf(reason));
    }
    let mut not_seen = None;
    let mut open = || {
        // Without tracefs the trace events of system calls have no numbers.
        let tracefs = sys::ensure_tracefs().map_err(CaptureError::NoTracefs).err();
        let opened = Opened::open(options.buffer_bytes as usize, |error| not_seen = Some(error));
        (opened, tracefs)
    };
    // A thread of its own: it may need its own mount namespace to see tracefs, which ends with the thread.
    let opened = std::thread::scope(|scope| scope.spawn(&mut open).join());
    let (opened, tracefs) =
        opened.map_err(|_| CaptureError::system("opening perf events", io::Error::other("a panic")))?;
    let opened = opened?;
    if opened.probes.named().is_none() {
        inventory.warn(BY_PMU.to_owned());
    }
    let error = not_seen.map(|error| tracefs.unwrap_or(error).to_string());
    inventory.warn(WEAKER.to_owned());
    inventory.add(vec![Probe {
        family: Family::Process,
        target: "perf side band".to_owned(),
        role: "forks, new programs and exits".to_owned(),
        ..Probe::default()
    }]);
    let ioctl = |event| trace_event(Family::Ioctl, "syscalls", event, error.clone());
    inventory.add(perf::IOCTL_EVENTS.map(ioctl).to_vec());
    if let Some(events) = opened.ring_events() {
        let job = |event| trace_event(Family::Ring, ring::GROUP, event, None);
        inventory.add(events.map(job).to_vec());
    }
    let (entries, memory) = Entries::in_memory()?;
    // No process is paused before the guardians can resume it.
    if let Some(guardian) = guardian {
        let named = opened.probes.named();
        let left = named.map_or(Left::Nothing, |named| Left::Uprobes(named.control(), &named.group));
        guardian.share(memory.as_fd(), left)?;
    }
    let keeper = Keeper::start(Pauses::new(entries, options.pause_limit))?;
    let prober = Prober::of_perf(Arc::clone(&opened.probes));
    let (sender, receiver) = mpsc::sync_channel(MAX_HOLDS);
    let source = opened.source(options.follow, Arc::clone(keeper.pauses()), sender);
    Ok(SetUp {
        source: Source::Perf(Box::new(source)),
        prober,
        keeper,
        known: KnownFiles::in_memory()?,
        holds: Holds::Channel(receiver, None),
    })
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
