//! A small recording: a process that calls HIP, whose queue has dispatches with and without times of the GPU, and a ring.

use std::collections::BTreeMap;

use tracer_core::event::Occasion;
use tracer_core::sample;
use tracer_core::tables::{
    ApiCall, Copy, CopyOp, Direction, Dispatch, Fact, GpuTime, Ioctl, Loss, Process, Progress, Queue, RingJob,
};

use crate::{About, Clocks, Gpu};

/// A name that tries to break out of every format.
pub fn hostile() -> String {
    tracer_core::foreign::from_bytes(tracer_core::foreign::HOSTILE).into_owned()
}

pub fn about() -> About {
    About {
        tool: "tracer 0.1.0".to_owned(),
        host: "host1".to_owned(),
        kernel: "6.12".to_owned(),
        machine: "x86_64".to_owned(),
        boot_id: Some("boot".to_owned()),
        subject: format!("./app {}", hostile()),
        started: Clocks {
            monotonic_ns: 1_000,
            boottime_ns: 2_000,
            realtime_ns: 1_700_000_000_000_000_000,
        },
        ended_ns: Some(90_000),
        complete: true,
        simulated: Some("a test".to_owned()),
        losses: BTreeMap::from([("doorbell".to_owned(), 3)]),
        watched: vec!["doorbells".to_owned()],
        not_watched: vec!["kernel_rings".to_owned()],
        gpus: vec![Gpu {
            gpu_id: 5,
            name: "gfx1100".to_owned(),
            scheduler: "mes".to_owned(),
            product: Some("AMD Radeon RX 7900 XTX".to_owned()),
        }],
        ..About::default()
    }
}

/// Returns a call of the function `launch`.
pub fn call(number: u64, parent: Option<u64>, enter_ns: u64, exit_ns: Option<u64>) -> ApiCall {
    ApiCall {
        parent,
        exit_ns,
        ret: exit_ns.map(|_| 0),
        failed: exit_ns.map(|_| false),
        stream: Some(0x55),
        object: Some(u64::MAX),
        dispatches: 1,
        ..sample::api_call(number, (enter_ns, 0))
    }
}

pub fn dispatch(index: u64, time_ns: u64, kernel: &str) -> Dispatch {
    Dispatch {
        kernel: Some(kernel.into()),
        grid: [1000, 2, 1],
        workgroup: [64, 1, 1],
        api_call: Some(1),
        stream: Some(0x55),
        ..sample::dispatch(index, time_ns)
    }
}

pub fn gpu_time(index: u64, time_ns: u64, start_ns: u64, end_ns: u64) -> GpuTime {
    GpuTime {
        queue: 0,
        index,
        pid: 7,
        time_ns,
        kernel_object: 64,
        kernel: Some("scale".into()),
        gpu_id: Some(5),
        start_ticks: 1,
        end_ticks: 2,
        start_ns: Some(start_ns),
        end_ns: Some(end_ns),
        clock_error_ns: Some(9),
    }
}

fn ioctl(enter_ns: u64, exit_ns: u64, ret: Option<i64>) -> Ioctl {
    Ioctl {
        cmd: 0xc020_4b02,
        ret,
        arg_in: Some(vec![0, 255]),
        ..sample::ioctl("CREATE_QUEUE", (enter_ns, exit_ns))
    }
}

/// Returns the rows, in the order of their times. Two dispatches overlap on the GPU; one call and one ioctl do not return.
pub fn facts() -> Vec<Fact> {
    let process = Process {
        comm: hostile(),
        first_ns: 1_100,
        ..sample::process(7)
    };
    let queue = Queue {
        created_ns: 1_500,
        ..sample::queue(4)
    };
    let progress = |time_ns, read_index, published_end| Progress {
        queue: 0,
        pid: 7,
        time_ns,
        until_ns: time_ns + 10,
        occasion: Occasion::Sample,
        read_index,
        write_index: 4,
        published_end,
    };
    let copy = Copy {
        op: Some(CopyOp::Copy),
        bytes: Some(4096),
        commands: Some(1),
        source: Some(0x1000),
        destination: Some(0x2000),
        direction: Some(Direction::H2d),
        api_call: Some(1),
        ..sample::copy(12_000)
    };
    let job = |time_ns, run_ns, done_ns| RingJob {
        time_ns,
        ring: Some("gfx_0.0.0".to_owned()),
        class: "gfx".to_owned(),
        device: None,
        context: Some(1),
        seqno: Some(time_ns),
        job_id: None,
        client_id: None,
        reason: None,
        pid: Some(9),
        tid: Some(9),
        traced: Some(false),
        submit_ns: Some(time_ns),
        run_ns,
        done_ns,
        queued: None,
    };
    vec![
        Fact::Process(process),
        Fact::Ioctl(ioctl(1_200, 1_450, Some(0))),
        Fact::Queue(queue),
        Fact::ApiCall(call(1, None, 2_000, Some(30_001))),
        Fact::Progress(progress(3_000, 0, None)),
        Fact::Doorbell(sample::doorbell(2, 10_000)),
        Fact::Dispatch(dispatch(0, 10_000, "scale")),
        Fact::Dispatch(dispatch(1, 10_000, &hostile())),
        Fact::Dispatch(dispatch(2, 10_000, "scale")),
        Fact::GpuTime(gpu_time(0, 10_000, 11_000, 13_001)),
        Fact::GpuTime(gpu_time(2, 10_000, 12_999, 14_000)),
        Fact::Progress(progress(11_000, 1, Some(3))),
        Fact::Copy(copy),
        Fact::RingJob(job(15_000, Some(15_100), Some(15_900))),
        Fact::RingJob(job(15_200, Some(15_300), Some(16_000))),
        Fact::RingJob(job(15_400, None, None)),
        Fact::Loss(Loss {
            time_ns: 20_000,
            source: "doorbell".to_owned(),
            count: 3,
        }),
        Fact::Packet(sample::unread(3, 2, 25_000)),
        Fact::ApiCall(call(2, None, 40_000, None)),
        Fact::Ioctl(ioctl(41_000, 90_000, None)),
        Fact::DispatchRun(sample::dispatch_run(5, 100, 50_000)),
        Fact::Kernel(sample::kernel(0)),
    ]
}
