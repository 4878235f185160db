//! Tests of the facts that go into a trace that begins late.

use tracer_core::{
    sample,
    tables::{Copy, Dispatch, Durations, OtherPacket, Path},
};

use super::*;

/// A sink that keeps every fact, including those of snapshots.
#[derive(Default)]
struct Kept(Vec<Fact>);

impl Sink for Kept {
    fn take(&mut self, fact: &Fact) {
        self.0.push(fact.clone());
    }

    fn snapshot(&mut self, fact: &Fact) {
        self.0.push(fact.clone());
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        anyhow::ensure!(self.0.len() < 100, "the disk is full");
        Ok(())
    }

    fn describe(&mut self, _: &Inventory) {}
}

fn dispatch(queue: u32, index: u64) -> Fact {
    Fact::Dispatch(Dispatch {
        queue,
        ..sample::dispatch(index, 100 + index)
    })
}

fn doorbell(value: u64) -> Fact {
    Fact::Doorbell(sample::doorbell(value, 100 + value))
}

fn snapshot(number: u32, published: u64) -> Fact {
    Fact::Queue(Queue {
        queue: number,
        ..sample::queue(published)
    })
}

fn queues(kept: &Kept) -> Vec<&Queue> {
    let queues = kept.0.iter().filter_map(|fact| match fact {
        Fact::Queue(queue) => Some(queue),
        _ => None,
    });
    queues.collect()
}

/// Returns a value that saw ten dispatches and then began to record.
fn begun() -> Recording<Kept> {
    let mut recording = Recording::new();
    for index in 0..10 {
        recording.take(&dispatch(0, index));
        recording.take(&doorbell(index));
    }
    recording.snapshot(&snapshot(0, 10));
    assert!(recording.tape.is_none());
    recording.begin(Kept::default());
    recording
}

#[test]
fn a_queue_that_was_there_counts_from_the_beginning_of_the_trace() {
    let mut recording = begun();
    for index in 10..13 {
        recording.take(&dispatch(0, index));
        recording.take(&doorbell(index));
    }
    recording.take(&Fact::Packet(sample::unread(15, 2, 200)));
    recording.take(&snapshot(0, 17));
    let kept = recording.end().expect("it recorded");
    assert!(recording.tape.is_none());
    let queue = queues(&kept)[0];
    assert_eq!(queue.origin, QueueOrigin::Adopted);
    assert_eq!(
        (queue.dispatches, queue.unread, queue.published, queue.doorbells),
        (3, 2, 5, 3)
    );
    assert_eq!((queue.first_index, queue.last_index), (Some(10), Some(16)));
    // 13 and 14 have no row here.
    assert_eq!((queue.unclaimed, queue.created_ns), (Some(2), 110));
    assert_eq!((queue.gpu_id, queue.queue_id), (Some(5), Some(0)));
    assert!(
        !kept
            .0
            .iter()
            .any(|fact| matches!(fact, Fact::Dispatch(d) if d.index < 10))
    );
}

#[test]
fn a_queue_that_came_later_stays_as_it_is() {
    let mut recording = begun();
    recording.take(&dispatch(1, 0));
    recording.take(&Fact::Doorbell(tracer_core::tables::Doorbell {
        queue: Some(1),
        ..sample::doorbell(0, 300)
    }));
    recording.snapshot(&snapshot(1, 1));
    let kept = recording.end().expect("it recorded");
    let expected = Queue {
        queue: 1,
        ..sample::queue(1)
    };
    assert_eq!(queues(&kept), [&expected]);
}

#[test]
fn a_queue_that_was_silent_since_has_nothing() {
    let mut recording = begun();
    recording.snapshot(&snapshot(0, 10));
    let kept = recording.end().expect("it recorded");
    let queue = queues(&kept)[0];
    assert_eq!((queue.published, queue.doorbells, queue.first_index), (0, 0, None));
    assert_eq!((queue.unclaimed, queue.created_ns), (Some(0), 1_500));
}

#[test]
fn copies_and_what_was_unseen_count_anew_too() {
    let mut recording = begun();
    recording.take(&Fact::Copy(Copy {
        queue: Some(0),
        ..sample::copy(500)
    }));
    recording.take(&Fact::Packet(OtherPacket {
        queue: 2,
        path: Path::Unseen,
        ..sample::unread(0, 3, 600)
    }));
    recording.snapshot(&snapshot(0, 11));
    recording.snapshot(&snapshot(2, 3));
    let kept = recording.end().expect("it recorded");
    let shown: Vec<_> = queues(&kept)
        .iter()
        .map(|queue| (queue.published, queue.doorbells, queue.unseen))
        .collect();
    assert_eq!(shown, [(1, 1, Some(0)), (3, 0, Some(3))]);
}

#[test]
fn kernels_that_are_loaded_go_into_it_and_others_do_not() {
    let mut recording = Recording::new();
    for number in 0..3 {
        recording.take(&Fact::Kernel(sample::kernel(number)));
    }
    recording.take(&Fact::CodeObject(sample::code_object(1)));
    recording.begin(Kept::default());
    recording.take(&Fact::Kernel(sample::kernel(3)));
    let kept = recording.end().expect("it recorded");
    let of = |fact: &Fact| match fact {
        Fact::Kernel(kernel) => Some(kernel.code_object),
        _ => None,
    };
    assert_eq!(kept.0.iter().filter_map(of).collect::<Vec<_>>(), [0, 2, 3]);
}

#[test]
fn a_trace_that_cannot_be_written_ends() {
    let mut recording = begun();
    (0..100).for_each(|index| recording.take(&dispatch(0, index)));
    assert!(recording.tick().is_err());
    assert!(recording.tape.is_none());
    assert!(recording.tick().is_ok());
}

#[test]
fn calls_that_were_counted_before_are_not_in_the_trace() {
    let stats = |counter, calls, returned| ApiStats {
        counter,
        pid: Some(7),
        time_ns: calls,
        layer: "hip".into(),
        function: "hipMalloc".into(),
        calls,
        returned,
        failed: 0,
        left: 0,
        total_ns: returned * 15,
        min_ns: (returned > 0).then_some(15),
        max_ns: (returned > 0).then_some(15),
        durations: Durations(vec![(15, returned)]),
    };
    let mut recording = Recording::new();
    recording.snapshot(&Fact::ApiStats(stats(0, 4, 3)));
    recording.begin(Kept::default());
    recording.snapshot(&Fact::ApiStats(stats(0, 6, 6)));
    recording.take(&Fact::ApiStats(stats(1, 2, 2)));
    let kept = recording.end().expect("it recorded");
    let since = ApiStats {
        time_ns: 6,
        min_ns: None,
        max_ns: None,
        ..stats(0, 3, 3)
    };
    assert_eq!(kept.0, [Fact::ApiStats(since), Fact::ApiStats(stats(1, 2, 2))]);
}
