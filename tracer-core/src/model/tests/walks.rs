use super::*;
use crate::tables::{Evidence, Form};
use tracer_common::aql::amd_format;

#[test]
fn one_doorbell_publishes_every_packet_up_to_its_value() {
    let mut trace = Trace::created();
    trace.ring(doorbell(100, 2, 0..3, 0, 3), &[dispatch(0), dispatch(1), dispatch(2)]);
    assert_eq!(trace.indexes(), [0, 1, 2]);
    assert_eq!(trace.published(), [3]);
    let last = &trace.dispatches()[2];
    assert_eq!(
        (last.queue, last.pid, last.tid, last.time_ns, last.evidence),
        (0, PID, TID, 100, Evidence::Header)
    );
    assert!(
        matches!(trace.facts.last(), Some(Fact::Doorbell(_))),
        "after its packets"
    );
    let queue = &trace.finish()[0];
    assert_eq!(
        (queue.doorbells, queue.published, queue.dispatches, queue.unread),
        (1, 3, 3, 0)
    );
    assert_eq!(
        (queue.first_index, queue.last_index, queue.max_depth),
        (Some(0), Some(2), 3)
    );
}

#[test]
fn repeated_and_lower_values_publish_nothing() {
    let mut trace = Trace::created();
    trace.ring(doorbell(100, 1, 0..2, 0, 2), &[dispatch(0), dispatch(1)]);
    trace.ring(doorbell(110, 1, 2..2, 0, 2), &[]);
    trace.ring(doorbell(120, 0, 2..2, 0, 2), &[]);
    trace.ring(doorbell(130, 2, 2..3, 0, 3), &[dispatch(2)]);
    assert_eq!(trace.published(), [2, 0, 0, 1]);
    assert_eq!(trace.indexes(), [0, 1, 2]);
}

#[test]
fn an_unfinished_packet_is_taken_at_its_owners_lower_doorbell() {
    let mut trace = Trace::created();
    trace.ring(doorbell(100, 1, 0..2, 0, 2), &[empty(), dispatch(1)]);
    assert_eq!((trace.indexes(), trace.published()), (vec![1], vec![2]));
    // The next walk begins at the lowest missing index and covers the other one again.
    trace.ring(
        Doorbell {
            origin: by(110, 71),
            ..doorbell(110, 0, 0..2, 0, 2)
        },
        &[dispatch(0), dispatch(1)],
    );
    assert_eq!((trace.indexes(), trace.published()), (vec![1, 0], vec![2, 0]));
    assert_eq!(trace.dispatches()[1].tid, 71);
    assert_eq!(trace.finish()[0].unread, 0);
}

#[test]
fn the_packet_of_the_lap_before_is_not_taken_for_the_one_to_come() {
    let mut trace = Trace::created();
    let lap: Vec<_> = (0..4).map(dispatch).collect();
    trace.ring(doorbell(100, 3, 0..4, 0, 4), &lap);
    // The GPU is at 0. Slot 0 cannot contain packet 4 yet, although a producer has reserved it and rung.
    trace.ring(doorbell(110, 4, 4..5, 0, 5), &[dispatch(0)]);
    assert_eq!(trace.indexes(), [0, 1, 2, 3]);
    trace.ring(doorbell(120, 4, 4..5, 1, 5), &[dispatch(4)]);
    assert_eq!(trace.indexes(), [0, 1, 2, 3, 4]);
}

#[test]
fn bytes_of_a_slot_that_was_reserved_again_prove_nothing() {
    let mut trace = Trace::created();
    trace.ring(doorbell(100, 1, 0..2, 0, 5), &[dispatch(4), dispatch(1)]);
    assert_eq!(trace.indexes(), [1]);
    trace.finish();
    assert_eq!(trace.indexes(), [1]);
    assert_eq!(
        trace.unread(),
        [(0, 1, Unread::NeverValid)],
        "the GPU has not passed it"
    );
}

#[test]
fn an_index_out_of_reach_is_given_up_a_lap_later() {
    let mut trace = Trace::created();
    trace.ring(doorbell(100, 1, 0..2, 0, 2), &[empty(), dispatch(1)]);
    trace.ring(
        doorbell(110, 5, 2..6, 4, 6),
        &[consumed(2), consumed(3), dispatch(4), dispatch(5)],
    );
    assert_eq!(trace.unread(), [], "a walk that read it in time may still arrive");
    trace.ring(
        doorbell(120, 9, 6..10, 8, 10),
        &[consumed(6), consumed(7), dispatch(8), dispatch(9)],
    );
    assert_eq!(trace.unread(), [(0, 1, Unread::Reused)]);
    // From now on it is too late, even for a valid read.
    trace.packets(doorbell(105, 1, 0..1, 0, 2), &[dispatch(0)]);
    assert_eq!(trace.indexes(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_read_that_arrives_out_of_order_still_counts() {
    let mut trace = Trace::created();
    trace.ring(
        doorbell(110, 5, 2..6, 4, 6),
        &[consumed(2), consumed(3), dispatch(4), dispatch(5)],
    );
    trace.ring(doorbell(100, 1, 0..2, 0, 2), &[dispatch(0), dispatch(1)]);
    assert_eq!(trace.indexes(), [2, 3, 4, 5, 0, 1]);
    assert_eq!(trace.published(), [6, 0]);
    assert_eq!(trace.finish()[0].unread, 0);
}

#[test]
fn a_consumed_dispatch_is_known_by_its_body_and_others_are_unread_in_runs() {
    let mut trace = Trace::created();
    trace.ring(
        doorbell(100, 3, 0..4, 3, 4),
        &[empty(), empty(), consumed(2), dispatch(3)],
    );
    let evidence: Vec<_> = trace.dispatches().iter().map(|d| (d.index, d.evidence)).collect();
    assert_eq!(evidence, [(2, Evidence::Body), (3, Evidence::Header)]);
    assert_eq!(trace.unread(), [(0, 2, Unread::Consumed)]);
    let queue = &trace.finish()[0];
    assert_eq!((queue.published, queue.dispatches, queue.unread), (4, 2, 2));
}

/// Its row has the header that was read, of type INVALID.
#[test]
fn a_consumed_pm4_ib_is_known_by_its_body() {
    let mut trace = Trace::created();
    trace.ring(doorbell(100, 2, 0..3, 2, 3), &[empty(), pm4_ib(1), dispatch(2)]);
    assert_eq!(trace.unread(), [(0, 1, Unread::Consumed)]);
    assert_eq!(trace.read_others(), [(1, PacketKind::VendorPm4Ib, Path::Doorbell)]);
    let queue = &trace.finish()[0];
    assert_eq!(
        (queue.published, queue.dispatches, queue.other_packets, queue.unread),
        (3, 1, 1, 1)
    );
}

#[test]
fn what_is_missing_at_the_end_says_why() {
    let mut trace = Trace::created();
    // The first walk seen begins at 2. Earlier packets are lost.
    trace.ring(
        doorbell(100, 5, 2..6, 2, 6),
        &[dispatch(2), empty(), dispatch(4), empty()],
    );
    trace.ring(doorbell(110, 5, 6..6, 5, 6), &[]);
    trace.finish();
    let (reused, consumed, never) = (Unread::Reused, Unread::Consumed, Unread::NeverValid);
    // The GPU has passed 3 by now: its packet came after the walk, or went during it.
    assert_eq!(trace.unread(), [(0, 2, reused), (3, 1, consumed), (5, 1, never)]);
    let mut trace = Trace::created();
    trace.ring(doorbell(100, 1, 0..2, 0, 2), &[empty(), empty()]);
    trace.ring(doorbell(110, 1, 0..2, 1, 2), &[]);
    trace.finish();
    assert_eq!(trace.unread(), [(0, 1, consumed), (1, 1, never)]);
}

#[test]
fn unreadable_memory_leaves_the_value() {
    let blind = |time_ns, value| Doorbell {
        unreadable: true,
        ..doorbell(time_ns, value, 0..0, 0, 0)
    };
    let mut trace = Trace::created();
    trace.apply(&Event::Doorbell(blind(100, 1)));
    assert_eq!(trace.published(), [2]);
    trace.ring(doorbell(110, 1, 0..2, 0, 2), &[dispatch(0), empty()]);
    assert_eq!(trace.indexes(), [0], "read later");
    let queue = &trace.finish()[0];
    assert_eq!((trace.unread(), queue.doorbells), (vec![(1, 1, Unread::Unreadable)], 2));

    let mut trace = Trace::new();
    trace.apply(&Event::Doorbell(Doorbell {
        handle: 0,
        ..blind(100, 5)
    }));
    trace.apply(&Event::Doorbell(blind(110, 5)));
    assert_eq!(
        trace.doorbells().iter().map(|d| d.queue).collect::<Vec<_>>(),
        [None, Some(0)]
    );
    trace.finish();
    assert_eq!(
        trace.unread(),
        [(5, 1, Unread::Unreadable)],
        "of an unknown queue only that index is certain"
    );
}

#[test]
fn a_garbage_value_publishes_what_is_reserved() {
    let mut trace = Trace::created();
    let garbage = doorbell(100, u64::MAX, 0..2, 0, 2);
    trace.ring(
        Doorbell {
            beyond: true,
            ..garbage
        },
        &[dispatch(0), dispatch(1)],
    );
    assert_eq!((trace.published(), trace.indexes()), (vec![2], vec![0, 1]));
    // This also holds if no walk could show it: no queue is that long.
    let blind = Doorbell {
        unreadable: true,
        ..doorbell(110, 1 << 50, 0..0, 0, 0)
    };
    trace.apply(&Event::Doorbell(blind));
    assert_eq!(trace.published(), [2, 0]);
    trace.ring(doorbell(120, 2, 2..3, 2, 3), &[dispatch(2)]);
    assert_eq!((trace.published(), trace.finish()[0].published), (vec![2, 0, 1], 3));
}

#[test]
fn a_queue_that_garbage_began_begins_again_at_a_real_walk() {
    let mut trace = Trace::new();
    trace.apply(&Event::Doorbell(Doorbell {
        unreadable: true,
        ..doorbell(90, 1 << 60, 0..0, 0, 0)
    }));
    trace.ring(doorbell(100, 8, 8..9, 8, 9), &[dispatch(8)]);
    assert_eq!(
        (trace.indexes(), trace.unread()),
        (vec![8], vec![(1 << 60, 1, Unread::Unreadable)])
    );
    assert_eq!(trace.published(), [1, 1]);
}

#[test]
fn a_lost_doorbells_packets_count_and_the_next_is_not_credited_for_them() {
    let mut trace = Trace::created();
    trace.packets(doorbell(100, 1, 0..2, 0, 2), &[dispatch(0), dispatch(1)]);
    // The program had published 2. This is an older value.
    trace.ring(doorbell(110, 0, 0..2, 0, 2), &[dispatch(0), dispatch(1)]);
    assert_eq!((trace.indexes(), trace.published()), (vec![0, 1], vec![1]));
    assert_eq!(trace.finish()[0].published, 2);
}

#[test]
fn every_other_kind_has_its_name() {
    let mut vendor = Packet::ZERO;
    let kinds: Vec<_> = [(0, 1), (0, 2), (0, 9), (3, 0), (4, 0), (5, 0), (77, 0)]
        .iter()
        .map(|&(kind, format)| {
            (vendor.bytes[0], vendor.bytes[2], vendor.bytes[0x38]) = (kind, format, 0x40);
            vendor
        })
        .collect();
    let mut trace = Trace::created();
    trace.ring(
        Doorbell {
            ring_packets: 8,
            ..doorbell(100, 6, 0..7, 0, 7)
        },
        &kinds,
    );
    let named: Vec<_> = trace.others().iter().map(|packet| packet.kind).collect();
    use PacketKind::{AgentDispatch, BarrierAnd, BarrierOr, Undefined, VendorBarrierValue, VendorOther, VendorPm4Ib};
    assert_eq!(
        named,
        [
            VendorPm4Ib,
            VendorBarrierValue,
            VendorOther,
            BarrierAnd,
            AgentDispatch,
            BarrierOr,
            Undefined
        ]
    );
    // What is there in a packet of an unknown layout may be no signal.
    let signals: Vec<_> = trace.others().iter().map(|packet| packet.completion_signal).collect();
    assert_eq!(signals, [0x40, 0x40, 0, 0x40, 0x40, 0x40, 0]);
    assert_eq!(trace.finish()[0].other_packets, 7);
}

/// Returns an extended dispatch of 4 clusters of 2 workgroups.
fn extended(kind: u8, index: u64) -> Packet {
    let mut packet = packet(kind, index);
    packet.bytes[2..4].copy_from_slice(&[amd_format::EXT_KERNEL_DISPATCH, 1]);
    packet.bytes[12..24].copy_from_slice(&[4, 0, 0, 0, 1, 0, 1, 0, 2, 1, 1, 0]);
    // HIP keeps a signal here, not an id of a profiler.
    packet.bytes[0x30..0x38].copy_from_slice(&0x77_u64.to_le_bytes());
    packet
}

#[test]
fn an_extended_dispatch_is_a_dispatch() {
    let mut trace = Trace::created();
    let packets = [
        extended(packet_type::VENDOR, 0),
        dispatch(1),
        extended(packet_type::INVALID, 2),
        consumed(3),
    ];
    trace.ring(
        Doorbell {
            ring_packets: 8,
            read_index: 4,
            ..doorbell(100, 3, 0..4, 4, 4)
        },
        &packets,
    );
    let rows = trace.dispatches();
    let forms: Vec<_> = rows.iter().map(|row| (row.index, row.form, row.evidence)).collect();
    assert_eq!(
        forms,
        [
            (0, Some(Form::ExtKernel), Evidence::Header),
            (1, Some(Form::Kernel), Evidence::Header),
            (2, Some(Form::ExtKernel), Evidence::Body),
            (3, Some(Form::Kernel), Evidence::Body),
        ]
    );
    for row in [&rows[0], &rows[2]] {
        assert_eq!(
            (row.grid, row.workgroup, row.dimensions),
            ([4 * 2 * 64, 1, 1], [64, 1, 1], 1)
        );
        assert_eq!((row.kernel_object, row.correlation), ((row.index + 1) * 64, 0));
    }
}
