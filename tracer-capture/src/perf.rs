//! Capture by perf events, for machines that do not permit eBPF.
//!
//! The kernel samples registers at uprobes, and the stack at system calls, into one buffer per processor. No code of tracer runs
//! in the kernel, so nothing reads the ring of a queue at its doorbell: [`queues`] reads it from the process's memory right after.
//! By then the GPU may have taken the packets, or their slots may be used again. Indexes read around each copy
//! say which, as for packets that eBPF programs could not read.
//!
//! docs/backends.md says what is weaker, and by how much.

mod buffers;
mod changes;
mod event;
mod ioctls;
mod probes;
mod processes;
mod queues;
mod record;
mod ring;
mod rings;
mod source;

use crate::kernel::uprobe_events;

pub use ioctls::EVENTS as IOCTL_EVENTS;
pub use probes::{Place, Probes, Program};
pub use source::{Opened, Source};

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
