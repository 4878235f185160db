//! Rows that the disk cannot take in time: their runs, checked to the last index.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use proptest::option;
use proptest::prelude::*;
use tracer_core::runs::WINDOW_NS;
use tracer_core::sample;
use tracer_core::tables::{Dispatch, DispatchRun, Doorbell, DoorbellRun, Evidence, Fact, Table};
use tracer_core::tally::Aggregated;
use tracer_store::{Placing, State, Trace, TraceWriter, Written};

use crate::any::{number, path};
use crate::support::{manifest, rows};

/// Generates any dispatch run.
pub fn dispatch_run() -> impl Strategy<Value = Fact> {
    let evidence = prop_oneof![Just(Evidence::Header), Just(Evidence::Body)];
    let kernel = (option::of(number()), any::<Option<String>>());
    let numbers = prop::collection::vec(number(), 5);
    (any::<[u32; 2]>(), path(), evidence, kernel, numbers).prop_map(
        |([queue, pid], path, evidence, (kernel_object, kernel), n)| {
            Fact::DispatchRun(DispatchRun {
                queue,
                pid,
                path,
                evidence,
                kernel_object,
                kernel: kernel.map(Into::into),
                first_index: n[0],
                last_index: n[1],
                count: n[2],
                begin_ns: n[3],
                end_ns: n[4],
            })
        },
    )
}

/// Generates any doorbell run.
pub fn doorbell_run() -> impl Strategy<Value = Fact> {
    let indexes = (option::of(number()), option::of(number()));
    let numbers = prop::collection::vec(number(), 5);
    (any::<(Option<u32>, u32, bool)>(), indexes, numbers).prop_map(
        |((queue, pid, beyond), (first_index, last_index), n)| {
            Fact::DoorbellRun(DoorbellRun {
                queue,
                pid,
                beyond,
                count: n[0],
                highest_value: n[1],
                published: n[2],
                first_index,
                last_index,
                begin_ns: n[3],
                end_ns: n[4],
            })
        },
    )
}

fn begin(dir: &Path, row_memory: usize) -> TraceWriter {
    let placing = Placing {
        row_memory,
        ..Placing::default()
    };
    TraceWriter::create_as(dir, manifest(), placing).unwrap()
}

/// Publishes on four queues that leave out some indexes, and remembers the published indexes.
#[derive(Default)]
struct Program {
    steps: u64,
    ends: [u64; 4],
    /// Times by queue and index.
    published: BTreeMap<(u32, u64), u64>,
}

impl Program {
    /// Pushes `dispatches` dispatches, each with its doorbell, one per microsecond.
    fn run(&mut self, writer: &mut TraceWriter, dispatches: u64) {
        for _ in 0..dispatches {
            let step = self.steps;
            self.steps += 1;
            let queue = (step / 7 % 4) as u32;
            let end = &mut self.ends[queue as usize];
            let index = *end + u64::from(step.is_multiple_of(1000));
            *end = index + 1;
            let time_ns = 1_000_000 + step * 1000;
            self.published.insert((queue, index), time_ns);
            writer.push(&Fact::Doorbell(Doorbell {
                queue: Some(queue),
                ..sample::doorbell(index, time_ns)
            }));
            writer.push(&Fact::Dispatch(Dispatch {
                queue,
                kernel_object: 64 + u64::from(queue),
                ..sample::dispatch(index, time_ns)
            }));
        }
    }
}

/// The indexes and times in the rows of a trace, and the indexes in runs. Each index occurs once.
struct Found {
    rows: BTreeMap<(u32, u64), u64>,
    in_runs: u64,
    runs: u64,
}

impl Found {
    /// Compares with the published indexes. Runs bound their times.
    fn check(&self, program: &Program, runs: impl Iterator<Item = (u32, u64, u64, u64, u64)>) {
        let mut left = program.published.clone();
        for (key, time_ns) in &self.rows {
            assert_eq!(left.remove(key), Some(*time_ns), "{key:?}");
        }
        for (queue, first, last, begin_ns, end_ns) in runs {
            assert!(end_ns - begin_ns < WINDOW_NS, "{queue} {first}");
            let times: Vec<u64> = (first..=last)
                .map(|index| {
                    let time_ns = left.remove(&(queue, index));
                    time_ns.unwrap_or_else(|| panic!("{index} of {queue} is there twice, or never was"))
                })
                .collect();
            assert_eq!(times.iter().min(), Some(&begin_ns));
            assert_eq!(times.iter().max(), Some(&end_ns));
        }
        assert_eq!(left.len(), 0, "{left:?}");
    }
}

fn dispatches(dir: &Path, program: &Program) -> Found {
    let row = |fact: Fact| match fact {
        Fact::Dispatch(row) => ((row.queue, row.index), row.time_ns),
        other => panic!("{other:?}"),
    };
    let run = |fact: Fact| match fact {
        Fact::DispatchRun(run) => run,
        other => panic!("{other:?}"),
    };
    let all = rows(dir, Table::Dispatches);
    let count = all.len();
    let runs: Vec<DispatchRun> = rows(dir, Table::DispatchRuns).into_iter().map(run).collect();
    for run in &runs {
        assert!(run.is_whole(), "{run:?}");
        assert_eq!(run.kernel_object, Some(64 + u64::from(run.queue)));
    }
    let found = Found {
        rows: all.into_iter().map(row).collect(),
        in_runs: runs.iter().map(|run| run.count).sum(),
        runs: runs.len() as u64,
    };
    assert_eq!(found.rows.len(), count, "a row is there twice");
    let ranges = runs.iter();
    found.check(
        program,
        ranges.map(|run| (run.queue, run.first_index, run.last_index, run.begin_ns, run.end_ns)),
    );
    found
}

fn doorbells(dir: &Path, program: &Program) -> Found {
    let row = |fact: Fact| match fact {
        Fact::Doorbell(row) => ((row.queue.unwrap(), row.value), row.time_ns),
        other => panic!("{other:?}"),
    };
    let run = |fact: Fact| match fact {
        Fact::DoorbellRun(run) => run,
        other => panic!("{other:?}"),
    };
    let runs: Vec<DoorbellRun> = rows(dir, Table::DoorbellRuns).into_iter().map(run).collect();
    for run in &runs {
        assert!(run.is_whole(), "{run:?}");
        assert_eq!((run.published, Some(run.highest_value)), (run.count, run.last_index));
    }
    let found = Found {
        rows: rows(dir, Table::Doorbells).into_iter().map(row).collect(),
        in_runs: runs.iter().map(|run| run.count).sum(),
        runs: runs.len() as u64,
    };
    found.check(
        program,
        runs.iter().map(|run| {
            let (first, last) = run.first_index.zip(run.last_index).unwrap();
            (run.queue.unwrap(), first, last, run.begin_ns, run.end_ns)
        }),
    );
    found
}

fn finish(writer: TraceWriter) -> Written {
    writer.finish(|manifest| manifest.complete = true).unwrap()
}

/// Rows and runs together equal what was published: nothing is missing, and nothing is duplicated.
#[test]
fn what_waits_for_the_disk_beyond_the_bound_is_in_runs() {
    let dir = tempfile::tempdir().unwrap();
    // Less than the size of the first rows that are written before the bound is first checked.
    let mut writer = begin(dir.path(), 64 << 10);
    let mut program = Program::default();
    assert!(!writer.is_aggregating());
    program.run(&mut writer, 20_000);
    assert!(writer.is_aggregating());
    let mut now = Instant::now();
    let mut caught_up = |writer: &mut TraceWriter| {
        while writer.is_aggregating() {
            now += Duration::from_secs(1);
            writer.tick(now).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
    };
    caught_up(&mut writer);
    // Fewer rows than those after which the bound is checked: all of them are rows.
    let before = program.published.len();
    program.run(&mut writer, 1000);
    caught_up(&mut writer);
    program.run(&mut writer, 20_000);
    assert!(writer.is_aggregating());
    let written = finish(writer);
    let (dispatches, doorbells) = (dispatches(dir.path(), &program), doorbells(dir.path(), &program));
    for found in [&dispatches, &doorbells] {
        assert!(
            found.rows.len() >= 2 * 1000 && found.in_runs > 20_000,
            "{}",
            found.rows.len()
        );
        assert!(found.runs < found.in_runs / 100, "{} runs", found.runs);
        for (key, time_ns) in program.published.iter().filter(|(_, time_ns)| {
            let step = (**time_ns - 1_000_000) / 1000;
            (before as u64..before as u64 + 1000).contains(&step)
        }) {
            assert_eq!(found.rows.get(key), Some(time_ns), "it had room, and is no row");
        }
    }
    let aggregated = Aggregated {
        dispatches: dispatches.in_runs,
        doorbells: doorbells.in_runs,
    };
    assert_eq!((written.aggregated, written.dropped), (aggregated, 0));
    let trace = Trace::open(dir.path()).unwrap();
    assert_eq!((trace.state(), trace.damage().unwrap()), (State::Complete, vec![]));
    assert_eq!(trace.manifest().count(Table::DispatchRuns), Some(dispatches.runs));
    assert!(trace.manifest().losses.is_empty());
}

#[test]
fn rows_come_back_when_the_disk_has_caught_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = begin(dir.path(), 4 << 20);
    let mut program = Program::default();
    while !writer.is_aggregating() {
        program.run(&mut writer, 100);
    }
    // Nothing was handed over, because no batch is full and there was no tick. One tick hands over everything.
    let waits = program.published.len();
    let mut now = Instant::now() + Duration::from_secs(1);
    writer.tick(now).unwrap();
    program.run(&mut writer, 100);
    while writer.is_aggregating() {
        now += Duration::from_secs(1);
        writer.tick(now).unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    finish(writer);
    let found = dispatches(dir.path(), &program);
    assert!(
        found.rows.len() >= waits - 100,
        "{} of {waits} are rows",
        found.rows.len()
    );
    assert!(found.in_runs <= 200, "{}", found.in_runs);
}

/// Every number in the runs is checked.
#[test]
fn without_memory_for_rows_all_dispatches_and_doorbells_are_in_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = begin(dir.path(), 0);
    for index in 0..5 {
        writer.push(&Fact::Doorbell(sample::doorbell(index, 100 + index)));
        writer.push(&Fact::Dispatch(sample::dispatch(index, 100 + index)));
    }
    writer.push(&Fact::Packet(sample::unread(5, 2, 105)));
    // Another window.
    writer.push(&Fact::Dispatch(sample::dispatch(7, 100 + WINDOW_NS)));
    // The values contradict each other.
    let odd = Doorbell {
        published: 9,
        ..sample::doorbell(3, 300)
    };
    writer.push(&Fact::Doorbell(odd.clone()));
    let written = finish(writer);
    assert!(!dir.path().join("dispatches").exists());
    assert_eq!(
        rows(dir.path(), Table::DispatchRuns),
        [
            Fact::DispatchRun(sample::dispatch_run(0, 5, 100)),
            Fact::DispatchRun(sample::dispatch_run(7, 1, 100 + WINDOW_NS))
        ]
    );
    assert_eq!(
        rows(dir.path(), Table::DoorbellRuns),
        [Fact::DoorbellRun(sample::doorbell_run(0, 5, 100))]
    );
    assert_eq!(rows(dir.path(), Table::Doorbells), [Fact::Doorbell(odd)]);
    assert_eq!(
        rows(dir.path(), Table::Packets),
        [Fact::Packet(sample::unread(5, 2, 105))]
    );
    let aggregated = Aggregated {
        dispatches: 6,
        doorbells: 5,
    };
    assert_eq!((written.aggregated, written.dropped), (aggregated, 0));
}

/// A recorder that is killed misses at most the last second, because open runs do not wait for their window's end.
#[test]
fn runs_reach_the_disk_while_recording() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = begin(dir.path(), 0);
    writer.push(&Fact::Dispatch(sample::dispatch(0, 100)));
    let mut now = Instant::now();
    while rows(dir.path(), Table::DispatchRuns).is_empty() {
        now += Duration::from_secs(1);
        writer.tick(now).unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    drop(writer);
    assert_eq!(
        rows(dir.path(), Table::DispatchRuns),
        [Fact::DispatchRun(sample::dispatch_run(0, 1, 100))]
    );
}

/// Names of a MiB, each another one in a run of its own, faster than any disk can take them.
#[test]
fn runs_that_find_no_room_are_lost_and_what_they_stand_for_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = begin(dir.path(), 0);
    let long = "x".repeat(1 << 20);
    let (windows, each) = (1024, 3);
    for window in 0..windows {
        let name: std::sync::Arc<str> = format!("{window}{long}").into();
        for index in 0..each {
            writer.push(&Fact::Dispatch(Dispatch {
                kernel: Some(name.clone()),
                ..sample::dispatch(window * each + index, window * WINDOW_NS)
            }));
        }
    }
    let written = finish(writer);
    let lost = written.dropped;
    assert!(lost > 0 && lost < windows * each && lost.is_multiple_of(each), "{lost}");
    assert_eq!(written.aggregated.dispatches, windows * each - lost);
    let trace = Trace::open(dir.path()).unwrap();
    assert_eq!(trace.rows(Table::DispatchRuns).unwrap(), windows - lost / each);
    assert_eq!(trace.manifest().losses, BTreeMap::from([("store".to_owned(), lost)]));
    let losses = rows(dir.path(), Table::Losses);
    assert!(
        matches!(&losses[..], [Fact::Loss(loss)] if loss.count == lost && loss.source == "store"),
        "{losses:?}"
    );
}

#[test]
fn runs_that_the_disk_refuses_are_lost_and_what_they_stand_for_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = begin(dir.path(), 0);
    // A file in the place of the table's folder.
    fs::write(dir.path().join("dispatch_runs"), "").unwrap();
    for index in 0..5 {
        writer.push(&Fact::Doorbell(sample::doorbell(index, 100 + index)));
        writer.push(&Fact::Dispatch(sample::dispatch(index, 100 + index)));
    }
    let written = finish(writer);
    let aggregated = Aggregated {
        dispatches: 0,
        doorbells: 5,
    };
    assert_eq!((written.aggregated, written.dropped), (aggregated, 5));
    let trace = Trace::open(dir.path()).unwrap();
    assert_eq!(trace.manifest().losses, BTreeMap::from([("store".to_owned(), 5)]));
    assert_eq!(trace.state(), State::Interrupted);
}
