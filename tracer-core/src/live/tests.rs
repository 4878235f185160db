//! Pictures of small histories.

use super::*;
use crate::{
    sample,
    tables::{Dispatch, Doorbell, Loss as LossFact, OtherPacket, Process},
};

const S: u64 = 1_000_000_000;

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
    let mut live = Live::new();
    for index in 0..10 {
        live.apply(&dispatch(0, index, index * S / 10));
        live.apply(&doorbell(0, index, index / 2, index * S / 10));
    }
    live.advance(S);
    let picture = live.picture();
    assert_eq!((picture.totals.dispatches, picture.totals.by_path.doorbell), (10, 10));
    assert_eq!(picture.totals.history, [10]);
    let row = &picture.queues[0];
    assert_eq!((row.dispatches, row.doorbells, row.depth), (10, 10, Some(10 - 4)));
    assert_eq!((row.read_index, row.write_index), (Some(4), Some(10)));
    // Index 4 was published at 0.4 s, and is the oldest index that was not taken.
    assert_eq!(row.oldest_age_ns, Some(S - 4 * S / 10));
    assert_eq!(row.latency_ns, Some((500, 500)));
    let counts: Vec<u64> = picture.kernels.iter().map(|kernel| kernel.count).collect();
    assert_eq!(counts, [5, 5]);
}

#[test]
fn a_queue_is_stuck_only_if_samples_show_no_movement() {
    let mut live = Live::new();
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
    let mut live = Live::new();
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
    let mut live = Live::new();
    live.apply(&doorbell(0, 0, 0, S));
    live.queue(0).unwrap().sample(5 * S, Some(1), 1);
    live.queue(0).unwrap().sample(2 * S, Some(1), 0);
    assert_eq!(live.picture().queues[0].read_index, Some(1));
}

#[test]
fn garbage_values_of_doorbells_make_no_depth() {
    let mut live = Live::new();
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
    let mut live = Live::new();
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
    assert_eq!((picture.totals.unread, picture.totals.dispatches), (5, 0));
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
    let mut live = Live::new();
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
    let mut live = Live::new();
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
    assert_eq!(told + picture.other_kernels, picture.totals.dispatches);
}

#[test]
fn copies_are_a_queues_doorbells_too() {
    let mut live = Live::new();
    live.apply(&Fact::Copy(sample::copy(S)));
    let picture = live.picture();
    assert_eq!(
        (
            picture.queues[0].copies,
            picture.queues[0].doorbells,
            picture.totals.copies
        ),
        (1, 1, 1)
    );
}

#[test]
fn a_queue_has_its_gpus_name_and_scheduler_if_they_are_known() {
    let mut live = Live::new();
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

/// Replays a trace whose disk did not keep up.
#[test]
fn runs_count_as_what_they_stand_for() {
    let mut live = Live::new();
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
    assert_eq!((totals.dispatches, totals.aggregated, totals.doorbells), (15, 14, 15));
    assert_eq!((totals.by_path.doorbell, totals.dispatches_per_s.round()), (15, 15.0));
    let row = &picture.queues[0];
    assert_eq!((row.dispatches, row.doorbells, row.by_path.doorbell), (15, 15, 15));
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
    assert_eq!(processes, [(15, 15)]);
}
