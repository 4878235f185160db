//! Rings, queues and signals in memory that only the driver can read, as device memory is: the mock's module maps it. The trace
//! equals the truth log all the same. Where the driver cannot read it either, the trace says that it is unread.
//!
//! Linux 6.1 has no FUSE passthrough, so no such memory can be given to a client there.

use serde_json::json;
use tracer_core::tables::{Evidence, Path, RingMemory};
use tracer_e2e::{
    compare,
    scenario::{Run, Scenario},
};

use crate::machine::Machine;

/// Exit code of a recording of a program that submits without any probed library.
const UNWATCHED: i32 = 124;

/// Records a scenario with device memory in the machine. The recording ends with the code.
fn recorded(machine: &mut Machine, mut scenario: Scenario, environment: &str, code: i32) -> Run {
    scenario.sim.push("--vram");
    machine.scenario(environment, "--detail full", &scenario, code)
}

/// The places of memory that a runtime can choose: the ring on the GPU; the ring, the queue and the signals in buffers that the
/// driver maps.
const PLACES: [(&str, &str, RingMemory); 2] = [
    ("experimental", "HSA_ALLOCATE_QUEUE_DEV_MEM=1", RingMemory::Device),
    ("sid", "HSA_USERPTR_FOR_PAGED_MEM=0", RingMemory::Host),
];

pub fn rings_that_only_the_driver_can_read_are_read(machine: &mut Machine) {
    if machine.kernel == "6.1" {
        return;
    }
    for (suite, environment, memory) in PLACES {
        let run = recorded(machine, Scenario::new(suite, "gfx942", &["mixed"]), environment, 0);
        println!("{} {suite} {environment}: {:?}", machine.kernel, compare::all(&run));
        assert_eq!(run.did()["results"], "ok");
        // The comparison checks the memory of each ring. 7.2.4 puts only the program's into device memory.
        let mut rings = run.queues().filter(|queue| queue.is_aql());
        assert!(rings.any(|queue| queue.ring_memory == Some(memory)));
    }
    // The thread that exits copies the last 1024 packets; the readers read the others, unless their slots were used again before.
    // On a busy machine that can be all of them, so it is recorded again, but only a limited number of times.
    let read = (0..ATTEMPTS).map(|_| unseen_packets(machine)).find(|&read| read > 1024);
    assert!(read.is_some(), "no reader read a packet in {ATTEMPTS} recordings");
}

/// The most recordings of packets that readers may be too late for.
const ATTEMPTS: usize = 4;

/// Records 4096 packets that no probe sees: the readers alone read indexes and ring. Returns how many packets were read; what was
/// not read is counted.
fn unseen_packets(machine: &mut Machine) -> u64 {
    let run = recorded(machine, without_runtime("4096"), "", UNWATCHED);
    let queue = run.queues().next().unwrap();
    assert_eq!(
        (queue.ring_memory, queue.unseen, queue.watched_to_end),
        (Some(RingMemory::Device), Some(4096), Some(true)),
        "{queue:?}"
    );
    let read = run.dispatches().count() as u64;
    println!(
        "{}: {read} of 4096 packets were read from device memory",
        machine.kernel
    );
    let is_truth = |row: &tracer_core::tables::Dispatch| {
        let packet = &run.truth.queues[0].packets[row.index as usize];
        (row.path, row.evidence) == (Path::Unseen, Evidence::Body)
            && (row.kernel_object, row.kernarg) == (packet.kernel_object, packet.kernarg_address)
    };
    assert!(run.dispatches().all(is_truth));
    assert_eq!((queue.dispatches, queue.unread), (read, 4096 - read));
    read
}

pub fn a_ring_that_nobody_can_read_is_unread(machine: &mut Machine) {
    if machine.kernel == "6.1" {
        return;
    }
    machine.sh("echo N > /sys/kernel/debug/drm-sched-mock/access");
    let run = recorded(machine, without_runtime("4096"), "", UNWATCHED);
    machine.sh("echo Y > /sys/kernel/debug/drm-sched-mock/access");
    let queue = run.queues().next().unwrap();
    let read = run.dispatches().count() as u64;
    // Only the program of the thread that exits can read them.
    assert!(read <= 1024, "{read}");
    assert_eq!(
        (queue.unseen, queue.dispatches, queue.unread),
        (Some(4096), read, 4096 - read),
        "{queue:?}"
    );
    assert_eq!(run.report["dispatches"]["total"], json!(null), "{}", run.report);
}

/// A program without a runtime, whose ring and indexes are in device memory.
fn without_runtime(packets: &'static str) -> Scenario {
    let workload = [
        "--api",
        "kfd",
        "--device-memory",
        "steady",
        "--until",
        "/nonexistent",
        "-n",
    ];
    let pause = ["--pause", "2000"];
    let words: Vec<&str> = workload.into_iter().chain([packets]).chain(pause).collect();
    Scenario::new("trixie", "gfx942", &words)
}
