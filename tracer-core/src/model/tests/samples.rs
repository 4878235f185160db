//! Tests of samples of queues: unseen indexes, possibly unseen indexes, and indexes in flight.

use super::*;
use crate::event::{Lost, Occasion, Progress};
use crate::tables::Path;

fn sample(time_ns: u64, read_index: u64, write_index: u64, occasion: Occasion) -> Progress {
    Progress {
        origin: by(time_ns, 0),
        after_ns: time_ns + 1,
        handle: HANDLE,
        read_index,
        write_index,
        rung_end: None,
        occasion,
    }
}

impl Trace {
    fn sample(&mut self, sample: Progress) {
        self.apply(&Event::Progress(sample));
    }

    /// Applies one dispatch, with its doorbell, of a program that loses nothing.
    fn one(&mut self, time_ns: u64, index: u64, read: u64) {
        let doorbell = Doorbell {
            rung_end: Some(index),
            ..doorbell(time_ns, index, index..index + 1, read, index + 1)
        };
        self.ring(doorbell, &[dispatch(index)]);
    }

    /// Returns the runs of unseen indexes, and the queue's own count of them.
    fn unseen(&mut self) -> (Vec<(u64, u64)>, Option<u64>, Option<bool>) {
        let queues = self.finish();
        let rows = self.others().into_iter().filter(|p| p.path == Path::Unseen);
        let rows = rows.map(|p| (p.index, p.count)).collect();
        (rows, queues[0].unseen, queues[0].watched_to_end)
    }
}

#[test]
fn packets_that_a_last_sample_finds_taken_are_unseen() {
    let mut trace = Trace::created();
    trace.one(100, 0, 0);
    trace.sample(Progress {
        rung_end: Some(1),
        ..sample(200, 4, 4, Occasion::Destroyed)
    });
    trace.destroy(190, 210, 1);
    assert_eq!(trace.unseen(), (vec![(1, 3)], Some(3), Some(true)));
    assert_eq!(trace.indexes(), [0]);
    assert_eq!(trace.queues()[0].published, 4);
}

/// The doorbell's program noted what it published, although its record was lost.
#[test]
fn a_doorbell_whose_record_was_lost_is_no_unseen_one() {
    let mut trace = Trace::created();
    trace.sample(Progress {
        rung_end: Some(2),
        ..sample(200, 3, 3, Occasion::Destroyed)
    });
    trace.destroy(190, 210, 1);
    assert_eq!(trace.unseen(), (vec![(2, 1)], Some(1), Some(true)));
}

#[test]
fn a_sample_of_the_collector_counts_at_the_end_and_only_without_losses() {
    for (source, expected) in [
        ("packets-ring", (vec![(1, 3)], Some(3), Some(true))),
        ("doorbell-ring", (vec![], None, Some(true))),
    ] {
        let mut trace = Trace::created();
        // Its doorbells may still be in the buffer.
        trace.sample(sample(200, 4, 4, Occasion::TraceEnd));
        assert_eq!(trace.model.queues().next().unwrap().unseen, None);
        trace.one(100, 0, 0);
        trace.apply(&Event::Lost(Lost {
            time_ns: 250,
            source,
            count: 1,
        }));
        assert_eq!(trace.unseen(), expected, "{source}");
    }
}

/// A recorder detaches while a program submits. Doorbells arrive after the last sample, and until they are not recorded any more.
/// What the GPU takes after that says nothing.
#[test]
fn a_queue_is_closed_when_its_recorder_detaches_in_a_burst() {
    for detached in [false, true] {
        let mut trace = Trace::created();
        trace.one(100, 0, 0);
        trace.sample(sample(200, 1, 1, Occasion::TraceEnd));
        trace.one(300, 1, 1);
        if detached {
            trace.sample(sample(400, 90, 100, Occasion::Detached));
        }
        assert_eq!(trace.unseen(), (vec![], Some(0), Some(detached)));
        let queue = &trace.queues()[0];
        assert_eq!((queue.published, queue.pending, queue.read_index), (2, 0, Some(1)));
    }
}

#[test]
fn a_sample_after_the_end_belongs_to_another_queue() {
    let mut trace = Trace::created();
    trace.one(100, 0, 0);
    trace.sample(sample(150, 1, 1, Occasion::Sample));
    trace.sample(sample(400, 9, 9, Occasion::Sample));
    trace.destroy(190, 210, 1);
    assert_eq!(trace.unseen(), (vec![], Some(0), Some(false)));
    assert_eq!(
        (trace.queues()[0].looked_ns, trace.queues()[0].read_index),
        (None, None)
    );
}

#[test]
fn what_a_doorbell_finds_taken_is_unseen_but_for_the_index_that_it_names() {
    let mut trace = Trace::created();
    // Packets 0 and 1 were taken, and their slots were not reused. Packets 2 and 3 belong to this doorbell, although 2 was taken
    // early.
    let doorbell = Doorbell {
        rung_end: Some(0),
        ..doorbell(100, 2, 0..3, 3, 3)
    };
    trace.ring(doorbell, &[consumed(0), empty(), consumed(2)]);
    trace.sample(Progress {
        rung_end: Some(3),
        ..sample(200, 3, 3, Occasion::Destroyed)
    });
    trace.destroy(190, 210, 1);
    assert_eq!(trace.unseen(), (vec![(1, 1)], Some(2), Some(true)));
    let paths: Vec<_> = trace.dispatches().iter().map(|d| (d.index, d.path, d.tid)).collect();
    assert_eq!(paths, [(0, Path::Unseen, 0), (2, Path::Doorbell, TID)]);
}

/// The doorbell may have been this queue's.
#[test]
fn a_doorbell_of_an_unknown_queue_leaves_lower_indexes_open() {
    let mut trace = Trace::created();
    trace.apply(&Event::Doorbell(Doorbell {
        handle: 0,
        unreadable: true,
        ..doorbell(100, 1, 0..0, 0, 0)
    }));
    trace.sample(Progress {
        rung_end: Some(0),
        ..sample(200, 5, 5, Occasion::Destroyed)
    });
    trace.destroy(190, 210, 1);
    assert_eq!(trace.unseen(), (vec![(2, 3)], None, Some(true)));
}

/// tracer cannot attribute what was published before it watched.
#[test]
fn of_an_adopted_queue_only_what_was_reserved_later_can_be_unseen() {
    let mut trace = Trace::new();
    trace.ring(doorbell(100, 7, 7..8, 7, 10), &[dispatch(7)]);
    trace.sample(sample(200, 12, 12, Occasion::TraceEnd));
    assert_eq!(trace.unseen(), (vec![(10, 2)], Some(2), Some(true)));
    assert_eq!(trace.queues()[0].published, 3);
}

#[test]
fn a_queue_is_watched_to_its_end_if_nothing_can_follow_the_last_sample() {
    for (occasion, write, end, expected) in [
        (Occasion::Destroyed, 5, true, true),
        (Occasion::Destroy, 1, true, true),
        (Occasion::Destroy, 5, true, false),
        (Occasion::Sample, 1, true, false),
        (Occasion::TraceEnd, 5, false, true),
        (Occasion::Sample, 1, false, false),
    ] {
        let mut trace = Trace::created();
        trace.one(100, 0, 0);
        trace.sample(sample(200, 1, write, occasion));
        if end {
            trace.destroy(190, 210, 1);
        }
        assert_eq!(trace.unseen().2, Some(expected), "{occasion:?} {write} {end}");
    }
    for (rung_after, expected) in [(false, true), (true, false)] {
        let mut trace = Trace::created();
        trace.one(100, 0, 0);
        trace.sample(sample(200, 1, 1, Occasion::ProcessEnd));
        if rung_after {
            trace.one(250, 1, 1);
        }
        trace.apply(&Event::Exit(by(300, TID)));
        assert_eq!(trace.unseen().2, Some(expected), "another thread rang: {rung_after}");
    }
}

#[test]
fn what_is_in_flight_has_an_age() {
    let mut trace = Trace::created();
    for (time_ns, index) in [(100, 0), (110, 1), (120, 2)] {
        trace.one(time_ns, index, 0);
    }
    for (time_ns, read) in [(105, 0), (115, 1), (130, 1), (140, 1)] {
        trace.sample(sample(time_ns, read, 3, Occasion::Sample));
    }
    let queue = trace.model.queues().next().unwrap();
    assert_eq!((queue.in_flight, queue.oldest_ns), (Some(2), Some(110)));
    assert_eq!((queue.looked_ns, queue.moved_ns), (Some(141), Some(116)));
    trace.sample(sample(150, 3, 3, Occasion::Sample));
    let queue = trace.model.queues().next().unwrap();
    assert_eq!(
        (queue.in_flight, queue.oldest_ns, queue.moved_ns),
        (Some(0), None, Some(151))
    );
    // The last of the samples that found the queue at rest bounds the change.
    let rows = trace.facts.iter().filter_map(|fact| match fact {
        Fact::Progress(sample) => Some((sample.time_ns, sample.read_index, sample.published_end)),
        _ => None,
    });
    let expected = [
        (105, 0, Some(1)),
        (115, 1, Some(2)),
        (140, 1, Some(3)),
        (150, 3, Some(3)),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}
