//! The rate at which rows are taken, and their size on disk.

use std::time::{Duration, Instant};

use tracer_core::tables::{Doorbell, Fact, Table};
use tracer_store::{Trace, TraceWriter};

use crate::support::{dispatch, manifest};

fn doorbell(index: u64, time_ns: u64) -> Fact {
    Fact::Doorbell(Doorbell {
        queue: Some((index % 4) as u32),
        pid: 4242,
        tid: 4243,
        time_ns,
        value: index,
        published: 1,
        read_index: index.saturating_sub(2),
        write_index: index + 1,
        reserve_to_doorbell_ns: None,
        beyond: false,
    })
}

/// `cargo test --release -p tracer-store throughput -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn throughput() {
    const DISPATCHES: u64 = 2_000_000;
    let temporary = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(temporary.path(), manifest(), false).unwrap();
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    for index in 0..DISPATCHES {
        // One row per microsecond, with some jitter, like a busy queue.
        let time = 1_000_000_000 + index * 1000 + index * index % 307;
        writer.push(&dispatch(index, time));
        writer.push(&doorbell(index, time));
        if index.is_multiple_of(10_000) {
            let tick = Instant::now();
            writer.tick(tick).unwrap();
            longest = longest.max(tick.elapsed());
        }
    }
    let pushed = start.elapsed();
    let written = writer.finish(|manifest| manifest.complete = true).unwrap();
    let finished = start.elapsed();
    let trace = Trace::open(temporary.path()).unwrap();
    let rows = trace.rows(Table::Dispatches).unwrap() + trace.rows(Table::Doorbells).unwrap();
    let start = Instant::now();
    let read = trace.facts(&Table::ALL).unwrap().map(Result::unwrap).count();
    println!(
        "{rows} rows: pushed at {:.0} ns a row, longest tick {longest:?}, {} dropped; on disk after {finished:?} \
         ({:.0} rows/s), {:.1} bytes a row; {read} read at {:.0} rows/s",
        pushed.as_nanos() as f64 / (2 * DISPATCHES) as f64,
        written.dropped,
        rows as f64 / finished.as_secs_f64(),
        written.bytes as f64 / rows as f64,
        read as f64 / start.elapsed().as_secs_f64(),
    );
}
