//! Helpers of several tests.

use std::path::Path;

use tracer_core::tables::{
    Dispatch, Evidence, Fact, Form, Path as Way, Process, Queue, QueueOrigin, RingMemory, Table,
};
use tracer_store::manifest::{ClockSnapshot, Host, Target, Tool};
use tracer_store::{Manifest, Trace};

pub fn manifest() -> Manifest {
    let tool = Tool {
        name: "tracer".into(),
        version: "0.1.0".into(),
    };
    let target = Target::Command {
        argv: vec!["./app".into(), "--size".into(), "7".into()],
    };
    Manifest::new(tool, Host::here(), target, ClockSnapshot::now())
}

pub fn dispatch(index: u64, time_ns: u64) -> Fact {
    Fact::Dispatch(Dispatch {
        queue: (index % 4) as u32,
        index,
        pid: 4242,
        tid: 4243,
        time_ns,
        path: Way::Doorbell,
        evidence: Evidence::Header,
        form: Some(Form::Kernel),
        reserve_ns: index.is_multiple_of(2).then_some(time_ns.saturating_sub(700)),
        unreserved_ns: index.is_multiple_of(3).then_some(time_ns.saturating_sub(900)),
        header: 0x1502,
        dimensions: 1,
        kernel_object: 0x7f12_3400_0000 + index % 16 * 0x40,
        kernarg: 0x7f12_5600_0000 + index % 1024 * 0x100,
        grid: [65536, 1, 1],
        workgroup: [256, 1, 1],
        private_segment: 0,
        group_segment: 4096,
        completion_signal: 0x7f12_7800_0000 + index % 64 * 0x40,
        kernel: None,
        correlation: 0,
        api_call: None,
        stream: None,
    })
}

pub fn queue(number: u32, created_ns: u64, doorbells: u64) -> Queue {
    Queue {
        queue: number,
        pid: 4242,
        origin: QueueOrigin::Created,
        queue_id: Some(number),
        gpu_id: Some(51966),
        kind: "compute-aql".into(),
        handle: 0x7f00_0000_0000,
        write_pointer: 0x7f00_0000_0038,
        ring_base: 0x7f00_1000_0000,
        ring_bytes: 1 << 20,
        ring_memory: Some(RingMemory::Device),
        doorbell_offset: Some(0x8000_0000_0000_0000),
        priority: Some(7),
        internal: None,
        create_enter_ns: Some(created_ns.saturating_sub(1000)),
        created_ns,
        destroyed_ns: None,
        doorbells,
        published: doorbells,
        unclaimed: None,
        dispatches: doorbells,
        other_packets: 0,
        unread: 0,
        pending: 0,
        first_index: (doorbells > 0).then_some(0),
        last_index: doorbells.checked_sub(1),
        max_depth: 3,
        unseen: None,
        watched_to_end: None,
        looked_ns: None,
        read_index: None,
        in_flight: None,
        oldest_ns: None,
        moved_ns: None,
    }
}

pub fn process(pid: u32, first_ns: u64) -> Process {
    Process {
        pid,
        parent: Some(1),
        comm: "app".into(),
        first_ns,
        exit_ns: None,
        thunk: None,
        unit: None,
        container: None,
        pod: None,
    }
}

/// Returns the index of a dispatch.
pub fn index(fact: &Fact) -> u64 {
    match fact {
        Fact::Dispatch(dispatch) => dispatch.index,
        other => panic!("{other:?} is no dispatch"),
    }
}

/// Returns a folder's files, by name.
pub fn files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        // The file that reserves space for the last manifest.
        .filter(|name| name != ".reserve.tmp")
        .collect();
    names.sort();
    names
}

/// Returns all rows of a table.
pub fn rows(dir: &Path, table: Table) -> Vec<Fact> {
    Trace::open(dir)
        .unwrap()
        .facts(&[table])
        .unwrap()
        .map(Result::unwrap)
        .collect()
}
