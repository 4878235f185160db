//! Pictures to draw.

use tracer_core::{
    live::{
        ApiRow, ByPath, CopyRow, IoctlRow, KernelRow, PacketRow, Picture, ProcessRow, QueueRow, RingRow, Stuck, Totals,
    },
    sample::EVERYTHING,
    summary::Capabilities,
    tables::{CopiedBy, CopyOp, Direction, Path},
};

const S: u64 = 1_000_000_000;

/// Returns the paths of a capture on a simulated GPU, which has no driver with rings.
fn share(doorbell: u64) -> ByPath {
    ByPath {
        doorbell: Some(doorbell),
        ring: None,
        thunk: Some(0),
        unseen: Some(0),
    }
}

const WATCHED: Capabilities = Capabilities {
    kernel_rings: false,
    ..EVERYTHING
};

fn queue(number: u32, dispatches: u64) -> QueueRow {
    QueueRow {
        queue: number,
        pid: Some(4000 + number / 4),
        comm: Some(
            if number.is_multiple_of(2) {
                "rank0"
            } else {
                "pt_main_thread"
            }
            .to_owned(),
        ),
        gpu_id: Some(39951),
        gpu: Some("gfx1100".to_owned()),
        scheduler: Some("mes".to_owned()),
        queue_id: Some(number % 4),
        kind: Some("compute-aql".to_owned()),
        dispatches: Some(dispatches),
        doorbells: Some(dispatches / 2),
        copies: Some(0),
        unread: Some(0),
        dispatches_per_s: Some(dispatches as f64 / 60.0),
        doorbells_per_s: Some(dispatches as f64 / 120.0),
        packets_per_doorbell: Some(2.0),
        write_index: Some(dispatches),
        read_index: Some(dispatches - dispatches.min(3)),
        looked_age_ns: Some(2_000_000),
        ring_packets: Some(16_384),
        depth: Some(dispatches.min(3)),
        oldest_age_ns: (dispatches > 0).then_some(150_000),
        last_doorbell_age_ns: (dispatches > 0).then_some(90_000),
        latency_ns: Some((740, 3_900)),
        by_path: share(dispatches),
        history: (0..59).map(|second| (second * 37 + number) % 100).collect(),
        packets: (0..6)
            .map(|at| PacketRow {
                index: dispatches + at,
                count: 1,
                time_ns: 100 * S - (6 - at) * 1_000_000,
                tid: Some(4100),
                kind: if at == 3 { "barrier-and" } else { "dispatch" }.to_owned(),
                path: Path::Doorbell,
                kernel_object: (at != 3).then_some(0x7f01_0000_0040),
                grid: (at != 3).then_some([65_536, 1, 1]),
                workgroup: (at != 3).then_some([256, 1, 1]),
            })
            .collect(),
        timeline: vec![(150_000, dispatches), (90_000, dispatches + 3)],
        ..QueueRow::default()
    }
}

fn api() -> Vec<ApiRow> {
    let row = |layer: &str, function: &str, count: u64, mean_ns: u64| ApiRow {
        layer: layer.to_owned(),
        function: function.to_owned(),
        count,
        per_s: Some(count as f64 / 60.0),
        total_ns: Some(count * mean_ns),
        mean_ns: Some(mean_ns),
        ns: Some((mean_ns / 2, mean_ns * 9)),
        ..ApiRow::default()
    };
    vec![
        row("hip", "hipModuleLaunchCooperativeKernelMultiDevice", 16_800, 6_200),
        ApiRow {
            errors: 3,
            ..row("hip", "hipStreamSynchronize", 12_345, 1_250_000)
        },
        // Calls that were only counted, of which none has returned.
        ApiRow {
            per_s: None,
            total_ns: None,
            mean_ns: None,
            ns: None,
            unreturned: 2,
            ..row("hsa", "hsa_signal_wait_scacquire", 2, 0)
        },
        row("opencl", "clEnqueueNDRangeKernel", 1_234_567, 999_499),
    ]
}

fn copies() -> Vec<CopyRow> {
    let row = CopyRow {
        op: Some(CopyOp::Copy),
        direction: Some(Direction::H2d),
        by: Some(CopiedBy::Sdma),
        engine: None,
        path: Path::Doorbell,
        count: 70,
        per_s: 1.5,
        bytes: Some(7 << 40),
        bytes_per_s: Some(26.7e9),
        unknown: 0,
    };
    vec![
        row.clone(),
        CopyRow {
            op: Some(CopyOp::CopyRect),
            direction: Some(Direction::D2d),
            engine: Some(12),
            count: 3,
            bytes: Some(1023 << 20),
            bytes_per_s: Some(0.0),
            unknown: 1,
            ..row.clone()
        },
        CopyRow {
            op: None,
            direction: None,
            by: Some(CopiedBy::Kernel),
            count: 820,
            bytes: None,
            bytes_per_s: None,
            unknown: 820,
            ..row.clone()
        },
        CopyRow {
            op: Some(CopyOp::None),
            direction: None,
            bytes: Some(0),
            bytes_per_s: Some(0.0),
            count: 4,
            ..row
        },
    ]
}

/// Returns a picture of two processes with a few queues.
pub fn usual() -> Picture {
    let mut queues: Vec<QueueRow> = (0..4)
        .map(|number| queue(number, 1_200 * u64::from(number * number)))
        .collect();
    queues.push(QueueRow {
        queue: 4,
        pid: Some(4001),
        comm: None,
        kind: Some("sdma".to_owned()),
        dispatches: Some(0),
        dispatches_per_s: Some(0.0),
        copies: Some(77),
        doorbells: Some(77),
        doorbells_per_s: Some(1.5),
        unread: Some(0),
        by_path: ByPath {
            doorbell: Some(77),
            ..ByPath::default()
        },
        history: vec![0, 0, 3, 1],
        ..QueueRow::default()
    });
    queues.push(QueueRow {
        queue: 5,
        ended: true,
        internal: Some(true),
        ..queue(5, 20)
    });
    let dispatches = queues.iter().filter_map(|queue| queue.dispatches).sum();
    Picture {
        time_ns: 100 * S,
        simulated: Some("the driver is a simulator".to_owned()),
        watched: WATCHED,
        elapsed_ns: Some(60 * S),
        totals: Totals {
            dispatches: Some(dispatches),
            aggregated: Some(0),
            by_path: share(dispatches),
            doorbells: Some(dispatches / 2),
            copies: Some(77),
            other_packets: Some(12),
            unread: Some(0),
            dispatches_per_s: Some(280.3),
            doorbells_per_s: Some(140.0),
            copies_per_s: Some(1.5),
            api_calls: Some(51_243),
            history: (0..59).map(|second| 200 + second * 13 % 90).collect(),
        },
        queues,
        kernels: vec![
            KernelRow {
                pid: 4000,
                comm: Some("pt_main_thread".to_owned()),
                kernel_object: 0x7f01_0000_0040,
                name: Some("vector_add".to_owned()),
                count: 16_000,
                per_s: 270.0,
                last_age_ns: 90_000,
            },
            KernelRow {
                pid: 4001,
                kernel_object: 0x7f00_0000_0080,
                count: 820,
                per_s: 10.3,
                last_age_ns: 2 * S,
                ..KernelRow::default()
            },
        ],
        rings: vec![
            RingRow {
                ring: "comp_1.0.0".to_owned(),
                class: "comp".to_owned(),
                jobs: 3,
                traced: 3,
                per_s: 0.2,
                waiting_ns: Some((12_000, 80_000)),
                running_ns: Some((900_000, 1_100_000)),
                ..RingRow::default()
            },
            RingRow {
                ring: "sdma0".to_owned(),
                class: "sdma".to_owned(),
                reason: Some("ttm-clear-buffer".to_owned()),
                jobs: 90,
                per_s: 4.0,
                waiting_ns: Some((9_000, 12_000)),
                ..RingRow::default()
            },
        ],
        ioctls: vec![
            IoctlRow {
                device: "kfd".to_owned(),
                name: "CREATE_QUEUE".to_owned(),
                count: 6,
                errors: 1,
                ns: Some((344_000, 682_000)),
                ..IoctlRow::default()
            },
            IoctlRow {
                device: "kfd".to_owned(),
                name: "WAIT_EVENTS".to_owned(),
                count: 19_000,
                per_s: 40.0,
                ns: Some((1_200_000, 31_000_000)),
                ..IoctlRow::default()
            },
        ],
        api: api(),
        copies: copies(),
        processes: vec![
            ProcessRow {
                pid: 3999,
                comm: Some("mpirun".to_owned()),
                ..ProcessRow::default()
            },
            ProcessRow {
                pid: 4000,
                parent: Some(3999),
                comm: Some("rank0".to_owned()),
                queues: 4,
                dispatches: Some(16_800),
                dispatches_per_s: Some(280.0),
                doorbells: Some(8_400),
                copies: Some(0),
                ioctls: Some(18_000),
                ..ProcessRow::default()
            },
            ProcessRow {
                pid: 4001,
                parent: Some(3999),
                comm: Some("rank1".to_owned()),
                ended: true,
                queues: 2,
                dispatches: Some(20),
                dispatches_per_s: Some(0.0),
                doorbells: Some(0),
                copies: Some(77),
                ioctls: Some(1_006),
                ..ProcessRow::default()
            },
        ],
        ..Picture::default()
    }
}

/// Returns a picture of a thousand queues in 250 processes.
pub fn many() -> Picture {
    let queues: Vec<QueueRow> = (0..1000)
        .map(|number| queue(number, u64::from(number * 7919 % 1000) * 1000))
        .collect();
    let dispatches = queues.iter().filter_map(|queue| queue.dispatches).sum();
    let usual = usual();
    Picture {
        totals: Totals {
            dispatches: Some(dispatches),
            aggregated: Some(1200),
            by_path: share(dispatches),
            unread: Some(31),
            dispatches_per_s: Some(49_873.0),
            ..usual.totals
        },
        queues,
        kernels: (0..400)
            .map(|at| KernelRow {
                name: Some(format!(
                    "void rocprim::detail::block_reduce_kernel<wrapped_config<{at}>, float*, float>(float*, unsigned long)"
                )),
                count: 10_000 - at,
                ..usual.kernels[0].clone()
            })
            .collect(),
        processes: (0..250)
            .map(|at| ProcessRow {
                pid: 4000 + at,
                parent: Some(if at == 0 { 1 } else { 4000 + (at - 1) / 2 }),
                comm: Some(format!("rank{at}")),
                queues: 4,
                ..ProcessRow::default()
            })
            .collect(),
        losses: vec![tracer_core::live::Loss {
            source: "packets-ring".to_owned(),
            count: 31,
        }],
        ..usual
    }
}

/// Returns the usual picture with a queue that does not advance.
pub fn stuck() -> Picture {
    let mut picture = usual();
    let queue = &mut picture.queues[2];
    queue.dispatches_per_s = Some(0.0);
    queue.doorbells_per_s = Some(0.0);
    queue.depth = Some(6);
    queue.oldest_age_ns = Some(95 * S);
    queue.last_doorbell_age_ns = Some(94 * S);
    queue.by_path.unseen = Some(40);
    queue.stuck = Some(Stuck {
        packets: 6,
        for_ns: 95 * S,
        read_index: 4797,
        last_doorbell_ns: Some(94 * S),
    });
    picture
}
