//! Trace events of amdgpu itself: which of them this kernel has, and the offsets of their fields.
//!
//! Each event is optional, and so is each field: an event without its ring's name still counts. A kernel without the driver has
//! none of them.

use aya::{EbpfLoader, Pod};
use tracer_common::{offset::ABSENT, record::DriverEventLayout};

use super::{Prober, tracefs::Format};
use crate::{CaptureError, inventory::Probe};
use tracer_core::family::Family;
use tracer_core::words::Named;

/// The group of the events.
const GROUP: &str = "amdgpu";
const FAMILY: Family = Family::DriverEvent;

/// Trace events of amdgpu (drivers/gpu/drm/amd/amdgpu/amdgpu_trace.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", prefix = "amdgpu_")]
pub enum DriverEventKind {
    /// A client's command submission (AMDGPU_CS).
    CsIoctl,
    /// The driver takes a job from its scheduler.
    SchedRunJob,
    /// A buffer moves to other memory.
    BoMove,
    /// A job flushes the address translations of an address space.
    VmFlush,
    /// A job cleans registers and LDS between processes.
    CleanerShader,
}

impl DriverEventKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::CsIoctl,
        Self::SchedRunJob,
        Self::BoMove,
        Self::VmFlush,
        Self::CleanerShader,
    ];
}

/// The way in which the events are read on this kernel.
#[derive(Debug)]
pub struct Plan {
    events: [Planned; DriverEventKind::ALL.len()],
}

/// One of the events.
#[derive(Debug)]
struct Planned {
    kind: DriverEventKind,
    /// The layout for the program: [`DriverEventLayout::NONE`] unless the format file says more.
    layout: Plain,
    state: State,
}

#[derive(Debug)]
enum State {
    /// This kernel does not have the event.
    Absent,
    Usable,
    /// The format file of the event is not understood.
    Damaged(CaptureError),
}

/// A layout, as the programs take it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plain(DriverEventLayout);
// SAFETY: the type is `repr(C)` and consists of u32 only.
unsafe impl Pod for Plain {}

impl Plan {
    /// Reads the plan from tracefs.
    #[must_use]
    pub fn read() -> Self {
        Self::of(|event| Format::read(GROUP, event))
    }

    /// Creates the plan from the formats that `read` returns for each event.
    fn of(read: impl Fn(&str) -> Result<Format, CaptureError>) -> Self {
        Self {
            events: DriverEventKind::ALL.map(|kind| {
                let (layout, state) = match read(kind.name()) {
                    Ok(format) => (layout(kind, &format), State::Usable),
                    Err(CaptureError::NoEvent(_)) => (DriverEventLayout::NONE, State::Absent),
                    Err(error) => (DriverEventLayout::NONE, State::Damaged(error)),
                };
                Planned {
                    kind,
                    layout: Plain(layout),
                    state,
                }
            }),
        }
    }

    /// Passes the layouts to the programs.
    pub fn apply<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        for event in &self.events {
            loader.override_global(program(event.kind).1, &event.layout, true);
        }
    }

    /// Attaches to the events that exist. Events that this kernel lacks are not listed as probes, because none of them is required.
    pub fn attach(&self, prober: &mut Prober) -> Vec<Probe> {
        let attach = |event: &Planned| {
            let (program, name) = (program(event.kind).0, event.kind.name());
            match &event.state {
                State::Absent => None,
                State::Usable => Some(prober.tracepoint(program, FAMILY, GROUP, name)),
                State::Damaged(error) => Some(Probe {
                    family: FAMILY,
                    target: format!("{GROUP}:{name}"),
                    role: program.to_owned(),
                    error: Some(error.to_string()),
                    ..Probe::default()
                }),
            }
        };
        self.events.iter().filter_map(attach).collect()
    }
}

/// Returns the program for an event, and the variable that holds its layout.
const fn program(kind: DriverEventKind) -> (&'static str, &'static str) {
    match kind {
        DriverEventKind::CsIoctl => ("driver_event_cs", "DRIVER_EVENT_CS"),
        DriverEventKind::SchedRunJob => ("driver_event_run", "DRIVER_EVENT_RUN"),
        DriverEventKind::BoMove => ("driver_event_move", "DRIVER_EVENT_MOVE"),
        DriverEventKind::VmFlush => ("driver_event_flush", "DRIVER_EVENT_FLUSH"),
        DriverEventKind::CleanerShader => ("driver_event_cleaner", "DRIVER_EVENT_CLEANER"),
    }
}

fn layout(kind: DriverEventKind, format: &Format) -> DriverEventLayout {
    let at = |name, size| format.offset(name, size).unwrap_or(ABSENT);
    // Kernels before 6.17 keep the lower halves of both fields.
    let fence_bytes = if format.offset("seqno", 8).is_some() { 8 } else { 4 };
    let base = DriverEventLayout {
        ring: format.string("ring").unwrap_or(ABSENT),
        ..DriverEventLayout::NONE
    };
    match kind {
        // `fence` is never assigned in the event (amdgpu_trace.h): it holds whatever was there before.
        DriverEventKind::CsIoctl | DriverEventKind::SchedRunJob => DriverEventLayout {
            context: at("context", fence_bytes),
            seqno: at("seqno", fence_bytes),
            fence_bytes,
            job_id: at("sched_job_id", 8),
            ibs: at("num_ibs", 4),
            ..base
        },
        DriverEventKind::BoMove => DriverEventLayout {
            bytes: at("bo_size", 8),
            old_placement: at("old_placement", 4),
            new_placement: at("new_placement", 4),
            ..base
        },
        DriverEventKind::VmFlush => DriverEventLayout {
            vmid: at("vmid", 4),
            ..base
        },
        DriverEventKind::CleanerShader => DriverEventLayout {
            seqno: at("seqno", fence_bytes),
            fence_bytes,
            ..base
        },
    }
}

#[cfg(test)]
#[path = "driver_event/tests.rs"]
mod tests;
