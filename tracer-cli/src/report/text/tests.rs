//! Every form of a report, at 80 and 120 columns, of a recording with many kernels and long names.

use std::sync::Arc;

use tracer_core::{
    analysis::Analysis,
    sample,
    summary::Summary,
    tables::{self, ApiCall, CopiedBy, Copy, CopyOp, Direction, Dispatch, Fact, GpuTime, Progress},
};
use tracer_store::manifest::{ClockSnapshot, Device, Exit, Host, Manifest, Scheduler, SchedulerKind, Target, Tool};

use super::*;
use crate::report::layout::Style;

/// Kernels of a real program, with how often it launches them.
const KERNELS: [(&str, u64); 12] = [
    (
        "void mul_mat_vec_f<float, float, 1, 256, false>(float const*, float const*, int const*, float*, int, int)",
        584,
    ),
    ("__amd_rocclr_copyBuffer", 303),
    (
        "void rms_norm_f32<1024, true>(float const*, float*, int, long, float)",
        210,
    ),
    (
        "void k_bin_bcast<&op_mul, float, float, float>(float const*, float*)",
        120,
    ),
    ("void rope_neox<true, false, float, float>(float const*, float*)", 90),
    ("void soft_max_f32<true, 1024, 1024, float>(float const*, float*)", 44),
    ("void cpy_flt<&cpy_1_flt<float, __half>>(char const*, char*)", 20),
    (
        "void k_get_rows_float<float, float>(float const*, int const*, float*)",
        15,
    ),
    ("void unary_op_kernel<&op_silu, float>(float const*, float*, int)", 8),
    ("void quantize_q8_1(float const*, void*, long)", 4),
    ("__amd_rocclr_fillBufferAligned", 1),
    ("reduce", 1),
];

fn call(number: u64, parent: Option<u64>, function: &'static str, enter_ns: u64, ns: u64) -> ApiCall {
    ApiCall {
        parent,
        layer: if function.starts_with("hip") { "hip" } else { "hsa" }.into(),
        function: function.into(),
        ..sample::api_call(number, (enter_ns, enter_ns + ns))
    }
}

fn ioctl(name: &'static str, enter_ns: u64, ns: u64) -> Fact {
    Fact::Ioctl(sample::ioctl(name, (enter_ns, enter_ns + ns)))
}

/// The rows of the recording, in the order of time: set-up, launches on two queues, a copy every hundredth one.
fn facts() -> Vec<Fact> {
    let mut facts = vec![Fact::Process(sample::process(7)), ioctl("GET_VERSION", 500, 12_000)];
    let create = |number: u64, at: u64| {
        let driver = sample::driver_call("kfd_ioctl_create_queue", (at + 210_000, at + 290_000));
        [
            Fact::ApiCall(call(number, None, "hipStreamCreate", at, 900_000)),
            Fact::ApiCall(call(
                number + 1,
                Some(number),
                "hsa_queue_create",
                at + 100_000,
                600_000,
            )),
            ioctl("CREATE_QUEUE", at + 200_000, 100_000),
            Fact::DriverCall(driver),
        ]
    };
    facts.extend(create(1, 1_000_000));
    facts.extend(create(3, 3_000_000));
    for queue in 0..2 {
        facts.push(Fact::Queue(tables::Queue {
            queue,
            queue_id: Some(queue + 1),
            published: 700,
            last_index: Some(699),
            doorbells: 700,
            looked_ns: Some(200_000_000),
            read_index: Some(700),
            destroyed_ns: Some(210_000_000),
            ..sample::queue(700)
        }));
    }
    let names = KERNELS.iter().flat_map(|&(name, count)| (0..count).map(move |_| name));
    let (mut number, mut indexes) = (5, [0_u64, 0]);
    for (launch, name) in (0_u64..).zip(names) {
        let (queue, time_ns) = ((launch % 2) as usize, 10_000_000 + launch * 100_000);
        let index = indexes[queue];
        indexes[queue] += 1;
        facts.push(Fact::ApiCall(ApiCall {
            stream: Some(0x1000 + launch % 3),
            dispatches: 1,
            ..call(number, None, "hipExtModuleLaunchKernel", time_ns, 4_000 + launch)
        }));
        let rung_ns = time_ns + 2_000 + launch;
        facts.push(Fact::Doorbell(tables::Doorbell {
            queue: Some(queue as u32),
            read_index: index.saturating_sub(launch % 2),
            reserve_to_doorbell_ns: Some(600),
            ..sample::doorbell(index, rung_ns)
        }));
        facts.push(Fact::Dispatch(Dispatch {
            queue: queue as u32,
            kernel: Some(Arc::from(name)),
            kernel_object: name.len() as u64 * 64,
            reserve_ns: Some(rung_ns - 600),
            api_call: Some(number),
            stream: Some(0x1000 + launch % 3),
            grid: [256 * (1 + launch as u32 % 7), 1, 1],
            workgroup: [256, 1, 1],
            ..sample::dispatch(index, rung_ns)
        }));
        if launch % 10 == 0 {
            facts.push(Fact::GpuTime(GpuTime {
                queue: queue as u32,
                kernel_object: name.len() as u64 * 64,
                kernel: Some(Arc::from(name)),
                ..sample::gpu_time(index, rung_ns, (rung_ns + 9_000, rung_ns + 29_000 + launch))
            }));
        }
        number += 1;
        if launch % 100 == 50 {
            facts.push(Fact::ApiCall(ApiCall {
                bytes: Some(1 << 20),
                copies: 1,
                ..call(number, None, "hipMemcpy", time_ns + 20_000, 60_000)
            }));
            facts.push(Fact::Copy(Copy {
                queue: None,
                by: Some(CopiedBy::Sdma),
                op: Some(CopyOp::Copy),
                bytes: Some(1 << 20),
                direction: Some(Direction::H2d),
                api_call: Some(number),
                ..sample::copy(time_ns + 30_000)
            }));
            facts.push(ioctl("SET_EVENT", time_ns + 40_000, 5_000));
            facts.push(Fact::Progress(Progress {
                queue: queue as u32,
                until_ns: time_ns + 91_000,
                ..sample::progress(time_ns + 90_000, index + 1, index + 1)
            }));
            number += 1;
        }
    }
    facts.push(ioctl("DESTROY_QUEUE", 205_000_000, 300_000));
    facts
}

fn manifest() -> Manifest {
    let clocks = |monotonic_ns| ClockSnapshot {
        monotonic_ns,
        time: "2026-11-25T10:00:00.000Z".to_owned(),
        ..ClockSnapshot::default()
    };
    let host = Host {
        name: "host1".to_owned(),
        kernel_release: "6.18.0".to_owned(),
        ..Host::default()
    };
    let tool = Tool {
        name: "tracer".to_owned(),
        version: "0.1.0".to_owned(),
    };
    let argv = ["llama-bench", "-m", "tiny.gguf"].map(str::to_owned).to_vec();
    let mut manifest = Manifest::new(tool, host, Target::Command { argv }, clocks(0));
    manifest.ended = Some(clocks(210_000_000));
    manifest.exit = Some(Exit::Code(0));
    manifest.simulated = Some("made up for a test".to_owned());
    manifest.capabilities = ["doorbells", "packets", "ioctls"].map(str::to_owned).to_vec();
    manifest.devices = vec![Device {
        gpu_id: 51030,
        name: "gfx942".to_owned(),
        scheduler: Scheduler {
            kind: SchedulerKind::Hws,
            evidence: vec!["gfx_target_version 90402 in the KFD topology".to_owned()],
        },
        compute_units: Some(304),
        product: Some("AMD Instinct MI300X".to_owned()),
        ..Device::default()
    }];
    manifest.complete = true;
    manifest
}

fn report(layout: Layout, by: Option<By>) -> String {
    let (mut summary, mut analysis) = (Summary::new(sample::EVERYTHING), Analysis::default());
    let mut runs = Runs::default();
    for fact in facts() {
        summary.add(&fact);
        analysis.add(&fact);
        if let Fact::Dispatch(dispatch) = &fact {
            runs.add(dispatch);
        }
    }
    let (report, answers, manifest) = (summary.finish(true), analysis.finish(), manifest());
    let read = Read {
        report: &report,
        answers: &answers,
        runs: &runs,
    };
    let how = How {
        layout,
        sort: kernels::Sort::Count,
        wall_ns: wall_ns(&manifest),
        hit_ns: Some(800),
    };
    let mut out = Vec::new();
    match by {
        Some(by) => by_one(&mut out, &read, &how, by),
        None => summary_and_details(&mut out, &manifest, &read, &how),
    }
    .expect("memory takes it");
    String::from_utf8(out).expect("text")
}

fn summary_and_details(out: &mut Vec<u8>, manifest: &Manifest, read: &Read<'_>, how: &How) -> io::Result<()> {
    summary(out, manifest, read.report, &[], how.layout)?;
    in_flight::lines(out, read.answers, how.layout)?;
    details(out, read, how)
}

const fn plain(width: usize) -> Layout {
    Layout {
        width: Some(width),
        rows: 10,
        style: Style::Plain,
    }
}

#[test]
fn the_first_screen_names_the_kernels_that_matter() {
    for width in [80, 120] {
        let text = report(plain(width), None);
        let long: Vec<_> = text.lines().filter(|line| line.chars().count() > width).collect();
        assert_eq!(long, Vec::<&str>::new());
        insta::assert_snapshot!(format!("report_{width}"), text);
    }
    insta::assert_snapshot!("report_markdown", report(plain(80).markdown(), None));
    insta::assert_snapshot!("report_wide", report(plain(80).wide(), None));
}

#[test]
fn each_table_fits_its_width() {
    for width in [80, 120] {
        let mut all = String::new();
        for by in <By as clap::ValueEnum>::value_variants() {
            // There would be a row for each run of dispatches.
            let rows = if *by == By::Dispatch { 3 } else { 10 };
            let text = report(plain(width).with_rows(rows), Some(*by));
            let long: Vec<_> = text.lines().filter(|line| line.chars().count() > width).collect();
            assert_eq!(long, Vec::<&str>::new(), "{by:?}");
            all += &format!("--by {by:?}\n{text}\n");
        }
        insta::assert_snapshot!(format!("tables_{width}"), all);
    }
}
