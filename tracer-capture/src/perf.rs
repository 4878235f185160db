//! Perf events: the kernel samples registers at uprobes, and the stack at system calls, into one buffer per processor.

mod buffers;
mod event;
mod input;
mod probes;
mod record;
mod ring;

use std::{io, os::fd::OwnedFd, sync::Arc};

use crate::{
    CaptureError,
    kernel::uprobe_events,
    probes::{ring::GROUP, tracefs},
    samples::{IOCTL_EVENTS, Ioctls, OUR_IOCTLS, Parts, Program, Rings},
    sys,
};
use buffers::Buffers;
use input::PerfInput;

pub use probes::Probes;

/// Returns why perf events cannot be used here; `None` if they can.
#[must_use]
pub fn why_not() -> Option<String> {
    if let Some(error) = event::refused() {
        return Some(format!("perf_event_open: {error}"));
    }
    let has_uprobes = uprobe_events::is_writable() || event::has_uprobe_pmu();
    (!has_uprobes).then(|| {
        "the kernel reserves the uprobe PMU for cap_sys_admin, and uprobe_events of tracefs cannot be written; mount tracefs with \
         `mount -t tracefs nodev /sys/kernel/tracing`"
            .to_owned()
    })
}

/// Opens the buffers, with `bytes` for all processors together, and the events of every process. The calling thread must see
/// tracefs for ioctls to be captured; `not_seen` takes the reason if they are not. Returns the source's parts, and what attaches
/// probes.
///
/// # Errors
/// Fails with the kernel's error.
pub fn open(bytes: usize, not_seen: impl FnOnce(CaptureError)) -> Result<(Parts, Arc<Probes>), CaptureError> {
    let failed = |error| CaptureError::system("opening perf events", error);
    let processors = sys::online_processors().map_err(failed)?;
    let buffers = Buffers::open(&processors, bytes).map_err(failed)?;
    let shared = buffers.rings.iter().map(|ring| ring.event.try_clone());
    let shared: Vec<OwnedFd> = shared.collect::<io::Result<_>>().map_err(failed)?;
    let probes = Probes::new(processors.iter().copied().zip(shared).collect()).map_err(failed)?;
    let probes = Arc::new(probes);
    let mut events = Vec::new();
    let ioctls = ioctls(&probes, &mut events).map_err(not_seen).ok();
    let rings = Rings::read();
    for (name, step) in rings.iter().flat_map(Rings::steps) {
        let attributes = event::plain_trace_event(tracefs::number(GROUP, name)?);
        let opened = probes.trace_event(&attributes, Program::Ring(step));
        events.extend(opened.map_err(|error| CaptureError::system("opening a perf event of rings", error))?);
    }
    let input = Box::new(PerfInput::new(buffers, processors, Arc::clone(&probes), events));
    Ok((Parts { input, ioctls, rings }, probes))
}

/// Opens the events of ioctls.
fn ioctls(probes: &Probes, events: &mut Vec<OwnedFd>) -> Result<Ioctls, CaptureError> {
    let ioctls = Ioctls::read()?;
    let [enter, _] = IOCTL_EVENTS;
    for (name, program) in IOCTL_EVENTS.into_iter().zip([Program::IoctlEnter, Program::IoctlExit]) {
        let attributes = event::trace_event(tracefs::number("syscalls", name)?);
        let opened = probes.trace_event(&attributes, program);
        let opened = opened.map_err(|error| CaptureError::system("opening a perf event of system calls", error))?;
        if name == enter {
            // Without the filter more records come, and none is missing.
            opened.iter().for_each(|event| drop(event::filter(event, OUR_IOCTLS)));
        }
        events.extend(opened);
    }
    Ok(ioctls)
}
