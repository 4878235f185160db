//! Pictures of small histories.

use super::*;
use crate::{
    sample,
    tables::{Dispatch, Doorbell, Loss as LossFact, OtherPacket, Process},
};

const S: u64 = 1_000_000_000;

/// Returns a state of a capture that watches everything.
fn watching() -> Live {
    let mut live = Live::new();
    live.set_capture(Capture {
        watched: sample::EVERYTHING,
        ..Capture::default()
    });
    live
}

fn dispatch(queue: u32, index: u64, time_ns: u64) -> Fact {
    Fact::Dispatch(Dispatch {
        queue,
        kernel_object: 0x1000 + index % 2 * 0x40,
        ..sample::dispatch(index, time_ns)
    })
}

fn doorbell(queue: u32, value: u64, read_index: u64, time_ns: u64) -> Fact {
    Fact::Doorbell(Doorbell {
        queue: Some(queue),
        read_index,
        reserve_to_doorbell_ns: Some(500),
        ..sample::doorbell(value, time_ns)
    })
}

fn process(pid: u32, parent: Option<u32>, exit_ns: Option<u64>) -> Fact {
    Fact::Process(Process {
        parent,
        exit_ns,
        ..sample::process(pid)
    })
}

#[test]
fn what_was_published_is_counted_and_what_waits_is_depth() {
    let mut live = watching();
    for index in 0..10 {
        live.apply(&dispatch(0, index, index * S / 10));
        live.apply(&doorbell(0, index, index / 2, index * S / 10));
    }
    live.advance(S);
    let picture = live.picture();
    assert_eq!(
        (picture.totals.dispatches, picture.totals.by_path.doorbell),
        (Some(10), Some(10))
    );
    assert_eq!(picture.totals.history, [10]);
    let row = &picture.queues[0];
    assert_eq!(
        (row.dispatches, row.doorbells, row.depth),
        (Some(10), Some(10), Some(10 - 4))
    );
    assert_eq!((row.read_index, row.write_index), (Some(4), Some(10)));
    // Index 4 was published at 0.4 s, and is the oldest index that was not taken.
    assert_eq!(row.oldest_age_ns, Some(S - 4 * S / 10));
    assert_eq!(row.latency_ns, Some((500, 500)));
    let counts: Vec<u64> = picture.kernels.iter().map(|kernel| kernel.count).collect();
    assert_eq!(counts, [5, 5]);
}

#[test]
fn a_queue_is_stuck_only_if_samples_show_no_movement() {
    let mut live = watching();
    live.apply(&dispatch(0, 0, S));
    live.apply(&doorbell(0, 0, 0, S));
    live.advance(60 * S);
    assert_eq!(live.picture().queues[0].stuck, None, "nobody looked since the doorbell");
    live.queue(0).unwrap().sample(10 * S, Some(1), 0);
    let stuck = live.picture().queues[0].stuck.expect("it is stuck");
    assert_eq!((stuck.packets, stuck.read_index, stuck.for_ns), (1, 0, 59 * S));
    live.queue(0).unwrap().sample(61 * S, Some(1), 1);
    let row = live.picture().queues.remove(0);
    assert_eq!((row.stuck, row.depth, row.oldest_age_ns), (None, Some(0), None));
}

#[test]
fn a_slow_queue_that_moves_is_not_stuck() {
    let mut live = watching();
    for index in 0..8 {
        live.apply(&dispatch(0, index, S));
        live.apply(&doorbell(0, index, 0, S));
    }
    for second in 2..10 {
        live.queue(0).unwrap().sample(second * S, Some(8), second - 1);
        live.advance(second * S);
        assert_eq!(live.picture().queues[0].stuck, None);
    }
}

#[test]
fn late_samples_change_nothing() {
    let mut live = watching();
    live.apply(&doorbell(0, 0, 0, S));
    live.queue(0).unwrap().sample(5 * S, Some(1), 1);
    live.queue(0).unwrap().sample(2 * S, Some(1), 0);
    assert_eq!(live.picture().queues[0].read_index, Some(1));
}

#[test]
fn garbage_values_of_doorbells_make_no_depth() {
    let mut live = watching();
    live.apply(&doorbell(0, 3, 3, S));
    let Fact::Doorbell(mut garbage) = doorbell(0, 1 << 40, 3, 2 * S) else {
        unreachable!()
    };
    garbage.beyond = true;
    live.apply(&Fact::Doorbell(garbage));
    assert_eq!(live.picture().queues[0].depth, Some(1));
}

#[test]
fn unread_packets_and_losses_are_shown_as_such() {
    let mut live = watching();
    live.apply(&Fact::Packet(OtherPacket {
        queue: 3,
        ..sample::unread(7, 5, S)
    }));
    for _ in 0..2 {
        live.apply(&Fact::Loss(LossFact {
            time_ns: S,
            source: "doorbell-ring".to_owned(),
            count: 2,
        }));
    }
    let picture = live.picture();
    assert_eq!((picture.totals.unread, picture.totals.dispatches), (Some(5), Some(0)));
    assert_eq!(picture.queues[0].packets[0].tid, None);
    assert_eq!(
        picture.losses,
        [Loss {
            source: "doorbell-ring".to_owned(),
            count: 4
        }]
    );
}

#[test]
fn what_ended_goes_away_after_a_while() {
    let mut live = watching();
    live.apply(&process(10, None, Some(2 * S)));
    live.apply(&process(20, Some(10), None));
    live.advance(3 * S);
    let rows = live.picture().processes;
    assert_eq!(
        rows.iter().map(|row| (row.pid, row.ended)).collect::<Vec<_>>(),
        [(10, true), (20, false)]
    );
    live.advance(8 * S);
    let rows = live.picture().processes;
    assert_eq!(
        rows.iter().map(|row| (row.pid, row.parent)).collect::<Vec<_>>(),
        [(20, Some(10))]
    );
}

#[test]
fn what_a_process_invents_is_bounded() {
    let mut live = watching();
    for number in 0..MAX_QUEUES as u32 + 3 {
        let Fact::Dispatch(mut invented) = dispatch(number, 0, S) else {
            unreachable!()
        };
        invented.kernel_object = u64::from(number);
        live.apply(&Fact::Dispatch(invented));
    }
    let picture = live.picture();
    assert_eq!((picture.queues.len(), picture.other_queues), (MAX_QUEUES, 3));
    let told: u64 = picture.kernels.iter().map(|kernel| kernel.count).sum();
    assert_eq!(Some(told + picture.other_kernels), picture.totals.dispatches);
}

#[test]
fn copies_are_a_queues_doorbells_too() {
    let mut live = watching();
    live.apply(&Fact::Copy(sample::copy(S)));
    let picture = live.picture();
    assert_eq!(
        (
            picture.queues[0].copies,
            picture.queues[0].doorbells,
            picture.totals.copies
        ),
        (Some(1), Some(1), Some(1))
    );
}

#[test]
fn a_queue_has_its_gpus_name_and_scheduler_if_they_are_known() {
    let mut live = watching();
    for (queue, gpu_id) in [(0, Some(5)), (1, Some(6)), (2, None)] {
        live.apply(&Fact::Queue(crate::tables::Queue {
            queue,
            gpu_id,
            ..sample::queue(0)
        }));
    }
    let gpu = Gpu {
        name: "gfx1100".to_owned(),
        scheduler: Some("mes".to_owned()),
    };
    live.set_gpus(BTreeMap::from([(5, gpu)]));
    let rows = live.picture().queues;
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.gpu.as_deref(), row.scheduler.as_deref()))
        .collect();
    assert_eq!(told, [(Some("gfx1100"), Some("mes")), (None, None), (None, None)]);
}

#[test]
fn queues_and_kernels_have_the_names_of_their_processes_if_they_are_known() {
    let mut live = watching();
    live.apply(&dispatch(0, 0, S));
    let names = |live: &Live| {
        let picture = live.picture();
        (picture.queues[0].comm.clone(), picture.kernels[0].comm.clone())
    };
    assert_eq!(names(&live), (None, None));
    live.apply(&process(sample::dispatch(0, S).pid, None, None));
    let comm = Some(sample::process(7).comm);
    assert_eq!(names(&live), (comm.clone(), comm));
}

#[test]
fn api_calls_are_known_only_if_some_were_watched() {
    let mut live = watching();
    assert_eq!(live.picture().totals.api_calls, Some(0));
    let mut watched = sample::EVERYTHING;
    (watched.api, watched.api_stats) = (false, false);
    live.set_capture(Capture {
        watched,
        ..Capture::default()
    });
    assert_eq!(live.picture().totals.api_calls, None);
    watched.api_stats = true;
    live.set_capture(Capture {
        watched,
        ..Capture::default()
    });
    assert_eq!(live.picture().totals.api_calls, Some(0));
}

/// Replays a trace whose disk did not keep up.
#[test]
fn runs_count_as_what_they_stand_for() {
    let mut live = watching();
    live.apply(&Fact::Dispatch(sample::dispatch(0, S)));
    live.apply(&doorbell(0, 0, 0, S));
    live.apply(&Fact::DispatchRun(sample::dispatch_run(1, 9, S)));
    let mut several = sample::dispatch_run(10, 5, S + 9);
    several.kernel_object = None;
    live.apply(&Fact::DispatchRun(several));
    live.apply(&Fact::DoorbellRun(sample::doorbell_run(1, 14, S)));
    live.advance(S + S / 2);
    let picture = live.picture();
    let totals = &picture.totals;
    assert_eq!(
        (totals.dispatches, totals.aggregated, totals.doorbells),
        (Some(15), Some(14), Some(15))
    );
    assert_eq!(
        (totals.by_path.doorbell, totals.dispatches_per_s.map(f64::round)),
        (Some(15), Some(15.0))
    );
    let row = &picture.queues[0];
    assert_eq!(
        (row.dispatches, row.doorbells, row.by_path.doorbell),
        (Some(15), Some(15), Some(15))
    );
    // The last sample is from the first doorbell, and 15 packets are published by now.
    assert_eq!(
        (row.read_index, row.depth, row.packets_per_doorbell),
        (Some(0), Some(15), Some(1.0))
    );
    let packets: Vec<_> = row.packets.iter().map(|packet| (packet.index, packet.count)).collect();
    assert_eq!(packets, [(0, 1), (1, 9), (10, 5)]);
    let kernels: Vec<_> = picture.kernels.iter().map(|kernel| kernel.count).collect();
    assert_eq!((kernels, picture.other_kernels), (vec![10], 5));
    let processes: Vec<_> = picture
        .processes
        .iter()
        .map(|process| (process.dispatches, process.doorbells))
        .collect();
    assert_eq!(processes, [(Some(15), Some(15))]);
}

/// The capture ends at 3 s, and the last facts are taken a second later.
#[test]
fn the_last_picture_has_the_rates_of_the_moment_at_which_the_capture_ended() {
    let mut live = watching();
    for index in 0..300 {
        live.apply(&dispatch(0, index, index * S / 100));
        live.apply(&doorbell(0, index, index, index * S / 100));
    }
    live.advance(4 * S + S / 10);
    let rates = |picture: &Picture| (picture.totals.dispatches_per_s, picture.queues[0].doorbells_per_s);
    assert_eq!(rates(&live.picture()), (Some(0.0), Some(0.0)));
    let last = live.picture_at(3 * S);
    assert_eq!(rates(&last), (Some(100.0), Some(100.0)));
    assert_eq!((last.time_ns, last.totals.dispatches), (3 * S, Some(300)));
    assert_eq!(last.totals.history, [100, 100, 100]);
}

#[test]
fn what_is_not_watched_has_no_number() {
    let facts = [
        dispatch(0, 0, S),
        doorbell(0, 0, 0, S),
        Fact::Copy(sample::copy(S)),
        process(7, None, None),
    ];
    let mut live = Live::new();
    facts.iter().for_each(|fact| live.apply(fact));
    let picture = live.picture();
    let nothing = Totals {
        history: picture.totals.history.clone(),
        ..Totals::default()
    };
    assert_eq!(picture.totals, nothing, "by default nothing is watched");
    let row = &picture.queues[0];
    assert_eq!(
        (row.dispatches, row.doorbells, row.copies, row.unread),
        (None, None, None, None)
    );
    assert_eq!((row.dispatches_per_s, row.by_path), (None, ByPath::default()));
    let process = &picture.processes[0];
    assert_eq!(
        (process.dispatches, process.doorbells, process.ioctls),
        (None, None, None)
    );
    // A path that was not watched is unknown, beside those that were.
    let mut some = watching();
    some.capture.watched.kernel_rings = false;
    facts.iter().for_each(|fact| some.apply(fact));
    some.apply(&Fact::Queue(sample::queue(1)));
    let paths = some.picture().totals.by_path;
    assert_eq!(
        [paths.doorbell, paths.ring, paths.thunk, paths.unseen],
        [Some(1), None, Some(0), Some(0)]
    );
}

#[test]
fn a_queue_without_a_sample_may_hide_unseen_packets_and_one_of_pm4_hides_dispatches() {
    let queue = |change: fn(&mut crate::tables::Queue)| {
        let mut queue = sample::queue(1);
        change(&mut queue);
        Fact::Queue(queue)
    };
    let totals = |facts: &[Fact], now: u64| {
        let mut live = watching();
        live.apply(&dispatch(0, 0, S));
        facts.iter().for_each(|fact| live.apply(fact));
        live.advance(now);
        let totals = live.picture().totals;
        (totals.dispatches, totals.by_path.doorbell, totals.by_path.unseen)
    };
    assert_eq!(totals(&[queue(|_| ())], S), (Some(1), Some(1), Some(0)));
    assert_eq!(totals(&[], S), (Some(1), Some(1), None));
    let unsampled = queue(|queue| (queue.unseen, queue.watched_to_end) = (None, Some(false)));
    assert_eq!(totals(&[unsampled], S), (Some(1), Some(1), None));
    // While a queue exists, its number is that of the last sample; after its end, the last sample must be behind its last use.
    let unwatched = |queue: &mut crate::tables::Queue| queue.watched_to_end = Some(false);
    assert_eq!(totals(&[queue(unwatched)], S), (Some(1), Some(1), Some(0)));
    let ended = queue(|queue| (queue.watched_to_end, queue.destroyed_ns) = (Some(false), Some(2 * S)));
    assert_eq!(totals(std::slice::from_ref(&ended), 3 * S), (Some(1), Some(1), None));
    assert_eq!(
        totals(&[ended], 60 * S),
        (Some(1), Some(1), None),
        "also when the queue is not shown any more"
    );
    let opaque = |end| {
        let mut queue = sample::queue(1);
        (queue.queue, queue.kind, queue.destroyed_ns) = (1, "compute-pm4".to_owned(), end);
        Fact::Queue(queue)
    };
    for end in [None, Some(2 * S)] {
        assert_eq!(totals(&[queue(|_| ()), opaque(end)], 60 * S), (None, None, None));
    }
}

#[test]
fn a_recorder_that_did_not_finish_leaves_unseen_packets_unknown() {
    let mut live = watching();
    live.apply(&dispatch(0, 0, S));
    live.apply(&Fact::Queue(sample::queue(1)));
    assert_eq!(live.picture().totals.by_path.unseen, Some(0));
    live.capture.interrupted = true;
    assert_eq!(live.picture().totals.by_path.unseen, None);
    assert_eq!(live.picture().totals.dispatches, Some(1));
}

#[test]
fn a_table_that_cannot_be_read_hides_its_numbers() {
    let mut live = watching();
    live.capture.unread = BTreeSet::from([Table::Dispatches]);
    live.apply(&dispatch(0, 0, S));
    live.apply(&doorbell(0, 0, 0, S));
    let picture = live.picture();
    assert_eq!((picture.totals.dispatches, picture.totals.doorbells), (None, Some(1)));
    assert_eq!(
        (picture.queues[0].dispatches, picture.queues[0].doorbells),
        (None, Some(1))
    );
    assert_eq!(picture.unread_tables, ["dispatches"]);
}
