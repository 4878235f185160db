use super::*;
use crate::{
    sample,
    tables::{Dispatch, Doorbell, Progress, Queue},
};

fn whole() -> Queue {
    Queue {
        unseen: Some(0),
        watched_to_end: Some(true),
        looked_ns: Some(900),
        read_index: Some(4),
        ..sample::queue(4)
    }
}

fn rung(value: u64, time_ns: u64, read_index: u64) -> Doorbell {
    Doorbell {
        read_index,
        ..sample::doorbell(value, time_ns)
    }
}

fn sampled(time_ns: u64, read_index: u64) -> Progress {
    sample::progress(time_ns, read_index, 4)
}

const fn held(least_ns: u64, most_ns: u64) -> Held {
    Held {
        least_ns,
        most_ns: Some(most_ns),
    }
}

#[test]
fn a_queue_holds_work_until_a_moment_finds_it_taken() {
    let mut counter = Counter::default();
    counter.queue(&whole());
    // Taken at some time before 200.
    counter.doorbell(&rung(0, 100, 0));
    counter.doorbell(&rung(1, 200, 1));
    // Not taken at 250, nor at 300; taken by 405.
    counter.progress(&sampled(250, 1));
    counter.doorbell(&rung(2, 300, 1));
    counter.progress(&sampled(400, 3));
    // Idle, then held until the last sample of the queue, which its row has.
    counter.doorbell(&rung(3, 700, 3));
    let times = counter.finish().unwrap();
    assert_eq!(times.phase_ns, 800);
    assert_eq!(times.held, held(100, 305 + 200));
    assert_eq!(times.queues[&0], times.held);
    assert_eq!(times.processes[&7], times.held);
    assert_eq!(times.bound, Bound::Unknown);
}

#[test]
fn time_of_several_queues_counts_once() {
    let mut counter = Counter::default();
    for queue in [0, 1] {
        counter.queue(&Queue { queue, ..whole() });
    }
    let on = |queue, row: Doorbell| Doorbell {
        queue: Some(queue),
        ..row
    };
    counter.doorbell(&on(0, rung(3, 100, 0)));
    counter.doorbell(&on(1, rung(3, 150, 0)));
    counter.progress(&sampled(200, 1));
    counter.progress(&Progress {
        queue: 1,
        ..sampled(300, 2)
    });
    counter.progress(&sampled(400, 4));
    counter.progress(&Progress {
        queue: 1,
        ..sampled(500, 4)
    });
    let times = counter.finish().unwrap();
    assert_eq!(times.queues[&0], held(100, 305));
    assert_eq!(times.queues[&1], held(150, 355));
    assert_eq!(times.held, held(200, 405));
    assert_eq!(times.phase_ns, 405);
}

#[test]
fn without_all_doorbells_there_is_no_upper_bound() {
    let mut counter = Counter::default();
    counter.queue(&Queue {
        unseen: None,
        ..whole()
    });
    counter.doorbell(&rung(3, 100, 0));
    counter.progress(&sampled(300, 2));
    let times = counter.finish().unwrap();
    assert_eq!(
        times.held,
        Held {
            least_ns: 200,
            most_ns: None
        }
    );
    assert_eq!(times.processes[&7].most_ns, None);
}

#[test]
fn a_queue_that_is_stuck_holds_work_to_its_end() {
    let mut counter = Counter::default();
    counter.queue(&Queue {
        read_index: Some(2),
        destroyed_ns: Some(1_000),
        ..whole()
    });
    counter.doorbell(&rung(3, 100, 0));
    let times = counter.finish().unwrap();
    assert_eq!((times.phase_ns, times.held), (900, held(800, 900)));
    assert_eq!(times.bound, Bound::Unknown);
}

#[test]
fn packets_of_a_run_may_be_published_at_its_end() {
    let mut counter = Counter::default();
    counter.queue(&whole());
    counter.doorbell(&rung(0, 100, 0));
    counter.doorbell_run(&sample::doorbell_run(1, 3, 200));
    counter.progress(&sampled(201, 2));
    counter.progress(&sampled(302, 2));
    counter.progress(&sampled(400, 4));
    // The run ends at 202, and the sample at 201 says nothing.
    assert_eq!(counter.finish().unwrap().held, held(100, 305));
}

#[test]
fn streams_hold_their_own_packets() {
    let mut counter = Counter::default();
    counter.queue(&whole());
    let of = |index, time_ns, stream| Dispatch {
        stream: Some(stream),
        ..sample::dispatch(index, time_ns)
    };
    counter.dispatch(&of(0, 100, 5));
    counter.doorbell(&rung(0, 100, 0));
    counter.dispatch(&of(1, 200, 6));
    counter.doorbell(&rung(1, 200, 0));
    counter.progress(&sampled(300, 1));
    counter.progress(&sampled(400, 2));
    let times = counter.finish().unwrap();
    let streams: Vec<_> = times.streams.iter().map(|row| (row.stream, row.held)).collect();
    assert_eq!(streams, [(5, held(100, 205)), (6, held(100, 205))]);
}

#[test]
fn times_of_all_kernels_say_what_limits_a_program() {
    let bound = |run_ns: u64, dispatches: u64| {
        let mut counter = Counter::default();
        counter.queue(&whole());
        for index in 0..dispatches {
            counter.dispatch(&sample::dispatch(index, 100 * index));
            counter.doorbell(&rung(index, 100 * index, index));
        }
        for index in 0..4 {
            let start_ns = 100 * index;
            counter.time(&sample::gpu_time(index, start_ns, (start_ns, start_ns + run_ns)));
        }
        let times = counter.finish().unwrap();
        assert_eq!((times.ran_ns, times.timed), (Some(4 * run_ns), 4));
        times.bound
    };
    // The last moment is that of the row, 900 ns after the first doorbell.
    assert_eq!(bound(100, 4), Bound::Launches);
    assert_eq!(bound(100, 5), Bound::Unknown);
    let of = |held, ran| Bound::of(1_000, held, ran);
    assert_eq!(of(held(0, 1_000), Some(499)), Bound::Launches);
    assert_eq!(of(held(0, 1_000), Some(500)), Bound::Neither);
    assert_eq!(of(held(0, 1_000), Some(900)), Bound::Gpu);
    assert_eq!(of(held(900, 1_000), None), Bound::Gpu);
    assert_eq!(of(held(899, 1_000), None), Bound::Unknown);
    assert_eq!(Bound::of(0, held(0, 0), Some(0)), Bound::Unknown);
}
