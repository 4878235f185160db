use super::*;
use crate::event::{Lost, SdmaDoorbell};
use crate::model::write_pointer;
use crate::tables::{QueueOrigin, RingMemory};

#[test]
fn a_queue_is_what_its_creation_said() {
    let mut trace = Trace::created();
    trace.destroy(500, 600, 1);
    assert_eq!(trace.queues(), [], "late events may come");
    trace.apply(&Event::Exec(by(600 + LINGER_NS, TID), b"later"));
    let queue = &trace.queues()[0];
    assert_eq!(
        (queue.queue, queue.origin, queue.queue_id, queue.gpu_id),
        (0, QueueOrigin::Created, Some(1), Some(0))
    );
    assert_eq!(
        (queue.create_enter_ns, queue.created_ns, queue.destroyed_ns),
        (Some(10), 20, Some(600))
    );
    assert_eq!(
        (queue.handle, queue.ring_bytes, queue.doorbell_offset),
        (HANDLE, 256, Some(0))
    );
    assert_eq!((queue.published, queue.first_index, queue.last_index), (0, None, None));
    assert_eq!(trace.finish().len(), 1);
}

#[test]
fn a_doorbell_that_arrives_after_its_queues_end_belongs_to_it() {
    let mut trace = Trace::created();
    trace.destroy(500, 600, 1);
    trace.ring(doorbell(400, 0, 0..1, 0, 1), &[dispatch(0)]);
    // But a doorbell that was rung after it belongs to another queue, whose creation was not seen.
    trace.ring(doorbell(700, 0, 0..1, 0, 1), &[dispatch(0)]);
    let queues: Vec<_> = trace
        .finish()
        .iter()
        .map(|q| (q.queue, q.origin, q.dispatches))
        .collect();
    assert_eq!(queues, [(0, QueueOrigin::Created, 1), (1, QueueOrigin::Adopted, 1)]);
}

#[test]
fn times_decide_between_two_queues_of_one_address() {
    let mut trace = Trace::created();
    trace.destroy(500, 600, 1);
    trace.create(700, 800, 1);
    trace.ring(doorbell(900, 0, 0..1, 0, 1), &[dispatch(0)]);
    trace.ring(doorbell(400, 1, 0..2, 0, 2), &[dispatch(0), dispatch(1)]);
    let queues: Vec<_> = trace
        .finish()
        .iter()
        .map(|q| (q.queue, q.dispatches, q.destroyed_ns))
        .collect();
    assert_eq!(queues, [(0, 2, Some(600)), (1, 1, None)]);
}

#[test]
fn a_creation_at_an_address_in_use_ends_what_was_there() {
    let mut trace = Trace::created();
    trace.create(700, 800, 2);
    trace.ring(doorbell(900, 0, 0..1, 0, 1), &[dispatch(0)]);
    let queues: Vec<_> = trace
        .finish()
        .iter()
        .map(|q| (q.queue, q.dispatches, q.destroyed_ns))
        .collect();
    assert_eq!(queues, [(0, 0, Some(700)), (1, 1, None)]);
}

#[test]
fn a_creation_that_its_first_doorbell_overtook_completes_the_queue() {
    let mut trace = Trace::new();
    trace.ring(doorbell(100, 2, 1..3, 1, 3), &[dispatch(1), dispatch(2)]);
    trace.create(10, 20, 1);
    let queue = &trace.finish()[0];
    assert_eq!(
        (queue.queue, queue.origin, queue.queue_id),
        (0, QueueOrigin::Created, Some(1))
    );
    assert_eq!(
        (queue.first_index, queue.published, queue.unread),
        (Some(0), 3, 1),
        "its first index is 0"
    );
    // An adopted queue that existed before the creation is an older queue.
    let mut trace = Trace::new();
    trace.ring(doorbell(5, 0, 0..1, 0, 1), &[dispatch(0)]);
    trace.create(10, 20, 1);
    assert_eq!(trace.finish().len(), 2);
}

#[test]
fn a_read_index_that_went_back_for_good_is_another_queues() {
    let mut trace = Trace::created();
    trace.ring(doorbell(100, 2, 0..3, 1, 3), &[consumed(0), dispatch(1), dispatch(2)]);
    // A walk of another CPU, out of order.
    trace.ring(doorbell(110, 1, 3..3, 0, 2), &[]);
    assert_eq!(trace.model.queues().count(), 1);
    // The destruction of the queue and the creation of the next one were lost.
    trace.ring(doorbell(1 << 30, 0, 0..1, 0, 1), &[dispatch(0)]);
    let queues: Vec<_> = trace
        .finish()
        .iter()
        .map(|q| (q.origin, q.dispatches, q.destroyed_ns))
        .collect();
    assert_eq!(
        queues,
        [
            (QueueOrigin::Created, 3, Some(1 << 30)),
            (QueueOrigin::Adopted, 1, None)
        ]
    );
}

#[test]
fn the_oldest_queue_of_an_id_is_the_one_destroyed() {
    let mut trace = Trace::created();
    // The KFD reused the id before the record of the destruction was written.
    let mut arg = [0; 96];
    arg[8] = 0x99;
    (arg[40], arg[52]) = (2, 1);
    trace.ioctl(550, 590, CREATE, &arg);
    trace.destroy(500, 600, 1);
    let ends: Vec<_> = trace.finish().iter().map(|q| (q.queue, q.destroyed_ns)).collect();
    assert_eq!(ends, [(0, Some(600)), (1, None)]);
}

#[test]
fn failed_calls_change_nothing() {
    let mut trace = Trace::created();
    let origin = by(500, TID);
    let arg = Some(&[1_u8, 0, 0, 0][..]);
    let failed = Ioctl {
        origin,
        exit_ns: 600,
        fd: 3,
        cmd: DESTROY,
        ret: Some(-22),
        arg_in: arg,
        arg_out: arg,
    };
    trace.apply(&Event::Ioctl(failed));
    trace.apply(&Event::Ioctl(Ioctl { ret: None, ..failed }));
    trace.destroy(700, 800, 9);
    assert_eq!(trace.finish()[0].destroyed_ns, None);
    assert_eq!(
        trace.facts.iter().filter(|fact| matches!(fact, Fact::Ioctl(_))).count(),
        4
    );
}

#[test]
fn sdma_queues_are_known_by_their_write_pointer() {
    let copy = |write_pointer| {
        Event::SdmaDoorbell(SdmaDoorbell {
            origin: by(100, TID),
            write_pointer,
            begin: 0,
            end: 64,
            commands: None,
            call: None,
        })
    };
    let mut trace = Trace::new();
    let mut arg = [0; 96];
    (arg[8], arg[40]) = (0x40, 3);
    trace.ioctl(10, 20, CREATE, &arg);
    [copy(0x40), copy(0x80), copy(0x40), copy(0)]
        .iter()
        .for_each(|event| trace.apply(event));
    let queues: Vec<_> = trace
        .finish()
        .iter()
        .map(|q| (q.kind.clone(), q.handle, q.published, q.doorbells))
        .collect();
    assert_eq!(
        queues,
        [("sdma-xgmi".to_owned(), 0, 2, 2), ("sdma".to_owned(), 0, 1, 1)]
    );
    let of: Vec<_> = trace
        .facts
        .iter()
        .filter_map(|fact| {
            if let Fact::Copy(copy) = fact {
                Some(copy.queue)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(of, [Some(0), Some(1), Some(0), None]);
}

#[test]
fn invented_queues_are_limited_and_counted() {
    let mut trace = Trace::new();
    for handle in 1..=70_000 {
        trace.apply(&Event::Doorbell(Doorbell {
            handle,
            ..doorbell(100, 0, 0..1, 0, 1)
        }));
    }
    assert_eq!(trace.model.queues().count(), 65536);
    let lost = trace
        .facts
        .iter()
        .filter(|fact| matches!(fact, Fact::Loss(loss) if loss.source == "model-queues"));
    assert_eq!(lost.count(), 70_000 - 65536);
    assert_eq!(trace.doorbells().len(), 70_000);
}

#[test]
fn a_queue_shows_where_a_walk_stands() {
    let mut trace = Trace::created();
    let known = |trace: &Trace, handle| {
        let queues = &trace.model.trackers.submissions.queues;
        let queue = queues.last(PID, write_pointer(handle))?;
        Some((queue.number, queue.ring_packets, queue.reach()))
    };
    assert_eq!(known(&trace, 0x1234), None);
    trace.ring(doorbell(100, 2, 0..3, 0, 3), &[dispatch(0), empty()]);
    assert_eq!(known(&trace, HANDLE), Some((0, RING, (Some(1), 3))));
}

#[test]
fn losses_are_passed_on() {
    let mut trace = Trace::new();
    trace.apply(&Event::Lost(Lost {
        time_ns: 5,
        source: "doorbell-ring",
        count: 3,
    }));
    assert_eq!(
        trace.facts,
        [Fact::Loss(tables::Loss {
            time_ns: 5,
            source: "doorbell-ring".to_owned(),
            count: 3
        })]
    );
}

/// ALLOC_MEMORY_OF_GPU of a page with these flags, at the start of the address space.
fn allocated(trace: &mut Trace, flags: u32) {
    let mut arg = [0; 40];
    arg[8..16].copy_from_slice(&0x1000_u64.to_le_bytes());
    arg[16] = 1;
    arg[36..40].copy_from_slice(&flags.to_le_bytes());
    trace.ioctl(5, 6, 0xc028_4b16, &arg);
}

#[test]
fn the_memory_of_a_ring_is_that_of_its_allocation() {
    let cases = [
        (Some(1), Some(RingMemory::Device)),
        (Some(2), Some(RingMemory::Host)),
        (Some(4), Some(RingMemory::Host)),
        // Registers.
        (Some(16), None),
        // It may be imported, or allocated unseen.
        (None, None),
    ];
    for (flags, memory) in cases {
        let mut trace = Trace::new();
        if let Some(flags) = flags {
            allocated(&mut trace, flags);
        }
        trace.create(10, 20, 1);
        // What is freed afterwards changes nothing.
        trace.ioctl(30, 31, 0xc008_4b17, &1_u64.to_le_bytes());
        assert_eq!(trace.finish()[0].ring_memory, memory, "{flags:?}");
    }
    // Nothing is known of the ring of an adopted queue.
    let mut trace = Trace::new();
    allocated(&mut trace, 1);
    trace.ring(doorbell(100, 0, 0..1, 0, 1), &[dispatch(0)]);
    assert_eq!(trace.finish()[0].ring_memory, None);
}
