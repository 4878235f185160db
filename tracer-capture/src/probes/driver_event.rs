//! Trace events of amdgpu itself: which of them this kernel has, and the offsets of their fields.
//!
//! Each event is optional, and so is each field: an event without its ring's name still counts. A kernel without the driver has
//! none of them.

use aya::EbpfLoader;
use tracer_common::{
    offset::ABSENT,
    record::{DriverEventLayout, driver_event_kind as number},
};

use super::{Plain, Prober, tracefs::Format};
use crate::{CaptureError, inventory::Probe};
use tracer_core::family::Family;
use tracer_core::words::Named;

/// The group of the events.
const GROUP: &str = "amdgpu";
const FAMILY: Family = Family::DriverEvent;

/// Trace events of amdgpu (drivers/gpu/drm/amd/amdgpu/amdgpu_trace.h), with their numbers in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", prefix = "amdgpu_")]
#[repr(u16)]
pub enum DriverEventKind {
    /// A client's command submission (AMDGPU_CS).
    CsIoctl = number::CS_IOCTL,
    /// The driver takes a job from its scheduler.
    SchedRunJob = number::SCHED_RUN_JOB,
    /// A buffer moves to other memory.
    BoMove = number::BO_MOVE,
    /// A job flushes the address translations of an address space.
    VmFlush = number::VM_FLUSH,
    /// A job cleans registers and LDS between processes.
    CleanerShader = number::CLEANER_SHADER,
}

/// The events, with the program for each and the variable that holds its layout.
pub const EVENTS: [(DriverEventKind, &str, &str); 5] = [
    (DriverEventKind::CsIoctl, "driver_event_cs", "DRIVER_EVENT_CS"),
    (DriverEventKind::SchedRunJob, "driver_event_run", "DRIVER_EVENT_RUN"),
    (DriverEventKind::BoMove, "driver_event_move", "DRIVER_EVENT_MOVE"),
    (DriverEventKind::VmFlush, "driver_event_flush", "DRIVER_EVENT_FLUSH"),
    (
        DriverEventKind::CleanerShader,
        "driver_event_cleaner",
        "DRIVER_EVENT_CLEANER",
    ),
];

/// The way in which the events are read on this kernel.
#[derive(Debug)]
pub struct Plan {
    /// The layout of each of [`EVENTS`]. An error says that this kernel does not have the event, or that its format file is not
    /// understood.
    layouts: [Result<Plain<DriverEventLayout>, CaptureError>; EVENTS.len()],
}

/// The layout of an event that cannot be read.
static NONE: Plain<DriverEventLayout> = Plain(DriverEventLayout::NONE);

impl Plan {
    /// Reads the plan from tracefs.
    #[must_use]
    pub fn read() -> Self {
        Self::of(|event| Format::read(GROUP, event))
    }

    /// Creates the plan from the formats that `read` returns for each event.
    fn of(read: impl Fn(&str) -> Result<Format, CaptureError>) -> Self {
        Self {
            layouts: EVENTS.map(|(kind, ..)| read(kind.name()).map(|format| Plain(layout(kind, &format)))),
        }
    }

    /// Passes the layouts to the programs.
    pub fn apply<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        for ((.., variable), layout) in EVENTS.into_iter().zip(&self.layouts) {
            loader.override_global(variable, layout.as_ref().unwrap_or(&NONE), true);
        }
    }

    /// Attaches to the events that exist. Events that this kernel lacks are not listed as probes, because none of them is required.
    pub fn attach(&self, prober: &mut Prober) -> Vec<Probe> {
        let events = EVENTS.into_iter().zip(&self.layouts);
        let probes = events.filter_map(|((kind, program, _), layout)| {
            let name = kind.name();
            match layout {
                Ok(_) => Some(prober.tracepoint(program, FAMILY, GROUP, name)),
                Err(CaptureError::NoEvent(_)) => None,
                Err(error) => Some(Probe {
                    family: FAMILY,
                    target: format!("{GROUP}:{name}"),
                    role: program.to_owned(),
                    error: Some(error.to_string()),
                    ..Probe::default()
                }),
            }
        });
        probes.collect()
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
