use super::*;
use crate::sample::{self, EVERYTHING};
use crate::tables::{
    ApiCall, ApiStats, Copy, Doorbell, DriverEvent, Durations, Loss, Process, Queue, QueueOrigin, RingJob,
};
use crate::tables::{Dispatch, Path};

fn dispatch(kernel_object: u64, evidence: Evidence) -> Fact {
    Fact::Dispatch(Dispatch {
        kernel_object,
        evidence,
        ..sample::dispatch(0, 0)
    })
}

fn packet(kind: PacketKind, count: u64, unread: Option<Unread>) -> Fact {
    Fact::Packet(OtherPacket {
        kind,
        unread,
        ..sample::unread(0, count, 0)
    })
}

fn doorbell(latency: Option<u64>) -> Fact {
    Fact::Doorbell(Doorbell {
        reserve_to_doorbell_ns: latency,
        ..sample::doorbell(0, 0)
    })
}

fn ioctl(device: &'static str, name: &'static str, exit_ns: u64, ret: Option<i64>) -> Fact {
    Fact::Ioctl(Ioctl {
        tid: 7,
        device,
        ret,
        ..sample::ioctl(name, (100, exit_ns))
    })
}

fn report(capabilities: Capabilities, facts: &[Fact]) -> Report {
    let mut summary = Summary::new(capabilities);
    facts.iter().for_each(|fact| summary.add(fact));
    summary.finish(true)
}

#[test]
fn everything_is_counted_under_its_name() {
    let loss = |source: &str, count| {
        Fact::Loss(Loss {
            time_ns: 0,
            source: source.to_owned(),
            count,
        })
    };
    let copy = Copy {
        queue: None,
        api_call: Some(3),
        ..sample::copy(0)
    };
    let job = |traced: Option<bool>, reason: Option<&str>, client_id| {
        Fact::RingJob(RingJob {
            time_ns: 10,
            ring: Some("sdma0".to_owned()),
            class: "sdma".to_owned(),
            device: None,
            context: Some(1),
            seqno: Some(1),
            job_id: None,
            client_id,
            reason: reason.map(str::to_owned),
            pid: traced.map(|_| 7),
            tid: traced.map(|_| 7),
            traced,
            submit_ns: traced.map(|_| 10),
            run_ns: Some(30),
            done_ns: reason.map(|_| 80),
            queued: None,
        })
    };
    let facts = [
        dispatch(64, Evidence::Header),
        dispatch(128, Evidence::Header),
        dispatch(128, Evidence::Body),
        packet(PacketKind::BarrierAnd, 1, None),
        packet(PacketKind::Unread, 5, Some(Unread::Reused)),
        packet(PacketKind::Unread, 2, Some(Unread::Consumed)),
        doorbell(Some(40)),
        doorbell(None),
        Fact::Copy(Copy {
            queue: Some(4),
            stream: Some(0),
            ..copy
        }),
        Fact::ApiCall(ApiCall {
            tid: 7,
            function: "hipMemcpy".into(),
            ret: Some(1),
            failed: Some(true),
            bytes: Some(64),
            copies: 1,
            ..sample::api_call(3, (100, 140))
        }),
        job(Some(true), None, Some(5)),
        job(Some(false), Some("ttm-clear-buffer"), Some(9)),
        job(None, None, None),
        loss("packets-ring", 2),
        loss("packets-ring", 3),
    ];
    let json = serde_json::to_value(report(EVERYTHING, &facts)).unwrap();
    let path = |doorbell: u64, unseen: Option<u64>| serde_json::json!({"doorbell": doorbell, "ring": 0, "thunk": 0, "unseen": unseen});
    let latency = serde_json::json!({"min": 40, "p50": 40, "p99": 40, "max": 40, "total": 40});
    assert_eq!(
        json,
        serde_json::json!({
            "complete": true,
            "nothing": null,
            "dispatches": {"total": 3, "aggregated": 0, "by_path": path(3, Some(0)), "by_evidence": {"header": 2, "body": 1, "log": 0}, "internal": 0},
            "doorbells": {"total": 2, "aggregated": 0, "reserve_to_doorbell_ns": latency},
            "packets": {
                "total": 8,
                "by_kind": {"barrier-and": 1, "unread": 7},
                "unread": {"consumed": 2, "reused": 5},
            },
            "unseen": {"total": 0, "found": 0, "queues_open": 0},
            "requested": {"proxies": 0, "doorbells": 0, "dispatches": 0, "other_packets": 0, "unread": 0},
            "api_calls": {
                "total": 1,
                "counted_only": false,
                "by_function": {
                    "hipMemcpy": {"layer": "hip", "count": 1, "errors": 1, "unreturned": 0, "dispatches": 0, "copies": 1, "ns": latency},
                },
            },
            "streams": [{"pid": 7, "stream": 0, "queue": 4, "submissions": 1}],
            "copies": {"total": 1, "by_path": {"doorbell": 1, "ring": 0, "thunk": null, "unseen": null}, "bytes": 0, "unread": 1, "by_direction": {},
                "kernels": {"count": 0, "bytes": 0, "unknown": 0}},
            "queues": [],
            "other_queues": 0,
            "opaque_queues": 0,
            "other_processes": 0,
            "ioctls": {"total": 0, "by_name": {}},
            "ring_jobs": {
                "total": 3,
                "traced": 1,
                "submitter_unknown": 1,
                "rings": [{
                    "device": null,
                    "ring": "sdma0",
                    "class": "sdma",
                    "jobs": 3,
                    "traced": 1,
                    "unfinished": 2,
                    "by_reason": {"client": 1, "ttm-clear-buffer": 1, "untold": 1},
                    "queued_ns": {"min": 20, "p50": 20, "p99": 20, "max": 20, "total": 40},
                    "running_ns": {"min": 50, "p50": 50, "p99": 50, "max": 50, "total": 50},
                }],
            },
            "driver_calls": {"total": 0, "by_function": {}},
            "driver_events": {"total": 0, "by_event": {}},
            "kernel_names": {"total": 0, "mangled": 0},
            "code_objects": 0,
            "kernels": [
                {"pid": 7, "kernel_object": 128, "name": null, "count": 2, "timed": 0, "gpu_ns": null},
                {"pid": 7, "kernel_object": 64, "name": null, "count": 1, "timed": 0, "gpu_ns": null},
            ],
            "other_kernels": 0,
            "losses": {"total": 5, "by_source": {"packets-ring": 5}},
            "processes": [],
        })
    );
}

#[test]
fn counted_calls_are_summarized_like_recorded_calls() {
    let stats = |pid, calls, failed, durations: &[(u64, u64)]| {
        Fact::ApiStats(ApiStats {
            counter: 0,
            pid,
            time_ns: 9,
            layer: "hip".into(),
            function: "hipMemcpy".into(),
            calls,
            returned: durations.iter().map(|(_, count)| count).sum(),
            failed,
            left: 0,
            total_ns: 100,
            min_ns: durations.first().map(|(end, _)| end - 1),
            max_ns: durations.last().map(|(end, _)| end - 1),
            durations: Durations(durations.to_vec()),
        })
    };
    let counted = Capabilities {
        api: false,
        api_stats: true,
        ..EVERYTHING
    };
    let facts = [
        stats(Some(7), 4, 1, &[(15, 2), (31, 1)]),
        stats(None, 2, 1, &[(1023, 2)]),
        stats(Some(8), 0, 0, &[]),
    ];
    let json = serde_json::to_value(report(counted, &facts).api_calls).unwrap();
    let ns = serde_json::json!({"min": 14, "p50": 31, "p99": 1022, "max": 1022, "total": 200});
    let function = serde_json::json!({
        "layer": "hip", "count": 6, "errors": 2, "unreturned": 1, "dispatches": null, "copies": null, "ns": ns,
    });
    assert_eq!(
        json,
        serde_json::json!({"total": 6, "counted_only": true, "by_function": {"hipMemcpy": function}})
    );
    let json = serde_json::to_value(report(Capabilities::default(), &[]).api_calls).unwrap();
    assert_eq!(
        json,
        serde_json::json!({"total": null, "counted_only": null, "by_function": {}})
    );
}

#[test]
fn what_was_not_watched_is_unknown_not_zero() {
    let json = serde_json::to_value(report(Capabilities::default(), &[])).unwrap();
    let unknown = [
        "/dispatches/total",
        "/dispatches/by_path/doorbell",
        "/dispatches/by_path/ring",
        "/dispatches/by_path/thunk",
        "/dispatches/by_path/unseen",
        "/dispatches/by_evidence/header",
        "/doorbells/total",
        "/doorbells/reserve_to_doorbell_ns",
        "/packets/total",
        "/unseen/total",
        "/copies/total",
        "/ring_jobs/total",
        "/ring_jobs/traced",
        "/copies/by_path/doorbell",
        "/ioctls/total",
        "/driver_events/total",
    ];
    for name in unknown {
        assert_eq!(json.pointer(name), Some(&serde_json::Value::Null), "{name}");
    }
    assert_eq!(
        json.pointer("/losses/total"),
        Some(&0.into()),
        "losses are always counted"
    );
}

/// A command submission and its job are one job, which is reported twice.
#[test]
fn driver_events_are_counted_apart_from_jobs() {
    let event = |name: &str, traced: Option<bool>, bytes: Option<u64>| {
        Fact::DriverEvent(DriverEvent {
            time_ns: 1,
            event: name.to_owned().into(),
            pid: traced.map(|_| 7),
            tid: traced.map(|_| 7),
            traced,
            ring: None,
            context: None,
            seqno: None,
            job_id: None,
            ibs: None,
            vmid: None,
            bytes,
            old_placement: None,
            new_placement: None,
        })
    };
    let facts = [
        event("amdgpu_cs_ioctl", Some(true), None),
        event("amdgpu_cs_ioctl", Some(false), None),
        event("amdgpu_sched_run_job", None, None),
        event("amdgpu_bo_move", Some(true), Some(4096)),
        event("amdgpu_bo_move", Some(false), Some(8192)),
    ];
    let report = report(EVERYTHING, &facts);
    assert_eq!((report.ring_jobs.total, report.ring_jobs.traced), (Some(0), Some(0)));
    assert_eq!((report.ioctls.total, report.driver_events.total), (Some(0), Some(5)));
    let count = |count, traced, bytes| DriverEventCount { count, traced, bytes };
    let expected = [
        ("amdgpu_bo_move", count(2, Some(1), Some(12288))),
        ("amdgpu_cs_ioctl", count(2, Some(1), None)),
        ("amdgpu_sched_run_job", count(1, None, None)),
    ];
    let by_event = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(report.driver_events.by_event, by_event.into());
}

#[test]
fn ioctls_count_errors_and_time_returned_calls() {
    let facts = [
        ioctl("kfd", "SVM", 150, Some(0)),
        ioctl("kfd", "SVM", 110, Some(-22)),
        ioctl("kfd", "SVM", 9_000, None),
        ioctl("kfd", "nr-0xf0", 101, Some(0)),
        ioctl("drm", "nr-0xf0", 90, Some(0)),
    ];
    let report = report(EVERYTHING, &facts);
    assert_eq!(report.ioctls.total, Some(5));
    let svm = report.ioctls.by_name["SVM"];
    assert_eq!((svm.count, svm.errors), (3, 1));
    assert_eq!(svm.ns.map(|ns| (ns.min, ns.max, ns.total)), Some((10, 50, 60)));
    let names: Vec<_> = report.ioctls.by_name.keys().map(String::as_str).collect();
    assert_eq!(names, ["SVM", "drm-nr-0xf0", "nr-0xf0"]);
}

#[test]
fn invented_kernels_are_limited_and_counted() {
    let mut summary = Summary::new(EVERYTHING);
    (0..kernels::MAX_KERNELS as u64 + 9).for_each(|k| summary.add(&dispatch(k, Evidence::Header)));
    summary.add(&dispatch(0, Evidence::Header));
    let report = summary.finish(false);
    assert_eq!((report.kernels.len(), report.other_kernels), (kernels::MAX_KERNELS, 9));
    assert_eq!((report.kernels[0].count, report.complete), (2, false));
}

#[test]
fn a_report_can_be_read_back() {
    let report = report(
        EVERYTHING,
        &[ioctl("kfd", "SVM", 150, Some(0)), dispatch(64, Evidence::Body)],
    );
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
}

#[test]
fn an_address_that_is_used_again_is_another_kernel() {
    let mut summary = Summary::new(EVERYTHING);
    for name in [Some("a"), Some("b"), Some("a"), None] {
        let Fact::Dispatch(mut dispatch) = dispatch(64, Evidence::Header) else {
            panic!("a dispatch")
        };
        dispatch.kernel = name.map(Into::into);
        summary.add(&Fact::Dispatch(dispatch));
    }
    let kernels = summary.finish(true).kernels;
    let counts: Vec<_> = kernels
        .iter()
        .map(|kernel| (kernel.name.as_deref(), kernel.count))
        .collect();
    assert_eq!(counts, [(Some("a"), 2), (None, 1), (Some("b"), 1)]);
}

/// tracer does not read the commands on this queue: it may have run any number of kernels.
#[test]
fn a_queue_of_pm4_commands_leaves_dispatches_unknown() {
    let known = |kind: &str| {
        let queue = Queue {
            queue: 1,
            kind: kind.to_owned(),
            ..sample::queue(0)
        };
        let report = report(EVERYTHING, &[Fact::Queue(sample::queue(0)), Fact::Queue(queue)]);
        (
            report.dispatches.total,
            report.dispatches.by_path.doorbell,
            report.packets.total,
            report.unseen.queues_open,
        )
    };
    assert_eq!(known("compute-aql"), (Some(0), Some(0), Some(0), 0));
    assert_eq!(known("sdma"), (Some(0), Some(0), Some(0), 0));
    for kind in ["compute-pm4", "other"] {
        assert_eq!(known(kind), (None, None, None, 1), "{kind}");
    }
}

#[test]
fn dispatches_on_internal_queues_are_counted_if_all_queues_are_known() {
    let queue = |queue, dispatches, internal| {
        Fact::Queue(Queue {
            queue,
            internal,
            ..sample::queue(dispatches)
        })
    };
    let internal = |known, facts: &[Fact]| report(known, facts).dispatches.internal;
    let mut facts = vec![
        queue(0, 5, Some(false)),
        queue(1, 2, Some(true)),
        queue(2, 3, Some(true)),
        queue(3, 0, None),
    ];
    assert_eq!(internal(EVERYTHING, &facts), Some(5));
    let blind = Capabilities {
        hsa_queues: false,
        ..EVERYTHING
    };
    assert_eq!(internal(blind, &facts), None);
    facts.push(queue(4, 1, None));
    assert_eq!(internal(EVERYTHING, &facts), None);
}

#[test]
fn runs_count_as_what_they_stand_for() {
    let run = |change: fn(&mut crate::tables::DispatchRun)| {
        let mut run = sample::dispatch_run(10, 5, 100);
        change(&mut run);
        Fact::DispatchRun(run)
    };
    let rows = [dispatch(64, Evidence::Header), doorbell(Some(40))];
    let runs = [
        run(|_| ()),
        run(|run| run.evidence = Evidence::Body),
        run(|run| run.kernel_object = None),
        run(|run| run.path = Path::Unseen),
        Fact::DoorbellRun(sample::doorbell_run(10, 15, 100)),
        Fact::DoorbellRun(sample::doorbell_run(25, 3, 100)),
        Fact::Queue(sample::queue(21)),
    ];
    let whole = report(EVERYTHING, &rows);
    assert_eq!(
        (whole.dispatches.aggregated, whole.doorbells.aggregated),
        (Some(0), Some(0))
    );
    let found = report(EVERYTHING, &[&rows[..], &runs].concat());
    assert_eq!(
        (found.dispatches.total, found.dispatches.aggregated),
        (Some(21), Some(20))
    );
    assert_eq!(
        (found.dispatches.by_path.doorbell, found.dispatches.by_path.unseen),
        (Some(16), Some(5))
    );
    assert_eq!((found.unseen.total, found.unseen.found), (Some(5), 5));
    assert_eq!(
        (found.dispatches.by_evidence.header, found.dispatches.by_evidence.body),
        (Some(16), Some(5))
    );
    assert_eq!(
        (found.doorbells.total, found.doorbells.aggregated),
        (Some(19), Some(18))
    );
    // The times of doorbells in runs are unknown.
    assert_eq!(
        found.doorbells.reserve_to_doorbell_ns.map(|stats| stats.total),
        Some(40)
    );
    let counts: Vec<_> = found
        .kernels
        .iter()
        .map(|kernel| (kernel.kernel_object, kernel.count))
        .collect();
    assert_eq!((counts, found.other_kernels), (vec![(64, 16)], 5));
    let blind = report(Capabilities::default(), &runs);
    assert_eq!((blind.dispatches.aggregated, blind.doorbells.aggregated), (None, None));
}

/// A recorder counts rows as they come, and learns later which of them it wrote as runs.
#[test]
fn what_became_of_rows_does_not_count_them_again() {
    let mut summary = Summary::new(EVERYTHING);
    for fact in [dispatch(64, Evidence::Header), doorbell(None)] {
        summary.add(&fact);
    }
    summary.set_aggregated(Aggregated {
        dispatches: 1,
        doorbells: 0,
    });
    let found = summary.finish(true);
    assert_eq!(
        (found.dispatches.total, found.dispatches.aggregated),
        (Some(1), Some(1))
    );
    assert_eq!((found.doorbells.total, found.doorbells.aggregated), (Some(1), Some(0)));
}

/// A recorder that runs for hours keeps the rows of some queues and processes; the totals over all of them are the same.
#[test]
fn queues_and_processes_that_are_forgotten_still_count() {
    let queue = |number: u32, change: fn(&mut Queue)| {
        let mut queue = Queue {
            queue: number,
            ..sample::queue(2)
        };
        change(&mut queue);
        Fact::Queue(queue)
    };
    let process = |pid, thunk| {
        Fact::Process(Process {
            thunk,
            ..sample::process(pid)
        })
    };
    let changes: [fn(&mut Queue); 6] = [
        |queue| queue.internal = Some(true),
        |queue| queue.internal = None,
        |queue| queue.kind = "compute-pm4".to_owned(),
        |queue| queue.watched_to_end = Some(false),
        |queue| queue.origin = QueueOrigin::Adopted,
        |queue| queue.kind = "sdma".to_owned(),
    ];
    let known = Capabilities {
        thunk: false,
        ..EVERYTHING
    };
    for odd in changes {
        for thunk in [Some(false), None] {
            let mut facts = vec![dispatch(64, Evidence::Header), process(7, thunk), queue(0, odd)];
            facts.extend((1..10).map(|number| queue(number, |queue| queue.internal = Some(true))));
            facts.extend((8..20).map(|pid| process(pid, None)));
            let whole = report(known, &facts);
            assert_eq!(whole.dispatches.by_path.thunk.is_some(), thunk.is_some());
            let mut summary = Summary::new(known).keeping(3);
            facts.iter().for_each(|fact| summary.add(fact));
            let mut some = summary.finish(true);
            assert_eq!((some.queues.len(), some.other_queues), (3, 7));
            assert_eq!((some.processes.len(), some.other_processes), (3, 10));
            assert_eq!(some.queues, whole.queues[7..]);
            assert_eq!(some.processes, whole.processes[10..]);
            (some.queues, some.other_queues) = (whole.queues.clone(), 0);
            (some.processes, some.other_processes) = (whole.processes.clone(), 0);
            assert_eq!(some, whole);
        }
    }
}

/// A killed recorder can leave two rows for one queue.
#[test]
fn the_last_row_of_a_queue_counts() {
    let queue = |dispatches| Fact::Queue(sample::queue(dispatches));
    let found = report(EVERYTHING, &[queue(1), queue(5)]);
    assert_eq!(found.queues, [sample::queue(5)]);
}

#[test]
fn what_a_killed_recorder_did_not_see_is_unknown() {
    let mut summary = Summary::new(EVERYTHING);
    [dispatch(64, Evidence::Header), Fact::Queue(sample::queue(1))]
        .iter()
        .for_each(|fact| summary.add(fact));
    let whole = summary.clone().finish(true);
    assert_eq!(
        (whole.unseen.total, whole.dispatches.by_path.unseen),
        (Some(0), Some(0))
    );
    assert_eq!(whole.dispatches.internal, Some(0));
    let killed = summary.finish(false);
    assert_eq!((killed.unseen.total, killed.dispatches.by_path.unseen), (None, None));
    assert_eq!((killed.dispatches.internal, killed.nothing), (None, None));
    assert_eq!(
        (killed.dispatches.total, killed.dispatches.by_path.doorbell),
        (Some(1), Some(1))
    );
}

#[test]
fn a_table_that_cannot_be_read_leaves_its_totals_unknown() {
    let mut summary = Summary::new(EVERYTHING);
    let facts = [
        dispatch(64, Evidence::Header),
        doorbell(Some(40)),
        ioctl("kfd", "SVM", 150, Some(0)),
        Fact::Queue(sample::queue(1)),
    ];
    facts.iter().for_each(|fact| summary.add(fact));
    let without = |table: Table| {
        let mut summary = summary.clone();
        summary.set_unread(BTreeSet::from([table]));
        let report = summary.finish(true);
        assert!(!report.complete);
        (
            report.dispatches.total,
            report.doorbells.total,
            report.packets.total,
            report.ioctls.total,
            report.losses.total,
        )
    };
    let [one, none] = [Some(1), Some(0)];
    assert_eq!(without(Table::Progress), (one, one, none, one, none));
    assert_eq!(without(Table::Dispatches), (None, one, none, one, none));
    assert_eq!(without(Table::DoorbellRuns), (one, None, none, one, none));
    // A vendor packet of an unknown format, or a queue of PM4 commands, may launch kernels.
    assert_eq!(without(Table::Packets), (None, one, None, one, none));
    assert_eq!(without(Table::Queues), (None, one, None, one, none));
    assert_eq!(without(Table::Ioctls), (one, one, none, None, none));
    assert_eq!(without(Table::Losses), (one, one, none, one, None));
}

#[test]
fn nothing_is_a_finding_only_if_it_is_known() {
    let nothing = |capabilities: Capabilities, facts: &[Fact]| report(capabilities, facts).nothing;
    let kfd = ioctl("kfd", "GET_VERSION", 150, Some(0));
    let drm = ioctl("drm", "VERSION", 150, Some(0));
    let queue = Fact::Queue(sample::queue(0));
    let loss = |source: &str| {
        Fact::Loss(Loss {
            time_ns: 0,
            source: source.to_owned(),
            count: 1,
        })
    };
    assert_eq!(nothing(EVERYTHING, &[]), Some(Nothing::NoKfd));
    assert_eq!(nothing(EVERYTHING, std::slice::from_ref(&drm)), Some(Nothing::NoKfd));
    assert_eq!(nothing(EVERYTHING, std::slice::from_ref(&kfd)), Some(Nothing::NoQueue));
    let (created, failed) = ([Some(0), Some(-22)].map(|ret| ioctl("kfd", "CREATE_QUEUE", 150, ret))).into();
    assert_eq!(
        nothing(EVERYTHING, &[created]),
        None,
        "the call is known, and the queue is not"
    );
    assert_eq!(nothing(EVERYTHING, &[failed]), Some(Nothing::NoQueue));
    let all = [kfd.clone(), queue.clone()];
    assert_eq!(nothing(EVERYTHING, &all), Some(Nothing::NoSubmission));
    assert_eq!(
        nothing(EVERYTHING, &[&all[..], &[dispatch(1, Evidence::Header)]].concat()),
        None
    );
    // Only ioctls are needed to know that there was no queue.
    let ioctls = Capabilities {
        ioctls: true,
        ..Capabilities::default()
    };
    assert_eq!(nothing(ioctls, &[]), Some(Nothing::NoKfd));
    assert_eq!(nothing(ioctls, &all), None);
    assert_eq!(nothing(Capabilities::default(), &[]), None);
    for source in ["ioctl-ring", "missed-ioctl", "library-unopened", "doorbell-ring"] {
        assert_eq!(nothing(EVERYTHING, &[loss(source)]), None, "{source}");
    }
    assert_eq!(nothing(EVERYTHING, &[loss("ring-job-ring")]), Some(Nothing::NoKfd));
    let mut killed = Summary::new(EVERYTHING);
    killed.add(&kfd);
    assert_eq!(killed.finish(false).nothing, None);
}

#[test]
fn names_that_stay_mangled_are_counted() {
    let kernel = |symbol: &str, name: &str| {
        Fact::Kernel(crate::tables::Kernel {
            symbol: symbol.into(),
            name: name.into(),
            ..crate::sample::kernel(1)
        })
    };
    let facts = [
        kernel("_Z1fv", "f()"),
        kernel("fill", "fill"),
        kernel("_Z1fITkX", "_Z1fITkX"),
        kernel("_RX", "_RX"),
    ];
    let known = Capabilities {
        code_objects: true,
        ..Capabilities::default()
    };
    assert_eq!(
        report(known, &facts).kernel_names,
        Some(KernelNames { total: 4, mangled: 2 })
    );
    assert_eq!(report(Capabilities::default(), &facts).kernel_names, None);
}
