mod launches;

use std::sync::Arc;

use super::*;
use crate::sample;
use crate::summary::GpuNs;
use crate::tables::{self, ApiCall, Copy, Direction, Dispatch, GpuTime, Ioctl, OtherPacket, PacketKind, Path};
use crate::tally::Stats;

const TID: u32 = 8;

fn answers(facts: impl IntoIterator<Item = Fact>) -> Answers {
    let mut analysis = Analysis::default();
    for fact in facts {
        analysis.add(&fact);
    }
    analysis.finish()
}

fn call(number: u64, parent: Option<u64>, function: &'static str, time: (u64, Option<u64>)) -> Fact {
    Fact::ApiCall(ApiCall {
        parent,
        exit_ns: time.1,
        layer: if function.starts_with("hip") { "hip" } else { "hsa" }.into(),
        function: function.into(),
        failed: time.1.map(|_| false),
        ..sample::api_call(number, (time.0, 0))
    })
}

fn ioctl(enter_ns: u64, exit_ns: u64) -> Fact {
    let name = if enter_ns == 5000 {
        "WAIT_EVENTS"
    } else {
        "ALLOC_MEMORY_OF_GPU"
    };
    Fact::Ioctl(sample::ioctl(name, (enter_ns, exit_ns)))
}

fn dispatch(index: u64, time_ns: u64, kernel: &str, api_call: Option<u64>) -> Dispatch {
    Dispatch {
        kernel: Some(Arc::from(kernel)),
        tid: TID,
        api_call,
        ..sample::dispatch(index, time_ns)
    }
}

/// Own time is that of the call without calls and ioctls inside it. Times add up to the time that the thread was in calls.
#[test]
fn own_time_leaves_out_what_is_inside() {
    let found = answers([
        call(1, None, "hipModuleLaunchKernel", (100, Some(1100))),
        call(2, Some(1), "hsa_signal_create", (200, Some(500))),
        ioctl(300, 400),
        ioctl(600, 650),
        call(3, None, "hipModuleLaunchKernel", (2000, Some(2010))),
        // It never returned.
        call(4, None, "hipDeviceSynchronize", (3000, None)),
        // Beside every call.
        ioctl(5000, 5007),
    ]);
    let layers: Vec<_> = found
        .layers
        .iter()
        .map(|layer| (&*layer.layer, layer.class, layer.calls, layer.own_ns))
        .collect();
    let expected = [
        ("hip", Some("submit"), 2, 1000 - 300 - 50 + 10),
        ("hsa", Some("sync"), 1, 300 - 100),
        ("ioctl", Some("memory"), 2, 100 + 50),
        ("ioctl", Some("wait"), 1, 7),
        ("hip", Some("sync"), 1, 0),
    ];
    assert_eq!(layers, expected);
    let functions: Vec<_> = found
        .functions
        .iter()
        .map(|f| (&*f.function, f.calls, f.unreturned, f.ns.map(|ns| ns.total), f.own_ns))
        .collect();
    let expected = [
        ("hipModuleLaunchKernel", 2, 0, Some(1010), Some(660)),
        ("hsa_signal_create", 1, 0, Some(300), Some(200)),
        ("hipDeviceSynchronize", 1, 1, None, None),
    ];
    assert_eq!(functions, expected);
    // Two of the ioctls were in a call that submits work.
    let expected = Finding::IoctlsInLaunches { ioctls: 2, launches: 0 };
    assert_eq!(found.findings, [expected]);
}

/// The launch begins at the outermost call, also if the doorbell is in an inner one.
#[test]
fn a_launch_takes_from_the_outermost_call_to_the_doorbell() {
    let found = answers([
        call(1, None, "hipModuleLaunchKernel", (100, Some(1100))),
        call(2, Some(1), "hsa_signal_create", (200, Some(900))),
        Fact::Dispatch(dispatch(0, 700, "one", Some(2))),
        call(3, None, "hipModuleLaunchKernel", (2000, Some(2100))),
        Fact::Dispatch(dispatch(1, 2050, "one", Some(3))),
        // In no call, and in one that is not there.
        Fact::Dispatch(dispatch(2, 5000, "other", None)),
        Fact::Dispatch(dispatch(3, 5100, "other", Some(77))),
    ]);
    let launches: Vec<_> = found
        .kernels
        .iter()
        .map(|k| (k.name.as_deref(), k.count, k.launch_ns))
        .collect();
    let times = Stats {
        min: 50,
        p50: 50,
        p99: 600,
        max: 600,
        total: 650,
    };
    assert_eq!(launches, [(Some("one"), 2, Some(times)), (Some("other"), 2, None)]);
    let first = Finding::FirstLaunches {
        kernels: 1,
        first_ns: 600,
        total_ns: 650,
    };
    assert_eq!(found.findings, [first]);
}

#[test]
fn a_kernel_has_the_ranges_of_its_dispatches_and_code_objects() {
    let loaded = |object: u64, vgprs: Option<u32>| {
        Fact::Kernel(tables::Kernel {
            kernel_object: object,
            vgprs,
            sgprs: None,
            ..sample::kernel(0)
        })
    };
    let of = |object: u64, index: u64, size: (u32, u32)| Dispatch {
        kernel_object: object,
        grid: [size.0, 2, 1],
        workgroup: [64, 1, 1],
        group_segment: size.1,
        ..dispatch(index, 100 + index, "k", None)
    };
    let run = tables::DispatchRun {
        queue: 3,
        kernel_object: Some(64),
        kernel: Some(Arc::from("k")),
        path: Path::Unseen,
        ..sample::dispatch_run(10, 5, 200)
    };
    let several = tables::DispatchRun {
        kernel_object: None,
        ..sample::dispatch_run(20, 4, 300)
    };
    let time = GpuTime {
        queue: 0,
        index: 0,
        pid: 7,
        time_ns: 100,
        kernel_object: 64,
        kernel: Some(Arc::from("k")),
        gpu_id: None,
        start_ticks: 1,
        end_ticks: 2,
        start_ns: Some(1000),
        end_ns: Some(1500),
        clock_error_ns: None,
    };
    let found = answers([
        loaded(64, Some(24)),
        loaded(128, Some(32)),
        // Nothing dispatches this one.
        loaded(256, Some(99)),
        Fact::Dispatch(of(64, 0, (512, 0))),
        Fact::GpuTime(time),
        Fact::Dispatch(of(128, 1, (64, 2048))),
        Fact::DispatchRun(run),
        Fact::DispatchRun(several),
        Fact::Dispatch(Dispatch {
            kernel: None,
            kernel_object: 512,
            ..sample::dispatch(30, 400)
        }),
    ]);
    assert_eq!((found.kernels.len(), found.other_dispatches), (2, 4));
    let kernel = &found.kernels[0];
    assert_eq!((kernel.name.as_deref(), kernel.count, kernel.timed), (Some("k"), 7, 1));
    assert_eq!(kernel.by_path, [(Path::Doorbell, 2), (Path::Unseen, 5)].into());
    assert_eq!(kernel.queues, [0, 3].into());
    let range = |min, max| Some(Range { min, max });
    assert_eq!((kernel.registers.vgprs, kernel.registers.sgprs), (range(24, 32), None));
    assert_eq!(kernel.lds_bytes, range(0, 2048));
    let grid = Extent {
        min: [64, 2, 1],
        max: [512, 2, 1],
    };
    assert_eq!(kernel.grid, Some(grid));
    let gpu = GpuNs {
        count: 1,
        total: 500,
        min: 500,
        max: 500,
    };
    assert_eq!(kernel.gpu_ns, Some(gpu));
    let unnamed = &found.kernels[1];
    assert_eq!(
        (unnamed.name.as_deref(), unnamed.kernel_object, unnamed.count),
        (None, Some(512), 1)
    );
}

#[test]
fn each_finding_has_its_numbers() {
    let streams = |index, stream| Dispatch {
        stream: Some(stream),
        ..sample::dispatch(index, 100 + index)
    };
    let barrier = OtherPacket {
        kind: PacketKind::BarrierAnd,
        unread: None,
        ..sample::unread(2, 1, 103)
    };
    let within = Copy {
        direction: Some(Direction::D2d),
        ..sample::copy(200)
    };
    // It repeats the one before it.
    let repeated = OtherPacket {
        index: 3,
        time_ns: 104,
        waits_for: Some([0; 5]),
        ..barrier.clone()
    };
    let of_an_old_trace = OtherPacket {
        queue: 1,
        ..barrier.clone()
    };
    let barrier = OtherPacket {
        waits_for: Some([0xa, 0, 0, 0, 0]),
        ..barrier
    };
    let never_valid = OtherPacket {
        unread: Some(tables::Unread::NeverValid),
        ..sample::unread(4, 3, 105)
    };
    // Only jobs of the driver between two copies count.
    let job = |time_ns, reason: Option<&str>| {
        Fact::RingJob(tables::RingJob {
            time_ns,
            reason: reason.map(str::to_owned),
            ..sample::recording::job("sdma0", "sdma", None)
        })
    };
    // Four packets at once, one of which the GPU had not taken before.
    let late = tables::Doorbell {
        published: 4,
        read_index: 3,
        beyond: true,
        ..sample::doorbell(7, 300)
    };
    let queue = tables::Queue {
        pending: 2,
        unread: 5,
        ..sample::queue(2)
    };
    let found = answers([
        Fact::Queue(queue),
        Fact::Dispatch(streams(0, 0)),
        Fact::Doorbell(sample::doorbell(0, 100)),
        Fact::Dispatch(streams(1, 0xe0)),
        Fact::Doorbell(sample::doorbell(1, 101)),
        Fact::Packet(barrier),
        Fact::Packet(repeated),
        Fact::Packet(never_valid),
        Fact::Packet(of_an_old_trace),
        job(150, Some("ttm")),
        Fact::Copy(within.clone()),
        job(210, Some("ttm")),
        job(211, None),
        Fact::Copy(Copy { time_ns: 220, ..within }),
        job(230, Some("ttm")),
        Fact::Doorbell(late),
    ]);
    let expected = [
        Finding::DoorbellBeyond { queue: 0, doorbells: 1 },
        Finding::NeverValid { queue: 0, packets: 3 },
        Finding::UnreadPackets { queue: 0, packets: 5 },
        Finding::NeverPublished { queue: 0, packets: 2 },
        Finding::SharedQueue { queue: 0, streams: 2 },
        Finding::SdmaWithinGpus { copies: 2 },
        Finding::RedundantBarriers {
            own: 0,
            repeated: 1,
            of: 3,
        },
        Finding::Batches {
            doorbells: 1,
            of: 3,
            largest: 4,
        },
        Finding::DriverSdmaJobs { jobs: 1 },
        Finding::Barriers {
            barriers: 3,
            dispatches: 2,
        },
    ];
    assert_eq!(found.findings, expected);
    let queue = &found.queues[0];
    assert_eq!((queue.batches, queue.barriers, queue.streams.len()), (1, 2, 2));
    assert_eq!((queue.waits_unknown, queue.signals_unknown), (1, 0));
    assert_eq!((found.queues[1].barriers, found.queues[1].signals_unknown), (1, 1));
}

#[test]
fn few_doorbells_say_nothing_about_a_program() {
    let findings = |doorbells: u64| {
        let rung = (0..doorbells).map(|index| Fact::Doorbell(sample::doorbell(index, 100 + index)));
        answers([Fact::Queue(sample::queue(doorbells))].into_iter().chain(rung)).findings
    };
    assert_eq!(findings(15), []);
    assert_eq!(findings(16), [Finding::FoundEmpty { doorbells: 16, of: 16 }]);
}
