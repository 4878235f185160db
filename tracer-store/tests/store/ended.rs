//! Things that ended: each has one row, whether it was written with living things or sealed.

use std::thread;
use std::time::{Duration, Instant};

use tracer_core::sample;
use tracer_core::tables::{Fact, Queue, Table};
use tracer_store::{State, Trace, TraceWriter};

use crate::support::{files, manifest, rows};

/// The number of queues. Every hundredth continues to live.
const QUEUES: u32 = 20_000;

fn row(queue: u32, doorbells: u64) -> Fact {
    Fact::Queue(Queue {
        queue,
        created_ns: u64::from(queue),
        ..sample::queue(doorbells)
    })
}

/// Pushes queues that come and go. Returns the rows that they should have.
fn churn(writer: &mut TraceWriter) -> Vec<Fact> {
    let mut now = Instant::now();
    for queue in 0..QUEUES {
        writer.push(&row(queue, 1));
        if !queue.is_multiple_of(100) {
            writer.push_last(&row(queue, 2));
        }
        if queue.is_multiple_of(500) {
            now += Duration::from_secs(1);
            writer.tick(now).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
    }
    let last = |queue: u32| row(queue, if queue.is_multiple_of(100) { 1 } else { 2 });
    (0..QUEUES).map(last).collect()
}

#[test]
fn each_thing_has_one_row_however_many_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(dir.path(), manifest(), false).unwrap();
    let mut expected = churn(&mut writer);
    // These queues continue to live.
    for queue in (0..QUEUES).step_by(100) {
        writer.push(&row(queue, 3));
        expected[queue as usize] = row(queue, 3);
    }
    let written = writer.finish(|manifest| manifest.complete = true).unwrap();
    assert_eq!(written.dropped, 0);
    assert_eq!(rows(dir.path(), Table::Queues), expected);
    let trace = Trace::open(dir.path()).unwrap();
    assert_eq!((trace.state(), trace.damage().unwrap()), (State::Complete, vec![]));
    assert_eq!(trace.manifest().count(Table::Queues), Some(u64::from(QUEUES)));
}

/// Sealed rows are not written again: a recorder that is killed leaves parts of them.
#[test]
fn a_recorder_that_is_killed_leaves_each_row_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(dir.path(), manifest(), false).unwrap();
    let mut expected = churn(&mut writer);
    let now = Instant::now() + Duration::from_secs(3600);
    // Rows that had no room at the last tick. The writer may replace a part while it is read: the rows end there.
    let readable = || {
        let trace = Trace::open(dir.path()).unwrap();
        let facts = trace.facts(&[Table::Queues]).unwrap();
        facts.map_while(Result::ok).count()
    };
    while readable() < expected.len() {
        writer.push(&row(0, 7));
        writer.tick(now).unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    drop(writer);
    expected[0] = row(0, 7);
    let mut found = rows(dir.path(), Table::Queues);
    // That row may not have been written since.
    found[0] = row(0, 7);
    assert_eq!(found, expected);
    let parts = files(&dir.path().join("queues")).len();
    assert!((3..20).contains(&parts), "{parts}");
}

/// The rows are pushed in the order that readers would not expect.
#[test]
fn a_row_after_the_last_one_is_still_the_same_thing() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(dir.path(), manifest(), false).unwrap();
    writer.push_last(&row(0, 1));
    writer.push(&row(0, 2));
    writer.finish(|manifest| manifest.complete = true).unwrap();
    assert_eq!(rows(dir.path(), Table::Queues), [row(0, 2)]);
}
