//! Pushed rows are read back exactly, to the last bit.

use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use tracer_core::tables::{Fact, Table};
use tracer_store::{State, Trace, TraceWriter};

use crate::any::fact;
use crate::support::manifest;

/// Returns the key that distinguishes rows of which the last one counts, and the time.
fn key_and_time(fact: &Fact) -> (Option<(u32, u64)>, u64) {
    match fact {
        Fact::Process(row) => (Some((row.pid, row.first_ns)), row.first_ns),
        Fact::Queue(row) => (Some((row.queue, 0)), row.created_ns),
        Fact::Ioctl(row) => (None, row.enter_ns),
        Fact::Doorbell(row) => (None, row.time_ns),
        Fact::Dispatch(row) => (None, row.time_ns),
        Fact::DispatchRun(row) => (None, row.begin_ns),
        Fact::DoorbellRun(row) => (None, row.begin_ns),
        Fact::GpuTime(row) => (None, row.time_ns),
        Fact::Proxy(row) => (Some((row.proxy, 0)), row.created_ns),
        Fact::Request(row) => (None, row.time_ns),
        Fact::Packet(row) => (None, row.time_ns),
        Fact::CodeObject(row) => (Some((row.code_object, 0)), row.loaded_ns),
        Fact::Kernel(row) => (None, row.loaded_ns),
        Fact::Copy(row) => (None, row.time_ns),
        Fact::RingJob(row) => (None, row.time_ns),
        Fact::DriverCall(row) => (None, row.enter_ns),
        Fact::DriverEvent(row) => (None, row.time_ns),
        Fact::Progress(row) => (None, row.time_ns),
        Fact::ApiCall(row) => (None, row.enter_ns),
        Fact::ApiStats(row) => (Some((row.counter, 0)), row.time_ns),
        Fact::Library(row) => (None, row.time_ns),
        Fact::Stack(row) => (None, row.time_ns),
        Fact::Loss(row) => (None, row.time_ns),
    }
}

/// Returns the rows that a table should have, by the specification of the store.
fn expected(facts: &[Fact], table: Table) -> Vec<Fact> {
    let mut rows: Vec<Fact> = Vec::new();
    for fact in facts.iter().filter(|fact| Table::of(fact) == table) {
        let (key, _) = key_and_time(fact);
        rows.retain(|row| key.is_none() || key_and_time(row).0 != key);
        rows.push(fact.clone());
    }
    // Snapshot tables have no order of arrival.
    rows.sort_by_key(|row| (key_and_time(row).1, key_and_time(row).0));
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever pieces the rows were handed over in, every row is present, in the order of time.
    #[test]
    fn rows_come_back(batches in vec(vec(fact(), 0..24), 0..6), finish: bool) {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = TraceWriter::create(dir.path(), manifest(), false).unwrap();
        let mut now = Instant::now();
        for batch in &batches {
            batch.iter().for_each(|fact| writer.push(fact));
            now += Duration::from_secs(1);
            writer.tick(now).unwrap();
        }
        let written = writer.finish(|manifest| manifest.complete = finish).unwrap();
        prop_assert_eq!(written.dropped, 0);
        let facts = batches.concat();
        let trace = Trace::open(dir.path()).unwrap();
        prop_assert_eq!(trace.state(), if finish { State::Complete } else { State::Interrupted });
        for table in Table::ALL {
            let rows: Vec<_> = trace.facts(&[table]).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(&rows, &expected(&facts, table), "{:?}", table);
            prop_assert_eq!(trace.manifest().count(table), Some(rows.len() as u64));
            let frame = trace.frame(table).unwrap().frame;
            prop_assert_eq!(frame.height(), rows.len());
        }
        let all: Vec<_> = trace.facts(&Table::ALL).unwrap().map(Result::unwrap).collect();
        prop_assert!(all.is_sorted_by_key(|fact| (key_and_time(fact).1, Table::of(fact))));
    }
}
