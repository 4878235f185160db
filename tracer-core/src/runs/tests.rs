use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::sample;
use crate::tables::{Dispatch, DispatchRun, Doorbell, DoorbellRun, Evidence, Path};

/// Returns the runs of these rows.
fn runs(rows: &[Fact]) -> Vec<Fact> {
    let (mut runs, mut all) = (Runs::new(), Vec::new());
    for row in rows {
        assert!(runs.add(row, &mut |run| all.push(run)), "{row:?}");
    }
    runs.flush(&mut |run| all.push(run));
    all
}

fn dispatch_runs(rows: &[Fact]) -> Vec<DispatchRun> {
    let only = |run| match run {
        Fact::DispatchRun(run) => Some(run),
        _ => None,
    };
    let mut all: Vec<_> = runs(rows).into_iter().filter_map(only).collect();
    all.sort_by_key(|run| (run.queue, run.first_index));
    all
}

fn doorbell_runs(rows: &[Fact]) -> Vec<DoorbellRun> {
    let only = |run| match run {
        Fact::DoorbellRun(run) => Some(run),
        _ => None,
    };
    let mut all: Vec<_> = runs(rows).into_iter().filter_map(only).collect();
    all.sort_by_key(|run| (run.queue, run.first_index, run.begin_ns));
    all
}

fn with_kernel(index: u64, time_ns: u64, kernel: u64) -> Fact {
    Fact::Dispatch(Dispatch {
        kernel_object: kernel,
        kernel: Some(format!("kernel {kernel}").into()),
        ..sample::dispatch(index, time_ns)
    })
}

#[test]
fn a_burst_is_one_run_a_window() {
    // One dispatch per microsecond: ten thousand in 10 ms.
    let rows: Vec<Fact> = (0..25_000)
        .map(|index| with_kernel(index, 7 + index * 1000, 64))
        .collect();
    let run = |first_index: u64, last_index: u64| DispatchRun {
        queue: 0,
        pid: 7,
        path: Path::Doorbell,
        evidence: Evidence::Header,
        kernel_object: Some(64),
        kernel: Some("kernel 64".into()),
        first_index,
        last_index,
        count: last_index - first_index + 1,
        begin_ns: 7 + first_index * 1000,
        end_ns: 7 + last_index * 1000,
    };
    assert_eq!(
        dispatch_runs(&rows),
        [run(0, 9_999), run(10_000, 19_999), run(20_000, 24_999)]
    );
}

#[test]
fn what_differs_ends_a_run() {
    let base = sample::dispatch(1, 100);
    let other: [Dispatch; 5] = [
        Dispatch {
            index: 2,
            ..base.clone()
        },
        Dispatch { pid: 9, ..base.clone() },
        Dispatch {
            path: Path::Unseen,
            ..base.clone()
        },
        Dispatch {
            evidence: Evidence::Body,
            ..base.clone()
        },
        Dispatch {
            kernel_object: 128,
            ..base
        },
    ];
    for second in other {
        let rows = [Fact::Dispatch(sample::dispatch(0, 100)), Fact::Dispatch(second.clone())];
        assert_eq!(dispatch_runs(&rows).len(), 2, "{second:?}");
    }
}

/// Packets of several threads: each packet comes with the doorbell of its thread.
#[test]
fn what_comes_late_joins_both_its_neighbours() {
    let order = [0, 2, 1, 5, 4, 3, 6];
    let rows: Vec<Fact> = order.into_iter().map(|index| with_kernel(index, 100, 64)).collect();
    let runs = dispatch_runs(&rows);
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!((runs[0].first_index, runs[0].last_index, runs[0].count), (0, 6, 7));
}

#[test]
fn kernels_that_take_turns_share_runs_in_the_end() {
    let rows: Vec<Fact> = (0..1000)
        .map(|index| with_kernel(index, index * 1000, 64 + index % 2))
        .collect();
    let runs = dispatch_runs(&rows);
    let (mixed, named): (Vec<_>, Vec<_>) = runs.iter().partition(|run| run.kernel_object.is_none());
    assert_eq!((mixed.len(), named.len()), (1, 16));
    assert!(named.iter().all(|run| run.count == 1 && run.kernel.is_some()));
    let [mixed] = &mixed[..] else { unreachable!() };
    assert_eq!(
        (mixed.kernel.as_deref(), mixed.first_index, mixed.count),
        (None, 16, 984)
    );
    // The next window starts again.
    let mut later = rows;
    later.extend((1000..1016).map(|index| with_kernel(index, 20_000_000 + index * 1000, 64 + index % 2)));
    let named = |run: &&DispatchRun| run.kernel_object.is_some();
    assert_eq!(dispatch_runs(&later).iter().filter(named).count(), 32);
}

#[test]
fn doorbells_are_one_run_too() {
    let batch = |value: u64, published: u64, time_ns: u64| {
        Fact::Doorbell(Doorbell {
            published,
            ..sample::doorbell(value, time_ns)
        })
    };
    let rows = [
        batch(3, 4, 100),
        batch(3, 0, 200),
        batch(9, 6, 300),
        // No doorbell that was seen published 10 to 12.
        batch(14, 2, 400),
    ];
    let run = |count, highest_value, published, first, begin_ns, end_ns| DoorbellRun {
        queue: Some(0),
        pid: 7,
        beyond: false,
        count,
        highest_value,
        published,
        first_index: Some(first),
        last_index: Some(highest_value),
        begin_ns,
        end_ns,
    };
    assert_eq!(
        doorbell_runs(&rows),
        [run(3, 9, 10, 0, 100, 300), run(1, 14, 2, 13, 400, 400)]
    );
}

#[test]
fn a_doorbell_that_published_nothing_names_no_index() {
    let runs = doorbell_runs(&[Fact::Doorbell(Doorbell {
        published: 0,
        ..sample::doorbell(u64::MAX, 100)
    })]);
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((run.first_index, run.last_index, run.published), (None, None, 0));
    assert_eq!((run.highest_value, run.count), (u64::MAX, 1));
}

#[test]
fn impossible_rows_and_rows_of_other_kinds_are_not_taken() {
    let too_many = Fact::Doorbell(Doorbell {
        published: 5,
        ..sample::doorbell(3, 100)
    });
    for row in [too_many, Fact::Packet(sample::unread(0, 3, 100))] {
        let mut runs = Runs::new();
        assert!(!runs.add(&row, &mut |_| ()), "{row:?}");
        runs.flush(&mut |run| panic!("{run:?}"));
    }
}

/// Uses the last possible index.
#[test]
fn numbers_do_not_overflow() {
    let rows = [
        Fact::Dispatch(sample::dispatch(u64::MAX, u64::MAX)),
        Fact::Dispatch(sample::dispatch(0, 0)),
        Fact::Dispatch(sample::dispatch(u64::MAX - 1, u64::MAX)),
    ];
    let counts: Vec<u64> = dispatch_runs(&rows).iter().map(|run| run.count).collect();
    assert_eq!(counts, [1, 2]);
}

#[test]
fn open_runs_are_bounded() {
    let mut runs = Runs::new();
    let mut out = 0;
    for queue in 0..10_000 {
        let row = Fact::Dispatch(Dispatch {
            queue,
            ..sample::dispatch(0, 100)
        });
        runs.add(&row, &mut |_| out += 1);
        assert!(u64::from(queue) + 1 - out <= MAX_QUEUES as u64);
    }
    runs.flush(&mut |_| out += 1);
    assert_eq!(out, 10_000);
}

/// A step of a program: queue, number of skipped indexes, kernel, time since the previous step, whether its evidence differs, and
/// whether all runs end after it.
type Step = (u32, u64, u64, u64, bool, bool);

fn steps() -> impl Strategy<Value = (Vec<Step>, Vec<usize>)> {
    let gap = prop_oneof![8 => Just(0_u64), 1 => 1_u64..3];
    let kernel = prop_oneof![4 => Just(64_u64), 1 => 64_u64..68];
    let later = prop_oneof![6 => 0_u64..2_000, 2 => 0_u64..4_000_000, 1 => 9_999_990_u64..10_000_010];
    let step = (
        0_u32..3,
        gap,
        kernel,
        later,
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.02),
    );
    (vec(step, 0..400), vec(0_usize..400, 0..60))
}

/// Returns the dispatches of these steps, some of them swapped with the next one, and whether all runs end after each.
fn dispatches(steps: &[Step], swaps: &[usize]) -> Vec<(Dispatch, bool)> {
    let (mut next, mut now) = ([0_u64; 3], 1_000);
    let mut rows: Vec<(Dispatch, bool)> = Vec::new();
    for &(queue, gap, kernel, later, body, flush) in steps {
        now += later;
        let index = next[queue as usize] + gap;
        next[queue as usize] = index + 1;
        let row = Dispatch {
            queue,
            kernel_object: kernel,
            evidence: if body { Evidence::Body } else { Evidence::Header },
            ..sample::dispatch(index, now)
        };
        rows.push((row, flush));
    }
    for &at in swaps {
        if at + 1 < rows.len() {
            rows.swap(at, at + 1);
        }
    }
    rows
}

proptest! {
    /// Every dispatch is in one run, once, and a run says nothing false about it.
    #[test]
    fn runs_are_what_they_stand_for((steps, swaps) in steps()) {
        let rows = dispatches(&steps, &swaps);
        let (mut runs, mut all) = (Runs::new(), Vec::new());
        for (row, flush) in &rows {
            runs.add(&Fact::Dispatch(row.clone()), &mut |run| all.push(run));
            if *flush {
                runs.flush(&mut |run| all.push(run));
            }
        }
        runs.flush(&mut |run| all.push(run));
        let mut left: BTreeMap<(u32, u64), &Dispatch> =
            rows.iter().map(|(row, _)| ((row.queue, row.index), row)).collect();
        for run in &all {
            let Fact::DispatchRun(run) = run else { panic!("{run:?}") };
            prop_assert!(run.is_whole(), "{:?}", run);
            prop_assert!(run.end_ns - run.begin_ns < WINDOW_NS, "{:?}", run);
            let mut times = Vec::new();
            for index in run.first_index..=run.last_index {
                let row = left.remove(&(run.queue, index));
                let Some(row) = row else { panic!("{index} of {run:?} was not there, or is in two runs") };
                prop_assert_eq!((run.pid, run.path, run.evidence), (row.pid, row.path, row.evidence));
                prop_assert!(run.kernel_object.is_none_or(|object| object == row.kernel_object));
                times.push(row.time_ns);
            }
            prop_assert_eq!(times.iter().min(), Some(&run.begin_ns));
            prop_assert_eq!(times.iter().max(), Some(&run.end_ns));
        }
        prop_assert!(left.is_empty(), "{:?}", left);
    }

    /// The same for doorbells: their number, the published indexes, and the highest value.
    #[test]
    fn doorbell_runs_add_up((steps, swaps) in steps()) {
        let rows = dispatches(&steps, &swaps);
        let (mut runs, mut all) = (Runs::new(), Vec::new());
        // For each queue: doorbells, published indexes, highest value.
        let mut expected: BTreeMap<u32, (u64, Vec<u64>, u64)> = BTreeMap::new();
        let mut ends = [0_u64; 3];
        for (row, flush) in &rows {
            let end = &mut ends[row.queue as usize];
            let published = (row.index + 1).saturating_sub(*end);
            let sums = expected.entry(row.queue).or_default();
            sums.0 += 1;
            sums.1.extend(*end..*end + published);
            sums.2 = sums.2.max(row.index);
            *end += published;
            let doorbell = Doorbell { queue: Some(row.queue), published, ..sample::doorbell(row.index, row.time_ns) };
            prop_assert!(runs.add(&Fact::Doorbell(doorbell), &mut |run| all.push(run)));
            if *flush {
                runs.flush(&mut |run| all.push(run));
            }
        }
        runs.flush(&mut |run| all.push(run));
        let mut found: BTreeMap<u32, (u64, Vec<u64>, u64)> = BTreeMap::new();
        for run in &all {
            let Fact::DoorbellRun(run) = run else { panic!("{run:?}") };
            prop_assert!(run.is_whole(), "{:?}", run);
            prop_assert!(run.end_ns - run.begin_ns < WINDOW_NS, "{:?}", run);
            let sums = found.entry(run.queue.unwrap()).or_default();
            sums.0 += run.count;
            sums.1.extend(run.first_index.zip(run.last_index).into_iter().flat_map(|(first, last)| first..=last));
            sums.2 = sums.2.max(run.highest_value);
        }
        found.values_mut().for_each(|sums| sums.1.sort_unstable());
        prop_assert_eq!(found, expected);
    }
}
