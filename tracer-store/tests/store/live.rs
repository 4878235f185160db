//! A trace that is read while it is written, and the timing of a writer.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use tracer_core::tables::{Fact, Table};
use tracer_store::manifest::Exit;
use tracer_store::{State, StoreError, Trace, TraceWriter};

use crate::support::{dispatch, files, index, manifest, process, queue, rows};

#[test]
fn readers_see_a_growing_prefix() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    let mut writer = TraceWriter::create(dir, manifest(), false).unwrap();
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut seen, mut reads) = (0, 0);
            loop {
                let trace = Trace::open(dir).unwrap();
                let state = trace.state();
                let facts: Result<Vec<_>, _> = trace.facts(&[Table::Dispatches]).unwrap().collect();
                let facts = match facts {
                    Ok(facts) => facts,
                    // Small parts are merged into one, also during the recording.
                    Err(StoreError::Damaged(damage)) => {
                        assert!(damage.reason.contains("no longer exists"), "{damage}");
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                };
                assert!(
                    facts.iter().map(index).eq(0..facts.len() as u64),
                    "a gap or a row twice"
                );
                assert!(facts.len() >= seen, "rows went away");
                let queues = trace.facts(&[Table::Queues]).unwrap().skip_damaged().count();
                assert!(queues <= 1, "{queues} rows of one queue");
                seen = facts.len();
                reads += 1;
                if state == State::Complete {
                    return (seen, reads);
                }
            }
        });
        let mut now = Instant::now();
        for step in 0..60 {
            (step * 100..(step + 1) * 100).for_each(|index| writer.push(&dispatch(index, index)));
            writer.push(&Fact::Queue(queue(0, 17, step)));
            now += Duration::from_secs(1);
            writer.tick(now).unwrap();
            thread::sleep(Duration::from_millis(10));
        }
        writer.finish(|manifest| manifest.complete = true).unwrap();
        let (seen, reads) = reader.join().unwrap();
        assert_eq!(seen, 6000);
        assert!(reads > 1);
    });
}

#[test]
fn rows_reach_the_disk_by_their_age() {
    let temporary = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(temporary.path(), manifest(), false).unwrap();
    let start = Instant::now();
    writer.push(&dispatch(0, 0));
    writer.tick(start + Duration::from_millis(100)).unwrap();
    assert_eq!(files(temporary.path()), ["manifest.json"]);
    writer.tick(start + Duration::from_millis(600)).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while rows(temporary.path(), Table::Dispatches).is_empty() {
        assert!(Instant::now() < deadline, "the row is not on disk");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_last_row_of_a_queue_or_process_counts() {
    let temporary = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(temporary.path(), manifest(), false).unwrap();
    let mut now = Instant::now();
    for doorbells in 1..=3 {
        writer.push(&Fact::Queue(queue(1, 200, doorbells)));
        writer.push(&Fact::Queue(queue(0, 300, 10 * doorbells)));
        // The same process id twice, for two processes.
        writer.push(&Fact::Process(process(77, 5)));
        writer.push(&Fact::Process(process(77, 5 + doorbells)));
        now += Duration::from_secs(1);
        writer.tick(now).unwrap();
    }
    let written = writer.finish(|manifest| manifest.complete = true).unwrap();
    let counts: BTreeMap<_, _> = written.rows.into_iter().collect();
    assert_eq!((counts[&Table::Queues], counts[&Table::Processes]), (2, 4));
    let expected = [Fact::Queue(queue(1, 200, 3)), Fact::Queue(queue(0, 300, 30))];
    assert_eq!(rows(temporary.path(), Table::Queues), expected);
    assert_eq!(rows(temporary.path(), Table::Processes).len(), 4);
    assert_eq!(files(&temporary.path().join("queues")).len(), 1);
}

#[test]
fn small_parts_become_one() {
    let temporary = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(temporary.path(), manifest(), false).unwrap();
    let mut now = Instant::now();
    for index in 0..20 {
        // Later rows are earlier in time.
        writer.push(&dispatch(19 - index, 19 - index));
        now += Duration::from_secs(1);
        // The thread may be busy. Then rows of two ticks are in one part.
        writer.tick(now).unwrap();
    }
    let written = writer.finish(|manifest| manifest.complete = true).unwrap();
    assert_eq!(files(&temporary.path().join("dispatches")).len(), 1);
    assert_eq!(
        written.bytes,
        Trace::open(temporary.path()).unwrap().bytes_on_disk().unwrap()
    );
    assert!(rows(temporary.path(), Table::Dispatches).iter().map(index).eq(0..20));
}

#[test]
fn the_manifest_follows_while_recording() {
    let temporary = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(temporary.path(), manifest(), false).unwrap();
    writer.update_manifest(|manifest| {
        manifest.warnings.push("one probe is missing".to_owned());
        manifest.complete = true;
    });
    writer.tick(Instant::now()).unwrap();
    drop(writer);
    let trace = Trace::open(temporary.path()).unwrap();
    assert_eq!(trace.manifest().warnings, ["one probe is missing"]);
    assert_eq!(trace.state(), State::Interrupted);
}

#[test]
fn a_disk_that_refuses_is_reported() {
    let temporary = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(temporary.path(), manifest(), false).unwrap();
    // A file in the place of the table's folder.
    std::fs::write(temporary.path().join("dispatches"), "").unwrap();
    let mut now = Instant::now();
    let mut tick = |writer: &mut TraceWriter| {
        writer.push(&dispatch(0, 0));
        now += Duration::from_secs(1);
        thread::sleep(Duration::from_millis(5));
        writer.tick(now)
    };
    let error = (0..2000).find_map(|_| tick(&mut writer).err()).unwrap();
    assert!(
        matches!(&error, StoreError::Io { path, .. } if path.ends_with("dispatches")),
        "{error}"
    );
    // The error is reported once.
    assert!((0..20).all(|_| tick(&mut writer).is_ok()));
    let written = writer.finish(|manifest| {
        manifest.exit = Some(Exit::Code(7));
        manifest.complete = true;
    });
    let written = written.unwrap();
    assert!(written.dropped > 20);
    let trace = Trace::open(temporary.path()).unwrap();
    assert_eq!(trace.state(), State::Interrupted);
    assert_eq!(trace.manifest(), &written.manifest);
    assert_eq!(trace.manifest().exit, Some(Exit::Code(7)));
    assert_eq!(trace.manifest().losses["store"], written.dropped);
    assert_eq!(trace.manifest().warnings.len(), 1);
}

/// The disk has room again, and later rows are written.
#[test]
fn a_disk_that_refused_for_a_while() {
    let temporary = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(temporary.path(), manifest(), false).unwrap();
    let blocked = temporary.path().join("dispatches");
    std::fs::write(&blocked, "").unwrap();
    let mut now = Instant::now();
    let mut tick = |writer: &mut TraceWriter| {
        writer.push(&dispatch(0, 0));
        now += Duration::from_secs(1);
        thread::sleep(Duration::from_millis(5));
        writer.tick(now)
    };
    assert!((0..2000).any(|_| tick(&mut writer).is_err()));
    std::fs::remove_file(&blocked).unwrap();
    while !blocked.is_dir() {
        tick(&mut writer).unwrap();
    }
    let lost = writer.dropped();
    let written = writer.finish(|manifest| manifest.complete = true).unwrap();
    assert!(lost > 0 && written.dropped >= lost);
    let found = rows(temporary.path(), Table::Dispatches).len() as u64;
    assert_eq!(
        written
            .rows
            .iter()
            .find(|(table, _)| *table == Table::Dispatches)
            .unwrap()
            .1,
        found
    );
    assert!(found > 0);
}

/// After hours, a recorder does not leave one file for every half second.
#[test]
fn parts_are_merged_while_recording() {
    let temporary = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(temporary.path(), manifest(), false).unwrap();
    let mut now = Instant::now();
    let folder = temporary.path().join("dispatches");
    let mut most = 0;
    for index in 0..1000 {
        writer.push(&dispatch(index, index));
        now += Duration::from_secs(1);
        writer.tick(now).unwrap();
        // The thread takes rows of several ticks at once if it is busy.
        while !folder.is_dir() {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(2));
        most = most.max(files(&folder).len());
    }
    assert!(most < 100, "{most} files at once");
    writer.finish(|manifest| manifest.complete = true).unwrap();
    assert_eq!(files(&folder).len(), 1);
    assert!(rows(temporary.path(), Table::Dispatches).iter().map(index).eq(0..1000));
}

/// Rows without room are dropped and counted, and the kept rows are bounded by their bytes.
#[test]
fn rows_that_wait_are_bounded() {
    let temporary = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(temporary.path(), manifest(), false).unwrap();
    let row = tracer_core::sample::kernel(0);
    // 2 GiB of names, each another one, faster than any disk can take them.
    let long = "x".repeat(1 << 20);
    let pushed = 2048;
    for index in 0..pushed {
        writer.push(&Fact::Kernel(tracer_core::tables::Kernel {
            loaded_ns: index,
            name: format!("{index}{long}").into(),
            ..row.clone()
        }));
    }
    let dropped = writer.dropped();
    assert!(dropped > pushed / 2, "{dropped} of {pushed} dropped");
    let written = writer.finish(|manifest| manifest.complete = true).unwrap();
    let trace = Trace::open(temporary.path()).unwrap();
    assert_eq!(written.dropped, dropped);
    assert_eq!(trace.manifest().losses["store"], dropped);
    assert_eq!(trace.rows(Table::Kernels).unwrap(), pushed - dropped);
    assert_eq!(trace.state(), State::Complete);
    let losses = rows(temporary.path(), Table::Losses);
    assert!(
        matches!(&losses[..], [Fact::Loss(loss)] if loss.count == dropped && loss.source == "store"),
        "{losses:?}"
    );
}
