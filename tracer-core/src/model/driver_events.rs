//! Trace events of the kernel driver: the processes that they belong to, and names for their numbers.

use tracer_common::placement;

use crate::event::{DriverEvent as Event, DriverEventKind as Kind};
use crate::fact::DriverEvent;

/// Returns the row for an event.
pub(super) fn fact(event: &Event<'_>) -> DriverEvent {
    let ours = context_tells(event.kind);
    DriverEvent {
        time_ns: event.origin.time_ns,
        event: event.kind.name().to_owned(),
        pid: ours.then_some(event.origin.pid),
        tid: ours.then_some(event.origin.tid),
        traced: ours.then_some(event.traced),
        ring: event.ring.map(|name| String::from_utf8_lossy(name).into_owned()),
        context: event.context,
        seqno: event.seqno,
        job_id: event.job_id,
        ibs: event.ibs,
        vmid: event.vmid,
        bytes: event.bytes,
        old_placement: event.old_placement.map(word),
        new_placement: event.new_placement.map(word),
    }
}

/// Returns whether the event occurs in the thread that requested the work.
///
/// amdgpu_cs_submit (amdgpu_cs.c) emits amdgpu_cs_ioctl in the ioctl. A buffer is moved by the thread that needs its memory, or
/// that needs the buffer at its new place. The other events come from amdgpu_job_run, which the scheduler calls in a thread of its
/// own.
const fn context_tells(kind: Kind) -> bool {
    matches!(kind, Kind::CsIoctl | Kind::BoMove)
}

fn word(number: u32) -> String {
    placement::name(number).map_or_else(|| number.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Origin;

    fn event(kind: Kind) -> Event<'static> {
        Event {
            origin: Origin {
                time_ns: 5,
                pid: 7,
                tid: 70,
            },
            kind,
            ring: None,
            context: None,
            seqno: None,
            job_id: None,
            ibs: None,
            vmid: None,
            bytes: None,
            old_placement: None,
            new_placement: None,
            traced: true,
        }
    }

    #[test]
    fn what_comes_in_threads_of_the_kernel_is_nobodys() {
        for kind in [Kind::SchedRunJob, Kind::VmFlush, Kind::CleanerShader] {
            let fact = fact(&event(kind));
            assert_eq!((fact.pid, fact.tid, fact.traced), (None, None, None), "{kind:?}");
        }
        for kind in [Kind::CsIoctl, Kind::BoMove] {
            let fact = fact(&event(kind));
            assert_eq!(
                (fact.pid, fact.tid, fact.traced),
                (Some(7), Some(70), Some(true)),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn placements_are_words_and_unknown_ones_numbers() {
        let moved = |old, new| {
            let fact = fact(&Event {
                old_placement: old,
                new_placement: new,
                ..event(Kind::BoMove)
            });
            (fact.old_placement, fact.new_placement)
        };
        let told = |old: &str, new: &str| (Some(old.to_owned()), Some(new.to_owned()));
        assert_eq!(moved(Some(2), Some(1)), told("vram", "gtt"));
        assert_eq!(moved(Some(u32::MAX), Some(0)), told("none", "system"));
        assert_eq!(moved(Some(99), Some(8)), told("99", "mmio-remap"));
        assert_eq!(moved(None, None), (None, None));
    }

    /// Values that the event does not give are not invented, and no other value of the event is dropped.
    #[test]
    fn numbers_pass_unchanged() {
        let fact = fact(&Event {
            ring: Some(b"comp_1.0.0"),
            context: Some(3),
            seqno: Some(9),
            job_id: Some(4),
            ibs: Some(2),
            vmid: Some(8),
            bytes: Some(4096),
            ..event(Kind::CsIoctl)
        });
        assert_eq!(fact.ring.as_deref(), Some("comp_1.0.0"));
        assert_eq!((fact.context, fact.seqno, fact.job_id), (Some(3), Some(9), Some(4)));
        assert_eq!((fact.ibs, fact.vmid, fact.bytes), (Some(2), Some(8), Some(4096)));
    }
}
