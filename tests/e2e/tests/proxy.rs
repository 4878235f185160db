//! A tool between a program and its queues, like rocprofiler. The program writes to proxies in memory, and rings signals that are
//! not doorbells. There the runtime passes packets to the tool, which publishes them on the real queues.

use std::collections::BTreeMap;

use serde_json::json;
use tracer_core::tables::{Dispatch, Fact, PacketKind, Proxy, Request};
use tracer_e2e::{
    compare,
    scenario::{Run, Scenario, each_release, report_text},
};

/// Records a scenario with the tool in `mode`; if empty, the tool passes packets on unchanged.
fn intercepted(scenario: &Scenario, mode: &str) -> Run {
    let run = scenario.clone().intercepted(mode).record();
    let compared = compare::device(&run);
    let did = run.did();
    println!("{} {scenario:?}: {compared:?}", did["runtime"]["version"]);
    assert_eq!(did["results"], "ok");
    run
}

/// Checks that the requests equal the program's submissions, for each packet: index, kernel, thread, time.
fn requested_is_what_the_program_submitted(run: &Run) {
    let log = run.log.as_ref().expect("the dispatcher's log");
    let proxies: Vec<&Proxy> = run.proxies().collect();
    let own = run.own_queues().expect("the dispatcher's queues");
    assert_eq!(proxies.len(), own.len());
    let mut numbers: BTreeMap<u64, u32> = BTreeMap::new();
    for (handle, did) in &own {
        let proxy = proxies.iter().find(|proxy| proxy.handle == *handle);
        let proxy = proxy.unwrap_or_else(|| panic!("no proxy at {handle:#x}"));
        let said = |what: &str| did[what].as_u64().expect("a number");
        assert_eq!(
            (proxy.doorbells, proxy.dispatches, proxy.other_packets, proxy.unread),
            (said("doorbells"), said("dispatches"), said("barriers"), 0),
            "{proxy:?}"
        );
        assert_eq!(proxy.requested, said("dispatches") + said("barriers"), "{proxy:?}");
        assert_eq!(proxy.ring_bytes, 64 * said("size"), "{proxy:?}");
        assert_eq!(proxy.last_index, did["last_index"].as_u64(), "{proxy:?}");
        numbers.insert(*handle, proxy.proxy);
    }
    let mut rows: BTreeMap<(u32, u64), &Request> = BTreeMap::new();
    for request in run.requests() {
        let key = (request.proxy, request.index);
        assert!(rows.insert(key, request).is_none(), "twice: {request:?}");
    }
    for submission in log.submissions.iter().filter(|submission| submission.kernel.is_some()) {
        let request = rows.remove(&(numbers[&submission.queue], submission.index));
        let request = request.unwrap_or_else(|| panic!("{submission:?} is missing"));
        assert_eq!(request.kernel.as_deref(), submission.kernel.as_deref(), "{request:?}");
        // Another thread may have rung for it.
        let reserved = request.reserve_ns.unwrap_or(submission.reserve_ns);
        let times = [submission.reserve_ns, reserved, request.time_ns, submission.time_ns];
        assert!(times.is_sorted(), "{times:?} {request:?}");
    }
    assert!(rows.is_empty(), "never submitted: {rows:?}");
    let sum = |count: fn(&Proxy) -> u64| proxies.iter().map(|proxy| count(proxy)).sum::<u64>();
    let expected = json!({
        "proxies": proxies.len(), "doorbells": sum(|p| p.doorbells), "dispatches": run.requests().count(),
        "other_packets": sum(|p| p.other_packets), "unread": 0,
    });
    assert_eq!(run.report["requested"], expected);
    let text = report_text(run.trace.dir());
    assert!(text.contains("a tool intercepts"), "{text}");
}

#[test]
fn what_is_published_is_that_of_the_real_queue() {
    for (suite, asic) in each_release(1) {
        let run = intercepted(&Scenario::new(suite, asic, &["compute-only", "-n", "20"]), "");
        requested_is_what_the_program_submitted(&run);
        let of_program: Vec<&Dispatch> = run.dispatches().filter(|d| d.kernel.is_some()).collect();
        assert_eq!((of_program.len(), run.requests().count()), (20, 20));
        assert!(run.requests().all(|r| r.tid == r.pid && r.reserve_ns.is_some()));
        // In the thread that rang the proxy, which is the only one here. The reserve was the proxy's.
        assert!(of_program.iter().all(|d| d.tid == d.pid && d.reserve_ns.is_none()));
        // None of the GPU's queues is the program's.
        let proxy = run.proxies().next().expect("a proxy").handle;
        for queue in run.queues() {
            assert_ne!(queue.handle, proxy, "{queue:?}");
            // It is not known which of the queues is behind the program's proxy.
            assert_eq!(queue.internal, None, "{queue:?}");
        }
        assert!(run.report["dispatches"]["internal"].is_null());
    }
}

/// A profiler publishes its own packets. These are published but were not requested.
#[test]
fn what_a_tool_adds_was_not_requested() {
    let barriers = |run: &Run| {
        let is = |fact: &&Fact| matches!(fact, Fact::Packet(p) if p.kind == PacketKind::BarrierAnd);
        run.facts.iter().filter(is).count()
    };
    for (suite, asic) in each_release(0) {
        let scenario = Scenario::new(suite, asic, &["batch", "--packets", "5", "-n", "40"]);
        let run = intercepted(&scenario, "barriers");
        requested_is_what_the_program_submitted(&run);
        assert_eq!(run.requests().count(), 40);
        assert_eq!(run.dispatches().filter(|d| d.kernel.is_some()).count(), 40);
        assert_eq!(barriers(&run), 40);
        assert_eq!(run.report["requested"]["doorbells"], 8);
    }
}

/// Several threads use one proxy, whose ring wraps many times.
#[test]
fn proxies_are_walked_like_queues() {
    for workload in [&["wrap"][..], &["multi-queue"], &["barriers"], &["multi-thread"]] {
        let scenario = Scenario::new("sid", "gfx942", workload);
        requested_is_what_the_program_submitted(&intercepted(&scenario, ""));
    }
}

/// Without a tool in between, nothing is requested, and the trace says so.
#[test]
fn without_a_tool_nothing_is_requested() {
    let run = Scenario::new("sid", "gfx942", &["compute-only", "-n", "3"]).record();
    let none = json!({"proxies": 0, "doorbells": 0, "dispatches": 0, "other_packets": 0, "unread": 0});
    assert_eq!(run.report["requested"], none);
    assert!(!report_text(run.trace.dir()).contains("requested"));
}
