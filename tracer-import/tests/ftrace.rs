//! Real texts of ftrace, from three kernels on which a module submitted two jobs to each of three rings.

use tracer_core::model::Model;
use tracer_core::tables::{Fact, RingJob};
use tracer_import::{Found, Importer};

/// What the text says of a job: ring, class, number, thread, jobs in the queue; and the times of its steps, us.
type Expected = (&'static str, &'static str, Option<u64>, u32, u32, [u64; 3]);

fn import(text: &str) -> (Vec<RingJob>, Found) {
    let (mut importer, mut model) = (Importer::new(), Model::new());
    let mut jobs = Vec::new();
    let mut take = |fact: Fact| match fact {
        Fact::RingJob(job) => jobs.push(job),
        Fact::Process(_) => {}
        other => panic!("{other:?}"),
    };
    for line in text.lines() {
        importer.line(line.as_bytes(), &mut |event| model.apply(event, &mut take));
    }
    model.finish(u64::MAX, &mut take);
    jobs.sort_by_key(|job| job.submit_ns);
    let found = importer.finish(&mut |event| panic!("{event:?}"));
    (jobs, found)
}

fn check(text: &str, expected: &[Expected; 6]) -> Vec<RingJob> {
    let (jobs, found) = import(text);
    assert_eq!(jobs.len(), expected.len());
    for (job, &(ring, class, number, thread, queued, times)) in jobs.iter().zip(expected) {
        assert_eq!((job.ring.as_deref(), &*job.class), (Some(ring), class));
        assert_eq!((job.job_id, job.tid, job.pid), (number, Some(thread), None));
        assert_eq!((job.queued, job.traced), (Some(queued), Some(true)));
        let [submit, run, done] = times.map(|us| Some(us * 1000));
        assert_eq!((job.submit_ns, job.run_ns, job.done_ns), (submit, run, done), "{job:?}");
        assert_eq!(job.time_ns, times[0] * 1000);
    }
    // The files end with three lines of a shell and with messages of the kernel.
    assert_eq!((found.events, found.malformed_total, found.lost), (18, 0, 0));
    let others = text
        .lines()
        .filter(|line| !line.contains(": drm_") && !line.starts_with('#'));
    assert_eq!(found.foreign, others.count() as u64);
    assert_eq!(
        found.first_foreign.map(|line| line.line),
        Some(text.lines().take_while(|line| !line.contains("jobs no")).count() as u64 + 1)
    );
    assert_eq!(found.span_ns, times(expected).min().zip(times(expected).max()));
    assert_eq!(
        (found.has_jobs, found.has_driver_events, found.without_process),
        (true, false, 6)
    );
    jobs
}

fn times(expected: &[Expected]) -> impl Iterator<Item = u64> {
    expected.iter().flat_map(|job| job.5).map(|us| us * 1000)
}

#[test]
fn linux_6_1_names_jobs_by_fence_and_number() {
    let jobs = check(
        include_str!("data/6.1.0-56-amd64.txt"),
        &[
            ("gfx_0.0.0", "gfx", Some(1), 107, 0, [4_847_367, 4_857_015, 4_864_766]),
            ("gfx_0.0.0", "gfx", Some(2), 107, 0, [4_848_276, 4_857_991, 4_872_466]),
            ("comp_1.0.0", "comp", Some(1), 107, 0, [4_876_577, 4_884_968, 4_904_530]),
            ("comp_1.0.0", "comp", Some(2), 107, 1, [4_884_772, 4_888_868, 4_906_438]),
            ("sdma0", "sdma", Some(1), 107, 0, [4_909_163, 4_916_886, 4_927_503]),
            ("sdma0", "sdma", Some(2), 107, 1, [4_912_736, 4_920_800, 4_934_581]),
        ],
    );
    assert!(
        jobs.iter()
            .all(|job| job.context.is_none() && job.device.is_none() && job.client_id.is_none())
    );
}

#[test]
fn linux_6_12_uses_the_address_of_a_fence_again() {
    let text = include_str!("data/6.12.107+deb13-amd64.txt");
    // gfx_0.0.0 and comp_1.0.0 have a fence at the same address, one after the other.
    assert_eq!(text.matches("fence=00000000ffdd75ab").count(), 6);
    check(
        text,
        &[
            ("gfx_0.0.0", "gfx", Some(1), 151, 0, [6_123_181, 6_124_149, 6_131_284]),
            ("gfx_0.0.0", "gfx", Some(2), 151, 0, [6_124_804, 6_124_878, 6_137_499]),
            ("comp_1.0.0", "comp", Some(1), 151, 0, [6_179_898, 6_180_040, 6_181_802]),
            ("comp_1.0.0", "comp", Some(2), 151, 1, [6_179_937, 6_181_670, 6_183_574]),
            ("sdma0", "sdma", Some(1), 151, 0, [6_190_190, 6_190_331, 6_192_074]),
            ("sdma0", "sdma", Some(2), 151, 1, [6_190_252, 6_190_455, 6_193_831]),
        ],
    );
}

#[test]
fn linux_7_2_names_jobs_by_context_and_sequence_number() {
    let jobs = check(
        include_str!("data/7.2.13+deb14-amd64.txt"),
        &[
            ("gfx_0.0.0", "gfx", None, 122, 0, [6_384_521, 6_385_751, 6_387_949]),
            ("gfx_0.0.0", "gfx", None, 122, 0, [6_386_430, 6_386_630, 6_391_312]),
            ("comp_1.0.0", "comp", None, 122, 0, [6_393_446, 6_393_654, 6_395_295]),
            ("comp_1.0.0", "comp", None, 122, 1, [6_393_463, 6_393_725, 6_398_964]),
            ("sdma0", "sdma", None, 122, 0, [6_400_004, 6_400_128, 6_401_802]),
            ("sdma0", "sdma", None, 122, 1, [6_400_021, 6_400_272, 6_403_463]),
        ],
    );
    let fences: Vec<_> = jobs
        .iter()
        .map(|job| (job.context.unwrap(), job.seqno.unwrap()))
        .collect();
    assert_eq!(fences, [(5, 1), (5, 2), (13, 1), (13, 2), (21, 1), (21, 2)]);
    assert!(
        jobs.iter()
            .all(|job| job.device.as_deref() == Some("fakesched") && job.client_id == Some(4242))
    );
    assert!(jobs.iter().all(|job| job.reason.is_none()));
}

#[test]
fn the_same_events_in_the_form_of_perf_are_the_same_jobs() {
    // `perf script` has no flags, names the group, and prints whole addresses.
    let text = include_str!("data/6.12.107+deb13-amd64.txt");
    let of_perf = |line: &str| {
        let (task, rest) = line.split_once('[')?;
        let (comm, tid) = task.trim().rsplit_once('-')?;
        let (cpu, rest) = rest.split_once("] ")?;
        let (_, rest) = rest.split_once(' ')?;
        let (time, event) = rest.trim_start().split_once(": ")?;
        let event = event.replace("=00000000", "=0xffff8881");
        let pid = if comm == "sh" { "151" } else { tid };
        Some(format!(
            "{comm:>16} {pid:>7}/{tid} [{cpu}] {time:>12}: gpu_scheduler:{event}"
        ))
    };
    let perf: Vec<String> = text.lines().filter_map(of_perf).collect();
    assert_eq!(perf.len(), 18);
    let (by_perf, found) = import(&perf.join("\n"));
    let (by_ftrace, _) = import(text);
    let with_process = |job: RingJob| RingJob { pid: Some(151), ..job };
    assert_eq!(by_perf, by_ftrace.into_iter().map(with_process).collect::<Vec<_>>());
    assert_eq!((found.events, found.foreign, found.without_process), (18, 0, 0));
}

#[test]
fn the_driver_s_own_events_are_rows() {
    let old = "app-7 (5) [000] ..... 1.000001: amdgpu_cs_ioctl: sched_job=9, timeline=gfx_0.0.0, context=13, seqno=2, \
        ring_name=gfx_0.0.0, num_ibs=3";
    let new = "app-7 (5) [000] ..... 1.000001: amdgpu_cs_ioctl: timeline=gfx_0.0.0, fence=13:2, ring_name=gfx_0.0.0, num_ibs=3";
    let moved = "app-7 (5) [000] ..... 1.000002: amdgpu_bo_move: bo=00000000ffdd75ab, from=-1, to=2, size=4096";
    let flush = "sdma0-9 (9) [000] ..... 1.000003: amdgpu_vm_flush: ring=sdma0, id=8, hub=0, pd_addr=00ffee1000";
    let mut importer = Importer::new();
    let mut rows = Vec::new();
    let mut model = Model::new();
    for line in [old, new, moved, flush] {
        importer.line(line.as_bytes(), &mut |event| {
            model.apply(event, &mut |fact| match fact {
                Fact::DriverEvent(row) => rows.push(row),
                other => panic!("{other:?}"),
            });
        });
    }
    let [old, new, moved, flush] = rows.try_into().unwrap();
    assert_eq!((old.pid, old.tid, old.traced), (Some(5), Some(7), Some(true)));
    assert_eq!(
        (old.context, old.seqno, old.ibs, old.job_id),
        (Some(13), Some(2), Some(3), Some(9))
    );
    assert_eq!((new.ring.as_deref(), new.job_id), (Some("gfx_0.0.0"), None));
    assert_eq!((new.context, new.seqno, new.ibs), (old.context, old.seqno, old.ibs));
    let places = (moved.old_placement.as_deref(), moved.new_placement.as_deref());
    assert_eq!((places, moved.bytes), ((Some("none"), Some("vram")), Some(4096)));
    assert_eq!(
        (flush.ring.as_deref(), flush.vmid, flush.pid),
        (Some("sdma0"), Some(8), None)
    );
    assert!(importer.finish(&mut |event| panic!("{event:?}")).has_driver_events);
}

#[test]
fn trace_cmd_writes_whole_addresses_and_more_spaces() {
    let (jobs, found) = import(include_str!("data/trace-cmd-3.1.6-linux-6.12.txt"));
    let row = |job: &RingJob| {
        let times = [job.submit_ns, job.run_ns, job.done_ns].map(Option::unwrap_or_default);
        (job.ring.clone().unwrap_or_default(), job.job_id, job.queued, times)
    };
    assert_eq!(
        jobs.iter().map(row).collect::<Vec<_>>(),
        [
            (
                "comp_1.0.0".to_owned(),
                Some(1),
                Some(0),
                [8_903_744_000, 8_905_023_000, 8_905_489_000]
            ),
            (
                "comp_1.0.0".to_owned(),
                Some(2),
                Some(1),
                [8_904_507_000, 8_905_617_000, 8_905_648_000]
            ),
            (
                "sdma0".to_owned(),
                Some(1),
                Some(0),
                [8_906_257_000, 8_906_306_000, 8_906_336_000]
            ),
            (
                "sdma0".to_owned(),
                Some(2),
                Some(0),
                [8_906_364_000, 8_906_412_000, 8_906_419_000]
            ),
        ]
    );
    assert_eq!((found.events, found.foreign, found.lines), (12, 0, 13));
}

#[test]
fn trace_cmd_writes_nanoseconds_on_request() {
    let (jobs, found) = import(include_str!("data/trace-cmd-3.1.6-linux-7.2.txt"));
    let row = |job: &RingJob| (job.context, job.seqno, job.submit_ns, job.done_ns);
    assert_eq!(
        jobs.iter().map(row).collect::<Vec<_>>(),
        [
            (Some(6), Some(1), Some(8_326_984_427), Some(8_328_932_796)),
            (Some(6), Some(2), Some(8_327_531_216), Some(8_329_081_669)),
            (Some(8), Some(1), Some(8_329_723_231), Some(8_329_832_204)),
            (Some(8), Some(2), Some(8_329_765_574), Some(8_329_845_794)),
        ]
    );
    assert_eq!((found.events, found.foreign), (12, 0));
}
