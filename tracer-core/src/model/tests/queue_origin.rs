//! Tests of the creators of queues.

use super::*;
use crate::event::{HsaQueue, Lost, There};

impl Trace {
    /// Applies a call of `hsa_queue_create` that returns a handle.
    fn made(&mut self, time_ns: u64, handle: u64) {
        self.apply(&Event::HsaQueue(HsaQueue {
            origin: by(time_ns, 0),
            exit_ns: time_ns + 5,
            handle,
            proxy: None,
        }));
    }

    fn there(&mut self, idle: bool) {
        self.apply(&Event::There(There {
            origin: by(5, PID),
            comm: b"app",
            queues: &[],
            idle,
        }));
    }

    fn lost(&mut self, source: &'static str) {
        self.apply(&Event::Lost(Lost {
            time_ns: 60,
            source,
            count: 1,
        }));
    }

    /// Applies one doorbell on a queue. Returns whether the queue is the runtime's.
    fn internal(mut self) -> Option<bool> {
        self.ring(doorbell(100, 0, 0..1, 0, 1), &[dispatch(0)]);
        self.finish()[0].internal
    }

    fn watched() -> Self {
        let mut trace = Self::new();
        trace.model.watch_queue_calls(true);
        trace
    }

    fn watched_and_created() -> Self {
        let mut trace = Self::watched();
        trace.create(10, 20, 1);
        trace
    }
}

#[test]
fn a_queue_that_a_call_gave_is_the_programs() {
    let mut trace = Trace::watched_and_created();
    trace.made(30, HANDLE);
    assert_eq!(trace.internal(), Some(false));
    // The same applies to a process that existed before, and to any missed call.
    let mut trace = Trace::new();
    trace.there(false);
    trace.create(10, 20, 1);
    trace.made(30, HANDLE);
    trace.lost("hsa-queue-ring");
    assert_eq!(trace.internal(), Some(false));
}

#[test]
fn a_queue_that_no_call_gave_is_the_runtimes() {
    assert_eq!(Trace::watched_and_created().internal(), Some(true));
    let mut entered = Trace::watched();
    entered.there(true);
    entered.create(10, 20, 1);
    assert_eq!(entered.internal(), Some(true));
}

/// The call that creates the queue could still be on its way back.
#[test]
fn of_a_queue_without_doorbells_nothing_is_said() {
    let mut trace = Trace::watched_and_created();
    assert_eq!(trace.finish()[0].internal, None);
}

#[test]
fn where_calls_may_have_been_missed_nothing_is_said() {
    let mut not_watched = Trace::new();
    not_watched.create(10, 20, 1);
    let mut attached = Trace::watched();
    attached.there(false);
    attached.create(10, 20, 1);
    let adopted = Trace::watched();
    let mut lossy = Trace::watched_and_created();
    lossy.lost("hsa-queue-ring");
    let mut passed_over = Trace::watched_and_created();
    passed_over.lost("missed-mapping");
    // A tool's queue is in front of it, or the handle could not be read.
    let mut in_front = Trace::watched_and_created();
    in_front.made(30, HANDLE + 0x1000);
    let mut unread = Trace::watched_and_created();
    unread.made(30, 0);
    // The same before the queue exists.
    let mut early = Trace::watched();
    early.made(1, 0);
    early.create(10, 20, 1);
    for (name, trace) in [
        ("not watched", not_watched),
        ("attached", attached),
        ("adopted", adopted),
        ("lossy", lossy),
        ("passed over", passed_over),
        ("in front", in_front),
        ("unread", unread),
        ("early", early),
    ] {
        assert_eq!(trace.internal(), None, "{name}");
    }
}

/// An unrelated loss changes nothing.
#[test]
fn other_losses_do_not_matter() {
    let mut trace = Trace::watched_and_created();
    trace.lost("ioctl-ring");
    trace.lost("doorbell-ring");
    assert_eq!(trace.internal(), Some(true));
}

/// A new program with the process's id starts again.
#[test]
fn doubts_end_with_the_program() {
    let mut trace = Trace::watched();
    trace.there(false);
    trace.apply(&Event::Exec(by(8, PID), b"other"));
    trace.create(10, 20, 1);
    assert_eq!(trace.internal(), Some(true));
}
