//! Tests of queues that existed before tracer watched them.

use super::*;
use crate::event::{KfdQueue, There};
use crate::tables::QueueOrigin;

/// Returns dispatches with the time and thread of their doorbells.
fn rung(trace: &Trace) -> Vec<(u64, u64, u32)> {
    let of = |fact: &Fact| match fact {
        Fact::Dispatch(dispatch) => Some((dispatch.index, dispatch.time_ns, dispatch.tid)),
        _ => None,
    };
    trace.facts.iter().filter_map(of).collect()
}

#[test]
fn of_a_ring_with_packets_in_it_only_the_one_that_is_rung_for_is_claimed() {
    let mut trace = Trace::new();
    trace.ring(
        doorbell(100, 41, 39..42, 39, 42),
        &[dispatch(39), dispatch(40), dispatch(41)],
    );
    // A doorbell of a packet that the GPU had consumed before the first sample publishes nothing.
    trace.ring(doorbell(105, 38, 42..42, 39, 42), &[]);
    trace.ring(doorbell(110, 43, 42..44, 40, 44), &[dispatch(42), dispatch(43)]);
    assert_eq!((trace.indexes(), trace.published()), (vec![41, 42, 43], vec![1, 0, 2]));
    let queue = &trace.finish()[0];
    assert_eq!(
        (queue.origin, queue.kind.as_str(), queue.queue_id),
        (QueueOrigin::Adopted, "compute-aql", None)
    );
    assert_eq!((queue.published, queue.unclaimed, queue.unread), (3, Some(2), 0));
    assert_eq!((queue.first_index, queue.last_index), (Some(41), Some(43)));
    assert_eq!(
        (queue.ring_base, queue.ring_bytes, queue.created_ns, queue.handle),
        (0x5000, 256, 100, HANDLE)
    );
}

#[test]
fn a_lower_doorbell_after_a_higher_one_claims_its_own_packet() {
    let mut trace = Trace::new();
    // Index 42 is not written yet. Index 41 is, but another thread may have rung for it before.
    trace.ring(
        doorbell(100, 43, 40..44, 40, 44),
        &[dispatch(40), dispatch(41), empty(), dispatch(43)],
    );
    let late = Doorbell {
        origin: by(110, TID + 1),
        ..doorbell(110, 42, 42..44, 40, 44)
    };
    trace.ring(late, &[dispatch(42), dispatch(43)]);
    let again = Doorbell {
        origin: by(120, TID + 2),
        ..doorbell(120, 40, 44..44, 40, 44)
    };
    trace.ring(again, &[]);
    assert_eq!(rung(&trace), [(43, 100, TID), (42, 110, TID + 1), (40, 120, TID + 2)]);
    assert_eq!(
        (trace.finish()[0].unclaimed, trace.published()),
        (Some(1), vec![1, 1, 1])
    );
}

#[test]
fn what_lies_beyond_the_ring_was_not_rung_before() {
    // A producer has reserved six packets of a ring of four, so it cannot have written the last two.
    let mut trace = Trace::new();
    trace.ring(
        doorbell(100, 43, 40..44, 40, 46),
        &[dispatch(40), dispatch(41), dispatch(42), dispatch(43)],
    );
    trace.ring(doorbell(110, 45, 44..46, 44, 46), &[dispatch(44), dispatch(45)]);
    assert_eq!(trace.indexes(), [43, 44, 45]);
    assert_eq!(trace.finish()[0].unclaimed, Some(3));
}

#[test]
fn a_value_that_nobody_reserved_claims_nothing_in_the_ring() {
    let mut trace = Trace::new();
    let garbage = Doorbell {
        beyond: true,
        ..doorbell(100, 41, 40..42, 40, 42)
    };
    trace.ring(garbage, &[dispatch(40), dispatch(41)]);
    assert_eq!((trace.indexes(), trace.published()), (vec![], vec![0]));
    assert_eq!(trace.finish()[0].unclaimed, Some(2));
}

#[test]
fn a_packet_that_was_rung_for_and_never_read_is_unread() {
    let mut trace = Trace::new();
    trace.ring(doorbell(100, 41, 41..42, 41, 42), &[]);
    trace.ring(doorbell(110, 49, 42..50, 49, 50), &[]);
    let queue = &trace.finish()[0];
    assert_eq!((queue.published, queue.unread, queue.unclaimed), (9, 9, Some(0)));
}

#[test]
fn a_reserve_that_was_seen_settles_the_question() {
    let mut trace = Trace::new();
    trace.apply(&Event::Reserve(Reserve {
        origin: by(90, TID),
        handle: HANDLE,
        op: ReserveOp::Add { n: 2 },
        write_index: Some(41),
    }));
    trace.ring(
        doorbell(100, 42, 40..43, 40, 43),
        &[dispatch(40), dispatch(41), dispatch(42)],
    );
    assert_eq!((trace.indexes(), trace.published()), (vec![41, 42], vec![2]));
    assert_eq!(trace.finish()[0].unclaimed, Some(1));
}

#[test]
fn the_kfds_files_tell_which_queue_it_is_if_only_one_fits() {
    let queue = |queue_id, gpu_id, ring_bytes| KfdQueue {
        queue_id,
        gpu_id: Some(gpu_id),
        compute: Some(true),
        ring_bytes: Some(ring_bytes),
    };
    let copies = KfdQueue {
        compute: Some(false),
        ..queue(9, 5, 256)
    };
    for (queues, expected) in [
        (vec![queue(3, 5, 256), queue(4, 6, 4096), copies], (Some(3), Some(5))),
        (vec![queue(3, 5, 256), queue(4, 5, 256)], (None, Some(5))),
        (vec![queue(3, 5, 256), queue(4, 6, 256)], (None, None)),
        (vec![copies], (None, None)),
        (vec![], (None, None)),
    ] {
        let mut trace = Trace::new();
        trace.apply(&Event::There(There {
            origin: by(50, PID),
            comm: b"app\0x",
            queues: &queues,
            idle: false,
        }));
        trace.ring(doorbell(100, 0, 0..1, 0, 1), &[dispatch(0)]);
        let found = &trace.finish()[0];
        assert_eq!((found.queue_id, found.gpu_id), expected, "{queues:?}");
        assert!(matches!(trace.facts.last(), Some(Fact::Process(process)) if process.comm == "app"));
    }
}

/// No probe sees the doorbells of a process without a runtime, and nothing shows where its queues are.
#[test]
fn queues_of_a_process_without_a_runtime_are_listed() {
    let queue = |queue_id, compute| KfdQueue {
        queue_id,
        gpu_id: Some(5),
        compute,
        ring_bytes: Some(256),
    };
    let queues = [
        queue(1, Some(true)),
        queue(2, Some(false)),
        queue(3, None),
        queue(4, Some(true)),
    ];
    let mut trace = Trace::new();
    trace.apply(&Event::There(There {
        origin: by(50, PID),
        comm: b"",
        queues: &queues,
        idle: true,
    }));
    assert_eq!(trace.model.queues().count(), 3);
    trace.destroy(500, 600, 4);
    let rows = trace.finish().into_iter();
    let rows: Vec<_> = rows
        .map(|row| (row.queue_id, row.kind, row.origin, row.unseen, row.destroyed_ns))
        .collect();
    let row = |id, kind: &str, end| (Some(id), kind.to_owned(), QueueOrigin::Listed, None, end);
    assert_eq!(
        rows,
        [
            row(4, "compute", Some(600)),
            row(1, "compute", None),
            row(3, "other", None)
        ]
    );
}

/// A runtime that the process loads later adopts its queue, which is then no longer listed.
#[test]
fn a_listed_queue_that_rings_is_adopted() {
    let mut trace = Trace::new();
    trace.apply(&Event::There(There {
        origin: by(50, PID),
        comm: b"",
        queues: &[KfdQueue {
            queue_id: 3,
            gpu_id: Some(5),
            compute: Some(true),
            ring_bytes: Some(256),
        }],
        idle: true,
    }));
    trace.ring(doorbell(100, 0, 0..1, 0, 1), &[dispatch(0)]);
    let rows = trace.finish();
    assert_eq!(
        (rows.len(), rows[0].queue_id, rows[0].origin),
        (1, Some(3), QueueOrigin::Adopted)
    );
}

#[test]
fn a_destruction_ends_the_adopted_queue_that_it_names() {
    let mut trace = Trace::new();
    let queues = [KfdQueue {
        queue_id: 1,
        gpu_id: None,
        compute: None,
        ring_bytes: None,
    }];
    trace.apply(&Event::There(There {
        origin: by(50, PID),
        comm: b"",
        queues: &queues,
        idle: false,
    }));
    trace.ring(doorbell(100, 0, 0..1, 0, 1), &[dispatch(0)]);
    trace.destroy(500, 600, 1);
    assert_eq!(trace.finish()[0].destroyed_ns, Some(600));
}

#[test]
fn what_was_claimed_at_garbage_stays_counted_when_the_creation_turns_up() {
    let mut trace = Trace::new();
    let far = 10 * u64::from(tracer_common::queue::MAX_PACKETS);
    // The first sample is of garbage: its index is claimed, and the next walk shows the true indexes of the queue.
    trace.ring(doorbell(100, far, far..far + 1, far, far + 1), &[dispatch(far)]);
    trace.ring(doorbell(101, 0, 0..1, 0, 1), &[dispatch(0)]);
    trace.create(90, 102, 1);
    let queue = &trace.finish()[0];
    assert_eq!(queue.published, queue.dispatches + queue.other_packets + queue.unread);
    assert_eq!((queue.origin, queue.published), (QueueOrigin::Created, 2));
}
