//! Facts for tests: a typical one of each kind. A test changes the fields that matter to it.
//!
//! All facts belong to process 7 with thread 8, on queue 0 of GPU 5, and were published by doorbells.

pub mod recording;

use crate::{
    code_object::CodeObjectOrigin,
    event::Occasion,
    summary::Capabilities,
    tables::{
        ApiCall, CodeObject, CopiedBy, Copy, Dispatch, DispatchRun, Doorbell, DoorbellRun, DriverCall, Evidence, Form,
        GpuTime, Ioctl, Kernel, OtherPacket, PacketKind, Path, Process, Progress, Queue, QueueOrigin, Unread,
    },
};

/// Capabilities of a recording that watched everything.
pub const EVERYTHING: Capabilities = Capabilities {
    doorbells: true,
    packets: true,
    sdma_doorbells: true,
    reserves: true,
    ioctls: true,
    kernel_rings: true,
    driver: true,
    driver_events: true,
    code_objects: true,
    api: true,
    // Calls are either recorded or only counted.
    api_stats: false,
    thunk: true,
    unseen: true,
    hsa_queues: true,
    requests: true,
};

/// Returns a dispatch whose reserve was not seen.
#[must_use]
pub fn dispatch(index: u64, time_ns: u64) -> Dispatch {
    Dispatch {
        queue: 0,
        index,
        pid: 7,
        tid: 8,
        time_ns,
        path: Path::Doorbell,
        evidence: Evidence::Header,
        form: Some(Form::Kernel),
        reserve_ns: None,
        unreserved_ns: None,
        header: 2,
        dimensions: 1,
        kernel_object: 64,
        kernel: None,
        kernarg: 0,
        grid: [64, 1, 1],
        workgroup: [64, 1, 1],
        private_segment: 0,
        group_segment: 0,
        completion_signal: 0,
        correlation: 0,
        api_call: None,
        stream: None,
    }
}

/// Returns a run of indexes whose slots were reused before they were read.
#[must_use]
pub fn unread(index: u64, count: u64, time_ns: u64) -> OtherPacket {
    OtherPacket {
        queue: 0,
        index,
        count,
        pid: 7,
        tid: 0,
        time_ns,
        path: Path::Doorbell,
        kind: PacketKind::Unread,
        unread: Some(Unread::Reused),
        header: 0,
        completion_signal: 0,
        waits_for: None,
    }
}

/// Returns the doorbell of one packet. All packets before it were taken.
#[must_use]
pub fn doorbell(value: u64, time_ns: u64) -> Doorbell {
    Doorbell {
        queue: Some(0),
        pid: 7,
        tid: 8,
        time_ns,
        value,
        published: 1,
        read_index: value,
        write_index: value.saturating_add(1),
        reserve_to_doorbell_ns: None,
        beyond: false,
    }
}

/// Returns dispatches of one kernel that have no rows of their own, one per nanosecond.
#[must_use]
pub fn dispatch_run(first_index: u64, count: u64, begin_ns: u64) -> DispatchRun {
    DispatchRun {
        queue: 0,
        pid: 7,
        path: Path::Doorbell,
        evidence: Evidence::Header,
        kernel_object: Some(64),
        kernel: None,
        first_index,
        last_index: first_index + count - 1,
        count,
        begin_ns,
        end_ns: begin_ns + count - 1,
    }
}

/// Returns the doorbells of such a run of dispatches.
#[must_use]
pub fn doorbell_run(first_index: u64, count: u64, begin_ns: u64) -> DoorbellRun {
    DoorbellRun {
        queue: Some(0),
        pid: 7,
        beyond: false,
        count,
        highest_value: first_index + count - 1,
        published: count,
        first_index: Some(first_index),
        last_index: Some(first_index + count - 1),
        begin_ns,
        end_ns: begin_ns + count - 1,
    }
}

/// Returns a submission of 64 bytes of commands that were not read.
#[must_use]
pub fn copy(time_ns: u64) -> Copy {
    Copy {
        queue: Some(0),
        pid: 7,
        tid: 8,
        time_ns,
        path: Path::Doorbell,
        by: Some(CopiedBy::Sdma),
        begin: 0,
        end: 64,
        op: None,
        bytes: None,
        commands: None,
        source: None,
        destination: None,
        direction: None,
        engine: None,
        api_call: None,
        stream: None,
    }
}

/// Returns a queue whose creation was seen, and that still exists. `dispatches` dispatches were published on it, each with a
/// doorbell.
#[must_use]
pub fn queue(dispatches: u64) -> Queue {
    Queue {
        queue: 0,
        pid: 7,
        origin: QueueOrigin::Created,
        queue_id: Some(0),
        gpu_id: Some(5),
        kind: "compute-aql".to_owned(),
        handle: 0x1000,
        write_pointer: 0x1038,
        ring_base: 0x2000,
        ring_bytes: 4096,
        ring_memory: None,
        doorbell_offset: Some(0),
        priority: Some(7),
        internal: Some(false),
        create_enter_ns: Some(1_400),
        created_ns: 1_500,
        destroyed_ns: None,
        doorbells: dispatches,
        published: dispatches,
        unclaimed: None,
        dispatches,
        other_packets: 0,
        unread: 0,
        pending: 0,
        first_index: (dispatches > 0).then_some(0),
        last_index: dispatches.checked_sub(1),
        max_depth: 3,
        unseen: Some(0),
        watched_to_end: Some(true),
        looked_ns: Some(9_000),
        read_index: Some(dispatches),
        in_flight: Some(0),
        oldest_ns: None,
        moved_ns: Some(8_000),
    }
}

/// Returns a code object that was loaded and unloaded.
#[must_use]
pub fn code_object(number: u32) -> CodeObject {
    CodeObject {
        code_object: number,
        pid: 7,
        origin: CodeObjectOrigin::Loaded,
        load_base: 0x4000,
        uri: "memory://7#offset=0x4000&size=64".to_owned(),
        target: Some("gfx1100".to_owned()),
        version: Some(5),
        kernels: Some(1),
        unread: None,
        loaded_ns: 1_000,
        unloaded_ns: Some(8_000),
    }
}

/// Returns the kernel of such a code object. Only its name is known.
#[must_use]
pub fn kernel(code_object: u32) -> Kernel {
    Kernel {
        code_object,
        pid: 7,
        loaded_ns: 1_000,
        kernel_object: 64,
        name: "kernel".into(),
        symbol: "kernel".into(),
        kernarg_bytes: None,
        group_bytes: None,
        private_bytes: None,
        vgprs: None,
        agprs: None,
        sgprs: None,
        wavefront: None,
        max_workgroup: None,
    }
}

/// Returns a sample of the queue, which took 5 ns, and found every reserved packet published.
#[must_use]
pub fn progress(time_ns: u64, read_index: u64, write_index: u64) -> Progress {
    Progress {
        queue: 0,
        pid: 7,
        time_ns,
        until_ns: time_ns + 5,
        occasion: Occasion::Sample,
        read_index,
        write_index,
        published_end: Some(write_index),
    }
}

/// Returns the time of a dispatch whose doorbell was rung at `time_ns`. It ran from `start_ns` to `end_ns`.
#[must_use]
pub fn gpu_time(index: u64, time_ns: u64, (start_ns, end_ns): (u64, u64)) -> GpuTime {
    GpuTime {
        queue: 0,
        index,
        pid: 7,
        time_ns,
        kernel_object: 64,
        kernel: None,
        gpu_id: Some(5),
        start_ticks: 0,
        end_ticks: 0,
        start_ns: Some(start_ns),
        end_ns: Some(end_ns),
        clock_error_ns: Some(500),
    }
}

/// Returns a successful call of HIP by the thread, which submits nothing and is inside no other.
#[must_use]
pub fn api_call(call: u64, (enter_ns, exit_ns): (u64, u64)) -> ApiCall {
    ApiCall {
        call,
        parent: None,
        pid: 7,
        tid: 8,
        enter_ns,
        exit_ns: Some(exit_ns),
        layer: "hip".into(),
        function: "hipModuleLaunchKernel".into(),
        ret: Some(0),
        failed: Some(false),
        stream: None,
        bytes: None,
        object: None,
        dispatches: 0,
        copies: 0,
    }
}

/// Returns a successful ioctl of the KFD by the thread.
#[must_use]
pub fn ioctl(name: &'static str, (enter_ns, exit_ns): (u64, u64)) -> Ioctl {
    Ioctl {
        pid: 7,
        tid: 8,
        enter_ns,
        exit_ns,
        device: "kfd",
        fd: 3,
        cmd: 0,
        name: name.into(),
        ret: Some(0),
        args: None,
        arg_in: None,
        arg_out: None,
    }
}

/// Returns a call of a driver function by the thread, which is about no queue.
#[must_use]
pub fn driver_call(function: &str, (enter_ns, exit_ns): (u64, u64)) -> DriverCall {
    DriverCall {
        pid: 7,
        tid: 8,
        enter_ns,
        exit_ns,
        function: function.to_owned(),
        ret: 0,
        traced: true,
        doorbell_index: None,
        queue_type: None,
        queue_id: None,
        owner: None,
        pasid: None,
    }
}

/// Returns a process whose parent is unknown.
#[must_use]
pub fn process(pid: u32) -> Process {
    Process {
        pid,
        parent: None,
        comm: "app".to_owned(),
        first_ns: 0,
        exit_ns: None,
        thunk: None,
        unit: None,
        container: None,
        pod: None,
    }
}
