//! Traces of older versions stay readable: those in `fixtures` are never written again.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use tracer_core::family::Family;
use tracer_core::tables::{
    Copy, Dispatch, Doorbell, Evidence, Fact, Ioctl, Loss, OtherPacket, PacketKind, Path as Way, Process, Queue, Table,
    Unread,
};
use tracer_store::manifest::{
    ClockSnapshot, Device, Exit, Host, Library, Probe, Scheduler, SchedulerKind, Target, Tool,
};
use tracer_store::{Manifest, State, Trace, TraceWriter};

use crate::support::{process, queue};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Returns one fact per table, as version 1 wrote it.
fn facts() -> Vec<Fact> {
    let (pid, tid) = (4242, 4243);
    vec![
        Fact::Process(Process {
            exit_ns: Some(900),
            ..process(pid, 10)
        }),
        Fact::Queue(Queue {
            ring_memory: None,
            ..queue(0, 20, 2)
        }),
        Fact::Ioctl(Ioctl {
            pid,
            tid,
            enter_ns: 30,
            exit_ns: 31,
            device: "kfd",
            fd: -1,
            cmd: 0xc058_4b02,
            name: Cow::Borrowed("create-queue"),
            ret: Some(-22),
            args: None,
            arg_in: Some(vec![0, 1, 255]),
            arg_out: None,
        }),
        Fact::Doorbell(Doorbell {
            queue: Some(0),
            pid,
            tid,
            time_ns: 40,
            value: u64::MAX,
            published: 0,
            read_index: 1,
            write_index: 2,
            reserve_to_doorbell_ns: Some(3),
            beyond: true,
        }),
        Fact::Dispatch(Dispatch {
            queue: 0,
            index: 1 << 63,
            pid,
            tid,
            time_ns: 50,
            path: Way::Thunk,
            evidence: Evidence::Body,
            form: None,
            reserve_ns: None,
            unreserved_ns: None,
            header: 0x1501,
            dimensions: 3,
            kernel_object: 0x7f00_0000_1000,
            kernarg: 0x7f00_0000_2000,
            grid: [u32::MAX, 2, 3],
            workgroup: [u16::MAX, 5, 6],
            private_segment: 7,
            group_segment: 8,
            completion_signal: 9,
            kernel: None,
            correlation: 10,
            api_call: None,
            stream: None,
        }),
        Fact::Packet(OtherPacket {
            queue: 0,
            index: 3,
            count: 4,
            pid,
            tid: 0,
            time_ns: 60,
            path: Way::Unseen,
            kind: PacketKind::Unread,
            unread: Some(Unread::NeverValid),
            header: 0,
            completion_signal: 0,
            waits_for: None,
        }),
        Fact::Copy(Copy {
            queue: None,
            pid,
            tid,
            time_ns: 70,
            path: Way::Doorbell,
            by: None,
            begin: 64,
            end: 128,
            op: None,
            bytes: None,
            commands: None,
            source: None,
            destination: None,
            direction: None,
            engine: None,
            api_call: None,
            stream: None,
        }),
        Fact::Loss(Loss {
            time_ns: 80,
            source: "doorbell-ring".to_owned(),
            count: 5,
        }),
    ]
}

fn manifest() -> Manifest {
    let clocks = |ns| ClockSnapshot {
        time: tracer_store::manifest::rfc3339(ns),
        monotonic_ns: ns,
        boottime_ns: ns + 1,
        realtime_ns: ns,
        spread_ns: 2,
    };
    let host = Host {
        name: "host".into(),
        kernel_release: "6.12".into(),
        kernel_version: "#1 SMP".into(),
        machine: "x86_64".into(),
        boot_id: None,
    };
    let tool = Tool {
        name: "tracer".into(),
        version: "0.1.0".into(),
    };
    let mut manifest = Manifest::new(
        tool,
        host,
        Target::Command {
            argv: vec!["./app".into()],
        },
        clocks(0),
    );
    manifest.ended = Some(clocks(1000));
    manifest.exit = Some(Exit::Signal(9));
    manifest.simulated = Some("kfd-sim".into());
    manifest.devices.push(Device {
        gpu_id: 51966,
        name: "gfx942".into(),
        gfx_target_version: 90402,
        scheduler: Scheduler {
            kind: SchedulerKind::Hws,
            evidence: vec!["no MES ring".into()],
        },
        ..Device::default()
    });
    manifest.libraries.push(Library {
        path: "/opt/rocm/lib/libhsa-runtime64.so.1".into(),
        device: "fe:00".into(),
        inode: 7,
        build_id: Some("00ff".into()),
        soname: None,
    });
    manifest.probes.push(Probe {
        family: Family::Doorbell,
        library: Some("/opt/rocm/lib/libhsa-runtime64.so.1".into()),
        symbol: "AqlQueue::StoreRelaxed".into(),
        file_offset: Some(0x4e5c4),
        instruction: Some("push".into()),
        hit_ns: None,
        resolver: Some("symtab".into()),
        confidence: None,
        attached: true,
        error: None,
    });
    manifest.capabilities.push("doorbells".into());
    manifest.losses.insert("doorbell-ring".into(), 5);
    manifest.warnings.push("one".into());
    manifest
}

#[test]
fn version_1() {
    reads("v1.trace", 1);
}

/// Version 2 has checksums in the names of parts.
#[test]
fn version_2() {
    reads("v2.trace", 2);
}

fn reads(name: &str, version: u64) {
    let trace = Trace::open(&fixture(name)).unwrap();
    assert_eq!(
        (trace.state(), trace.manifest().format_version()),
        (State::Complete, version)
    );
    let mut expected = manifest();
    expected.complete = true;
    // The facts of version 1, which did not have these tables.
    let there = |table: &Table| !{
        matches!(
            table,
            Table::Progress
                | Table::GpuTimes
                | Table::DoorbellRuns
                | Table::DispatchRuns
                | Table::Proxies
                | Table::Requests
                | Table::RingJobs
                | Table::ApiCalls
                | Table::ApiStats
                | Table::DriverCalls
                | Table::DriverEvents
                | Table::CodeObjects
                | Table::Kernels
                | Table::Libraries
                | Table::Stacks
        )
    };
    // The fixture of version 2 was written before these tables existed.
    let later = [
        Table::ApiStats,
        Table::GpuTimes,
        Table::Proxies,
        Table::Requests,
        Table::DoorbellRuns,
        Table::DispatchRuns,
        Table::Libraries,
        Table::Stacks,
    ];
    let told = |table: &Table| there(table) || version > 1 && !later.contains(table);
    let counts = Table::ALL
        .into_iter()
        .filter(told)
        .map(|table| (table.name().to_owned(), there(&table).into()));
    expected.counts = counts.collect();
    let but_the_version = |manifest: &Manifest| {
        let mut value = serde_json::to_value(manifest).unwrap();
        value["format_version"].take();
        value
    };
    assert_eq!(but_the_version(trace.manifest()), but_the_version(&expected));
    let read: Vec<_> = trace.facts(&Table::ALL).unwrap().map(Result::unwrap).collect();
    assert_eq!(read, facts());
    assert_eq!(trace.damage().unwrap(), []);
    for table in Table::ALL {
        let rows = usize::from(there(&table));
        assert_eq!(trace.frame(table).unwrap().frame.height(), rows, "{table:?}");
    }
}

/// Wrote the fixture of this version, once. An existing folder is not overwritten.
#[test]
#[ignore = "writes a fixture: UPDATE_FIXTURE=v2.trace cargo test -p tracer-store write_fixture -- --ignored"]
fn write_fixture() {
    let dir = fixture(&std::env::var("UPDATE_FIXTURE").unwrap());
    fs::create_dir_all(dir.parent().unwrap()).unwrap();
    let mut writer = TraceWriter::create(&dir, manifest(), false).unwrap();
    facts().iter().for_each(|fact| writer.push(fact));
    writer
        .finish(|update| {
            *update = manifest();
            update.complete = true;
        })
        .unwrap();
}
