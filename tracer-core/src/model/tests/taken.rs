//! Tests of packets that the GPU took without a doorbell, and that were read from their slots.

use super::*;
use crate::event::{Lost, Occasion, Progress};
use crate::tables::Evidence;

/// Packets that were read from index `first` on, at the read index before, and the write index after.
fn taken(trace: &mut Trace, time_ns: u64, indexes: (u64, u64), first: u64, packets: &[Packet]) {
    let packets = Packets::of_slots(by(time_ns, 0), HANDLE, RING, indexes, first, packets);
    trace.apply(&Event::Taken(packets));
}

fn sample(time_ns: u64, read_index: u64, occasion: Occasion, rung_end: Option<u64>) -> Event<'static> {
    Event::Progress(Progress {
        origin: by(time_ns, 0),
        after_ns: time_ns + 1,
        handle: HANDLE,
        read_index,
        write_index: read_index,
        rung_end,
        occasion,
    })
}

/// Returns index, path and evidence of each dispatch.
fn rows(trace: &Trace) -> Vec<(u64, Path, Evidence)> {
    let rows = trace.dispatches().into_iter();
    rows.map(|row| {
        assert_eq!((row.kernel_object, row.tid), ((row.index + 1) * 64, 0), "{row:?}");
        (row.index, row.path, row.evidence)
    })
    .collect()
}

fn unseen(indexes: impl Iterator<Item = u64>) -> Vec<(u64, Path, Evidence)> {
    indexes.map(|index| (index, Path::Unseen, Evidence::Body)).collect()
}

#[test]
fn bodies_of_unseen_packets_are_dispatches_and_reused_slots_are_unread() {
    let mut trace = Trace::created();
    // The write index shows that the slots of 0 and 1 were reserved again.
    let slots: Vec<Packet> = (0..4).map(consumed).collect();
    taken(&mut trace, 100, (4, 6), 0, &slots);
    trace.apply(&sample(200, 6, Occasion::Destroyed, Some(0)));
    taken(&mut trace, 201, (6, 6), 4, &[consumed(4), empty()]);
    trace.destroy(190, 210, 1);
    let queues = trace.finish();
    assert_eq!(rows(&trace), unseen(2..5));
    assert_eq!(trace.unread(), [(0, 2, Unread::Reused), (5, 1, Unread::Consumed)]);
    assert_eq!(
        (queues[0].unseen, queues[0].dispatches, queues[0].unread),
        (Some(6), 3, 3)
    );
    assert_eq!(trace.dispatches()[0].time_ns, 100);
}

#[test]
fn unseen_packets_that_cannot_be_dispatches_are_not_unread() {
    let mut trace = Trace::created();
    taken(&mut trace, 100, (3, 3), 0, &[pm4_ib(0), consumed(1), pm4_ib(2)]);
    trace.apply(&sample(200, 3, Occasion::Destroyed, Some(0)));
    trace.destroy(190, 210, 1);
    let queues = trace.finish();
    assert_eq!(rows(&trace), unseen(1..2));
    let other = |index| (index, PacketKind::VendorPm4Ib, Path::Unseen);
    assert_eq!(
        (trace.read_others(), trace.unread()),
        (vec![other(0), other(2)], Vec::new())
    );
    assert_eq!((queues[0].unseen, queues[0].unread), (Some(3), 0));
}

#[test]
fn a_body_whose_doorbell_arrives_belongs_to_the_doorbell() {
    let mut trace = Trace::created();
    taken(&mut trace, 100, (2, 2), 0, &[consumed(0), consumed(1)]);
    let rung = Doorbell {
        rung_end: Some(0),
        ..doorbell(90, 1, 0..2, 0, 2)
    };
    trace.ring(rung, &[dispatch(0), dispatch(1)]);
    trace.apply(&sample(200, 2, Occasion::Destroyed, Some(2)));
    trace.destroy(190, 210, 1);
    let queues = trace.finish();
    assert_eq!(trace.indexes(), [0, 1]);
    assert!(trace.dispatches().iter().all(|row| row.path == Path::Doorbell));
    assert_eq!(queues[0].unseen, Some(0));
}

/// Without any doorbell, rows appear once a sample is a second old. A lost doorbell could have published the packets.
#[test]
fn rows_appear_while_the_queue_exists_unless_doorbells_were_lost() {
    const SECOND: u64 = 1_000_000_000;
    for (lost, expected) in [(false, unseen(0..2)), (true, Vec::new())] {
        let mut trace = Trace::created();
        if lost {
            trace.apply(&Event::Lost(Lost {
                time_ns: 50,
                source: "doorbell-ring",
                count: 1,
            }));
        }
        taken(&mut trace, 100, (3, 3), 0, &[consumed(0), consumed(1), consumed(2)]);
        trace.apply(&sample(100, 2, Occasion::Sample, None));
        trace.apply(&sample(SECOND, 3, Occasion::Sample, None));
        assert_eq!(rows(&trace), []);
        trace.apply(&sample(SECOND + 200, 3, Occasion::Sample, None));
        assert_eq!(rows(&trace), expected);
        trace.apply(&sample(2 * SECOND, 3, Occasion::TraceEnd, None));
        let queues = trace.finish();
        let all = if lost { None } else { Some(3) };
        assert_eq!((queues[0].unseen, queues[0].published), (all, all.unwrap_or(0)));
        assert_eq!(rows(&trace), unseen(0..queues[0].published));
    }
}

#[test]
fn only_rings_without_a_doorbell_are_to_be_read() {
    let mut trace = Trace::created();
    let ring = |trace: &Trace| trace.model.positions().next().map(|position| position.ring);
    assert_eq!(ring(&trace), Some(Some((0, RING))));
    let revision = trace.model.revision();
    trace.ring(doorbell(100, 0, 0..1, 0, 1), &[dispatch(0)]);
    assert_eq!(ring(&trace), Some(None));
    assert_ne!(trace.model.revision(), revision);
}
