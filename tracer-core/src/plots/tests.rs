use proptest::prelude::*;

use super::*;
use crate::sample::{self, recording};
use crate::tables::{CopiedBy, Copy, Dispatch, Doorbell, DoorbellRun, Progress, Queue, RingJob};

/// 400 bins of 10 ns from 1000 on.
const SPAN: (u64, Option<u64>) = (1000, Some(4999));

fn figures((begin, end): (u64, Option<u64>), facts: &[Fact]) -> Figures {
    let mut plots = Plots::new(begin, end);
    facts.iter().for_each(|fact| plots.add(fact, None));
    plots.finish()
}

fn gpu_time(time_ns: u64, start: u64, end: u64) -> Fact {
    Fact::GpuTime(sample::gpu_time(0, time_ns, (start, end)))
}

fn job(ring: &str, time_ns: u64) -> Fact {
    Fact::RingJob(RingJob {
        time_ns,
        submit_ns: Some(time_ns),
        run_ns: Some(time_ns),
        done_ns: Some(time_ns + 25),
        ..recording::job(ring, "comp", Some(true))
    })
}

fn loss(time_ns: u64, count: u64) -> Fact {
    Fact::Loss(Loss {
        time_ns,
        source: "doorbell-ring".to_owned(),
        count,
    })
}

fn progress(time_ns: u64, read_index: u64, published_end: u64) -> Fact {
    Fact::Progress(Progress {
        until_ns: time_ns,
        ..sample::progress(time_ns, read_index, published_end)
    })
}

fn rung(time_ns: u64, value: u64, published: u64, read_index: u64) -> Fact {
    Fact::Doorbell(Doorbell {
        published,
        read_index,
        ..sample::doorbell(value, time_ns)
    })
}

/// Returns the bins that are not empty.
fn used<T: Bin + PartialEq>(values: &[T]) -> Vec<(usize, T)> {
    let bins = values.iter().cloned().enumerate();
    bins.filter(|(_, value)| *value != T::default()).collect()
}

#[test]
fn a_series_keeps_its_values_when_its_bins_get_wider() {
    let mut series: Series<u64> = Series::new(Span::new(50, None));
    assert_eq!(series.width_ns(), 1000);
    *series.at(50) += 1;
    *series.at(1049) += 2;
    *series.at(1050) += 4;
    // The last ns of 400 bins.
    *series.at(50 + 399_999) += 8;
    assert_eq!((series.width_ns(), series.len()), (1000, 400));
    *series.at(50 + 400_000) += 16;
    assert_eq!((series.width_ns(), series.len()), (2000, 201));
    assert_eq!(used(series.used()), [(0, 7), (199, 8), (200, 16)]);
    // Before the begin, and with an end also after it, is at the nearest time.
    *series.at(0) += 32;
    assert_eq!(used(series.used())[0], (0, 39));
    let mut ended: Series<u64> = Series::new(Span::new(1000, Some(4999)));
    *ended.at(u64::MAX) += 1;
    assert_eq!((ended.width_ns(), used(ended.used())), (10, vec![(399, 1)]));
}

#[test]
fn lanes_have_what_happened_in_each_bin() {
    let copy = |by, time_ns| {
        Fact::Copy(Copy {
            by: Some(by),
            queue: Some(9),
            ..sample::copy(time_ns)
        })
    };
    let found = figures(
        SPAN,
        &[
            Fact::Dispatch(sample::dispatch(0, 1000)),
            Fact::Dispatch(sample::dispatch(1, 1009)),
            Fact::Dispatch(sample::dispatch(2, 1010)),
            Fact::Packet(sample::unread(3, 5, 1012)),
            rung(1012, 7, 1, 0),
            gpu_time(1012, 1005, 1035),
            // It overlaps, and counts from 1035 on.
            gpu_time(1012, 1015, 1041),
            copy(CopiedBy::Sdma, 1020),
            // A dispatch, too.
            copy(CopiedBy::Kernel, 1020),
            job("comp_1.0.0", 2000),
            job("sdma0", 2000),
            loss(3000, 7),
        ],
    );
    assert_eq!((found.width_ns, found.bins), (10, 400));
    let lane = |of: Subject| {
        let lane = found.lanes.iter().find(|lane| lane.of == of).expect("its lane");
        used(&lane.activity.bins(found.bins))
    };
    let bin = |dispatches, packets, doorbells, busy_ns| Activity {
        dispatches,
        packets,
        doorbells,
        busy_ns,
        ..Activity::default()
    };
    let expected = [
        (0, bin(2, 0, 0, 5)),
        (1, bin(1, 5, 1, 10)),
        (2, bin(0, 0, 0, 10)),
        (3, bin(0, 0, 0, 10)),
        (4, bin(0, 0, 0, 1)),
    ];
    assert_eq!(lane(Subject::Queue(Some(0))), expected);
    let copies = Activity {
        copies: 1,
        ..Activity::default()
    };
    assert_eq!(lane(Subject::Queue(Some(9))), [(2, copies)]);
    let ring = |name: &str| Subject::Ring {
        device: None,
        ring: Some(name.to_owned()),
    };
    let jobs = |jobs, busy_ns| Activity {
        jobs,
        busy_ns,
        ..Activity::default()
    };
    let expected = [(100, jobs(1, 10)), (101, jobs(0, 10)), (102, jobs(0, 5))];
    assert_eq!(
        (lane(ring("comp_1.0.0")), lane(ring("sdma0"))),
        (expected.to_vec(), expected.to_vec())
    );
    assert_eq!(used(&found.losses), [(200, 7)]);
    assert_eq!(found.by_path, [3, 0, 0, 0]);
}

#[test]
fn runs_are_spread_over_their_time() {
    // 30 dispatches from 1005 to 1034: five, ten, ten and five ns in the bins.
    let found = figures(SPAN, &[Fact::DispatchRun(sample::dispatch_run(0, 30, 1005))]);
    let dispatches: Vec<u64> = found.lanes[0]
        .activity
        .used()
        .iter()
        .map(|bin| bin.dispatches)
        .collect();
    assert_eq!((dispatches, found.aggregated), (vec![5, 10, 10, 5], 30));
    // Outside of the time of the recording, at its end.
    let found = figures(SPAN, &[Fact::DispatchRun(sample::dispatch_run(0, 30, 9000))]);
    let dispatches: Vec<u64> = found.lanes[0]
        .activity
        .bins(400)
        .iter()
        .map(|bin| bin.dispatches)
        .collect();
    assert_eq!(used(&dispatches), [(399, 30)]);
}

/// A doorbell and a sample give the depth of a moment. Between them it is not higher than after the first one, and not lower than
/// what the GPU may have left at the second one.
#[test]
fn depth_is_bounded_between_moments() {
    let ended = Queue {
        looked_ns: Some(1100),
        read_index: Some(5),
        in_flight: Some(0),
        ..sample::queue(5)
    };
    let found = figures(
        SPAN,
        &[
            // Four packets, none taken.
            rung(1000, 3, 4, 0),
            // Three of them are taken.
            progress(1030, 3, 4),
            // The fourth is taken, and there is a fifth.
            rung(1062, 4, 1, 4),
            Fact::Queue(ended),
        ],
    );
    let depth = &found.depths[0];
    let expected = [
        (0, Some((1, 4))),
        (1, Some((1, 4))),
        (2, Some((1, 4))),
        // At the sample exactly 1, then 0 or 1.
        (3, Some((0, 1))),
        (4, Some((0, 1))),
        (5, Some((0, 1))),
        // At the doorbell exactly 1, then 0 or 1 until the last sample.
        (6, Some((0, 1))),
        (7, Some((0, 1))),
        (8, Some((0, 1))),
        (9, Some((0, 1))),
        (10, Some((0, 0))),
    ];
    assert_eq!((depth.queue, depth.max), (0, 4));
    assert_eq!(used(&depth.bands.bins(found.bins)), expected);
}

/// Of doorbells in a run only the last index is known: nothing says how much the GPU took meanwhile.
#[test]
fn depth_in_a_run_is_between_nothing_and_all() {
    let run = DoorbellRun {
        begin_ns: 1020,
        end_ns: 1029,
        ..sample::doorbell_run(1, 6, 1020)
    };
    let found = figures(
        SPAN,
        &[rung(1000, 0, 1, 0), Fact::DoorbellRun(run), progress(1040, 5, 7)],
    );
    let expected = [
        (0, Some((0, 1))),
        (1, Some((0, 1))),
        (2, Some((0, 7))),
        (3, Some((2, 7))),
        (4, Some((2, 2))),
    ];
    assert_eq!(used(&found.depths[0].bands.bins(found.bins)), expected);
    // Without a moment before, nothing is known.
    assert!(
        figures(SPAN, &[Fact::DoorbellRun(sample::doorbell_run(0, 6, 1020))])
            .depths
            .is_empty()
    );
}

#[test]
fn times_are_in_bars_of_equal_width_on_a_logarithmic_axis() {
    let mut plots = Plots::new(0, None);
    for (launch, reserve) in [
        (Some(900), Some(0)),
        (Some(1000), Some(1)),
        (Some(1024), None),
        (None, Some(2)),
    ] {
        plots.add(&Fact::Dispatch(sample::dispatch(0, 5)), launch);
        let doorbell = Doorbell {
            reserve_to_doorbell_ns: reserve,
            ..sample::doorbell(0, 5)
        };
        plots.add(&Fact::Doorbell(doorbell), None);
    }
    let found = plots.finish();
    let bar = |from_ns, to_ns, count| Bar { from_ns, to_ns, count };
    // 2^9.75 is 861.08, 2^10.25 is 1217.75.
    assert_eq!(found.launch.bars, [bar(862, 1024, 2), bar(1024, 1218, 1)]);
    assert_eq!((found.launch.known, found.launch.unknown), (3, 1));
    let stats = found.launch.stats.unwrap();
    assert_eq!((stats.min, stats.max, stats.total), (900, 1024, 2924));
    let reserve: Vec<Bar> = found.reserve.bars.into_iter().filter(|bar| bar.count > 0).collect();
    assert_eq!(reserve, [bar(0, 1, 1), bar(1, 2, 1), bar(2, 3, 1)]);
    let mut most = Plots::new(0, None);
    most.add(&Fact::Dispatch(sample::dispatch(0, 5)), Some(u64::MAX));
    assert_eq!(most.finish().launch.bars[0].to_ns, u64::MAX);
}

#[test]
fn copies_are_counted_by_what_moves_them() {
    let copy = |engine, by, bytes| {
        Fact::Copy(Copy {
            engine,
            by: Some(by),
            bytes,
            ..sample::copy(5)
        })
    };
    let found = figures(
        SPAN,
        &[
            copy(Some(1), CopiedBy::Sdma, Some(100)),
            copy(None, CopiedBy::Sdma, None),
            copy(Some(1), CopiedBy::Sdma, None),
            copy(None, CopiedBy::Kernel, Some(7)),
        ],
    );
    let moved = |by, count, bytes, unknown| Moved {
        by: Some(by),
        count,
        bytes,
        unknown,
    };
    let expected = [
        moved(Mover::Engine(1), 2, 100, 1),
        moved(Mover::AnyEngine, 1, 0, 1),
        moved(Mover::Kernel, 1, 7, 0),
    ];
    assert_eq!(found.copies, expected);
}

#[test]
fn what_is_beyond_the_limit_is_in_the_lane_of_the_others() {
    let facts: Vec<Fact> = (0..600)
        .map(|queue| {
            Fact::Dispatch(Dispatch {
                queue,
                ..sample::dispatch(0, 1000)
            })
        })
        .collect();
    let found = figures(SPAN, &facts);
    assert_eq!(found.lanes.len(), 513);
    let others = found.lanes.iter().find(|lane| lane.of == Subject::OtherQueues);
    assert_eq!(others.map(|lane| lane.total().dispatches), Some(88));
}

proptest! {
    /// Nothing is lost or counted twice, whatever the times are, and whether or not the end is known.
    #[test]
    fn bins_add_up_to_the_totals(
        end in proptest::option::of(0..2_000_000_000_u64),
        rows in proptest::collection::vec((0..1_000_000_000_u64, 0..40_u32, 0..6_u8, 1..5000_u64), 0..200),
    ) {
        let mut rows = rows;
        rows.sort_unstable();
        let mut tally = Tally::default();
        let (mut jobs, mut lost) = (0, 0);
        let mut plots = Plots::new(100, end);
        for (time, queue, kind, count) in rows {
            let fact = match kind {
                0 => Fact::Dispatch(Dispatch { queue, ..sample::dispatch(count, time) }),
                1 => Fact::DispatchRun(crate::tables::DispatchRun { queue, ..sample::dispatch_run(0, count, time) }),
                2 => Fact::Packet(crate::tables::OtherPacket { queue, ..sample::unread(0, count, time) }),
                3 => Fact::Copy(Copy { queue: Some(queue), ..sample::copy(time) }),
                4 => { jobs += 1; job("gfx", time) }
                _ => { lost += count; loss(time, count) }
            };
            tally.add(&fact);
            plots.add(&fact, None);
        }
        let found = plots.finish();
        let sum = |value: fn(&Activity) -> u64| -> u64 {
            found.lanes.iter().flat_map(|lane| lane.activity.bins(found.bins)).map(|bin| value(&bin)).sum()
        };
        prop_assert_eq!(sum(|bin| bin.dispatches), tally.all_dispatches());
        prop_assert_eq!(sum(|bin| bin.packets), tally.unread);
        prop_assert_eq!(sum(|bin| bin.copies), tally.all_copies());
        prop_assert_eq!((sum(|bin| bin.jobs), found.losses.iter().sum::<u64>()), (jobs, lost));
        prop_assert_eq!(sum(Activity::submissions), tally.rows() + jobs);
        prop_assert!(found.bins <= BINS && found.lanes.iter().all(|lane| lane.activity.len() <= found.bins));
        prop_assert!(found.lanes.iter().all(|lane| lane.activity.width_ns() == found.width_ns));
    }
}
