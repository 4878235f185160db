//! Invented traces of many hosts, to try queries over a cluster on (docs/scale.md).
//!
//! `cargo run --release -p tracer-store --example hosts -- DIR [HOSTS [DISPATCHES]]` writes `DIR/host-000.trace` and so on, each with
//! this many dispatches. `cargo xtask bench` reads one with many. Every tenth host has a compute job on a ring of the driver, every seventh lost events, and a host with a higher number is slower.

use std::{
    path::PathBuf,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tracer_core::{
    sample,
    tables::{Dispatch, Doorbell, Fact, Loss, Queue, RingJob},
};
use tracer_store::{
    Manifest, StoreError, TraceWriter,
    manifest::{ClockSnapshot, Host, Target, Tool},
};

/// Dispatches of each host, unless the command names another number.
const DISPATCHES: u64 = 20_000;
/// Bytes that may wait for the disk: the writer aggregates rows above some limit.
const WAITING: usize = 4 << 20;
/// The kernels of the dispatches, from the most frequent on.
const KERNELS: [&str; 4] = ["gemm", "softmax", "layer_norm", "all_reduce"];

fn main() -> Result<(), StoreError> {
    let mut words = std::env::args().skip(1);
    let Some(dir) = words.next().map(PathBuf::from) else {
        eprintln!("usage: hosts DIR [HOSTS [DISPATCHES]]");
        return Ok(());
    };
    let mut number = |default| words.next().and_then(|word| word.parse().ok()).unwrap_or(default);
    let (hosts, dispatches): (u64, u64) = (number(100), number(DISPATCHES));
    (0..hosts).try_for_each(|number| host(&dir.join(format!("host-{number:03}.trace")), number, dispatches))
}

fn host(dir: &std::path::Path, number: u64, dispatches: u64) -> Result<(), StoreError> {
    let tool = Tool {
        name: "tracer".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let host = Host {
        name: format!("host-{number:03}"),
        ..Host::default()
    };
    let target = Target::Command {
        argv: vec!["./train".to_owned()],
    };
    let started = ClockSnapshot::now();
    let mut time_ns = started.monotonic_ns + 1_000_000;
    let mut manifest = Manifest::new(tool, host, target, started);
    manifest.simulated = Some("made up by examples/hosts.rs".to_owned());
    manifest.capabilities = ["doorbells", "packets", "kernel_rings"].map(str::to_owned).to_vec();
    let mut writer = TraceWriter::create(dir, manifest, false)?;
    let kernels = KERNELS.map(Arc::from);
    for index in 0..dispatches {
        time_ns += 10_000 + number * 50;
        // Of ten dispatches, two are of the first kernel, two of the second, four of the third and two of the fourth.
        let kernel = (index % 10).checked_ilog2().unwrap_or(0) as usize;
        writer.push(&Fact::Dispatch(Dispatch {
            kernel: kernels.get(kernel).cloned(),
            ..sample::dispatch(index, time_ns)
        }));
        writer.push(&Fact::Doorbell(Doorbell {
            reserve_to_doorbell_ns: Some(400 + number * 3 + index % 200),
            ..sample::doorbell(index, time_ns)
        }));
        // Pushed rows stay in memory until a tick hands them over.
        if index.is_multiple_of(1_000) {
            writer.tick(Instant::now())?;
            while writer.pending_bytes() > WAITING {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
    writer.push(&Fact::Queue(Queue {
        destroyed_ns: Some(time_ns),
        ..sample::queue(dispatches)
    }));
    writer.push(&Fact::Process(sample::process(7)));
    if number.is_multiple_of(10) {
        writer.push(&Fact::RingJob(job(time_ns)));
    }
    if number.is_multiple_of(7) {
        writer.push(&Fact::Loss(Loss {
            time_ns,
            source: "doorbell-ring".to_owned(),
            count: number + 1,
        }));
    }
    writer.finish(|manifest| manifest.complete = true).map(drop)
}

fn job(time_ns: u64) -> RingJob {
    RingJob {
        time_ns,
        ring: Some("comp_1.0.0".to_owned()),
        class: "comp".to_owned(),
        device: Some("0000:c1:00.0".to_owned()),
        context: None,
        seqno: None,
        job_id: None,
        client_id: None,
        reason: None,
        pid: Some(7),
        tid: Some(8),
        traced: Some(true),
        submit_ns: Some(time_ns),
        run_ns: Some(time_ns + 5_000),
        done_ns: Some(time_ns + 50_000),
        queued: Some(0),
    }
}
