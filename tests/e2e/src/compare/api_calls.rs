//! Comparison of HIP and HSA calls: each is complete, nested correctly, and linked to what was submitted in it.

use std::collections::{BTreeMap, BTreeSet};

use tracer_common::api::{Classes, FUNCTIONS, Layer, find};
use tracer_core::tables::{ApiCall, Copy, CopyOp, Direction, Dispatch};

use crate::{dispatcher::Call, scenario::Run};

/// Returns the calls of the trace, in the order of entry.
#[must_use]
pub fn calls(run: &Run) -> Vec<&ApiCall> {
    let mut calls: Vec<_> = run.api_calls().collect();
    calls.sort_by_key(|call| call.call);
    calls
}

/// Checks what is true of every recording: call numbers have no gaps in the order of entry, calls are nested, links point into open
/// calls of the same thread, and counts add up.
pub fn consistent_calls(run: &Run) {
    let all = calls(run);
    let by_number: BTreeMap<u64, &ApiCall> = all.iter().map(|call| (call.call, *call)).collect();
    assert_eq!(by_number.len(), all.len(), "a number twice");
    assert_eq!(
        by_number.keys().copied().collect::<Vec<_>>(),
        (1..=all.len() as u64).collect::<Vec<_>>()
    );
    assert_eq!(run.report["losses"]["total"], 0, "{}", run.report["losses"]);
    for call in &all {
        let exit_ns = call.exit_ns.unwrap_or_else(|| panic!("never returned: {call:?}"));
        assert!(call.enter_ns < exit_ns, "{call:?}");
        if let Some(parent) = call.parent.map(|parent| by_number[&parent]) {
            assert_eq!((parent.pid, parent.tid), (call.pid, call.tid), "{call:?}");
            assert!(
                parent.call < call.call && parent.enter_ns < call.enter_ns,
                "{parent:?} {call:?}"
            );
            assert!(parent.exit_ns >= call.exit_ns, "{parent:?} {call:?}");
        }
    }
    // Calls of one thread that are not nested follow one another.
    let mut last: BTreeMap<(u32, Option<u64>), u64> = BTreeMap::new();
    for call in &all {
        let before = last.insert((call.tid, call.parent), call.exit_ns.unwrap_or(0));
        assert!(before.is_none_or(|exit_ns| exit_ns <= call.enter_ns), "{call:?}");
    }
    let mut submitted: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let links = run.dispatches().map(|d| (d.api_call, d.tid, d.time_ns, (1, 0)));
    let links = links.chain(run.copies().map(|c| (c.api_call, c.tid, c.time_ns, (0, 1))));
    for (call, tid, time_ns, (dispatches, copies)) in links {
        let mut next = call;
        while let Some(number) = next {
            let call = by_number[&number];
            assert_eq!(call.tid, tid, "{call:?}");
            assert!(
                (call.enter_ns..=call.exit_ns.unwrap_or(0)).contains(&time_ns),
                "{time_ns} {call:?}"
            );
            let sum = submitted.entry(number).or_default();
            *sum = (sum.0 + dispatches, sum.1 + copies);
            next = call.parent;
        }
    }
    for call in &all {
        let seen = submitted.get(&call.call).copied().unwrap_or_default();
        assert_eq!((call.dispatches, call.copies), seen, "{call:?}");
    }
    // The report's counts match the rows, of calls by themselves and of counted calls.
    let reported = &run.report["api_calls"];
    let counted: u64 = run.api_stats().map(|row| row.calls).sum();
    assert_eq!(reported["total"], all.len() as u64 + counted);
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for call in &all {
        let (count, errors) = counts.entry(&call.function).or_default();
        *count += 1;
        *errors += u64::from(call.failed == Some(true));
    }
    for row in run.api_stats() {
        assert!(!all.iter().any(|call| call.function == row.function), "both: {row:?}");
        let (count, errors) = counts.entry(&row.function).or_default();
        (*count, *errors) = (*count + row.calls, *errors + row.failed);
    }
    assert_eq!(
        reported["by_function"].as_object().map(serde_json::Map::len),
        Some(counts.len())
    );
    for (function, (count, errors)) in counts {
        let said = &reported["by_function"][function];
        assert_eq!(
            (&said["count"], &said["errors"]),
            (&count.into(), &errors.into()),
            "{function}"
        );
    }
}

/// Compares a workload through HIP: the trace's HIP calls equal those of the program's own log, thread by thread, in order, and
/// each dispatch and copy is linked to the call around it. Returns each call of the log with its row.
pub fn through_hip(run: &Run) -> Vec<(&Call, &ApiCall)> {
    consistent_calls(run);
    let all = calls(run);
    let by_number: BTreeMap<u64, &ApiCall> = all.iter().map(|call| (call.call, *call)).collect();
    let roots: Vec<&ApiCall> = all.iter().filter(|call| call.parent.is_none()).copied().collect();
    let log = &run.log.as_ref().expect("the dispatcher's log").calls;
    let threads: BTreeSet<u32> = log.iter().map(|call| call.tid).collect();
    // Queries and steps are counted. All other calls have rows.
    let class = |call: &Call| find(Layer::Hip, &call.call).map(|number| FUNCTIONS[number].class);
    let counted_only = |call: &Call| class(call).is_some_and(|class| !Classes::USUAL.has(class));
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for call in log.iter().filter(|call| counted_only(call)) {
        *counts.entry(&call.call).or_default() += 1;
    }
    let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
    for row in run.api_stats().filter(|row| row.layer == "hip") {
        *counted.entry(&row.function).or_default() += row.calls;
    }
    assert_eq!(counted, counts);
    let mut pairs = Vec::new();
    for tid in threads {
        let mut made: Vec<&Call> = log
            .iter()
            .filter(|call| call.tid == tid && class(call).is_some() && !counted_only(call))
            .collect();
        made.sort_by_key(|call| call.start_ns);
        let seen: Vec<&ApiCall> = roots
            .iter()
            .filter(|call| call.tid == tid && call.layer == "hip")
            .copied()
            .collect();
        let names = |made: &[&Call]| made.iter().map(|call| call.call.clone()).collect::<Vec<_>>();
        let rows: Vec<String> = seen.iter().map(|call| call.function.clone().into_owned()).collect();
        assert_eq!(names(&made), rows);
        for (made, seen) in made.into_iter().zip(seen) {
            assert_eq!(seen.ret, Some(i64::from(made.result)), "{made:?} {seen:?}");
            let exit_ns = seen.exit_ns.expect("it returned");
            assert!(
                made.start_ns <= seen.enter_ns && exit_ns <= made.end_ns,
                "{made:?} {seen:?}"
            );
            if let Some(stream) = &made.stream {
                assert_eq!(seen.stream, Some(address(stream)), "{made:?} {seen:?}");
            }
            // The log has the module in which the function was looked up.
            let made_object = made.object.as_ref().filter(|_| made.call != "hipModuleGetFunction");
            if let (Some(object), Some(seen_object)) = (made_object, seen.object) {
                assert_eq!(seen_object, address(object), "{made:?} {seen:?}");
            }
            if let (Some(bytes), Some(seen_bytes)) = (made.bytes, seen.bytes) {
                assert_eq!(seen_bytes, bytes, "{made:?} {seen:?}");
            }
            pairs.push((made, seen));
        }
    }
    // Everything submitted in a call is linked to it, and nothing else is linked.
    let root_of = |number: u64| {
        let mut call = by_number[&number];
        while let Some(parent) = call.parent {
            call = by_number[&parent];
        }
        call.call
    };
    let around = |tid: u32, time_ns: u64| {
        let open = |call: &&&ApiCall| call.tid == tid && (call.enter_ns..=call.exit_ns.unwrap_or(0)).contains(&time_ns);
        roots.iter().find(open).map(|call| call.call)
    };
    for dispatch in run.dispatches() {
        let link = dispatch.api_call.map(root_of);
        assert_eq!(link, around(dispatch.tid, dispatch.time_ns), "{dispatch:?}");
    }
    for copy in run.copies() {
        assert_eq!(copy.api_call.map(root_of), around(copy.tid, copy.time_ns), "{copy:?}");
    }
    // Each kernel launch has its dispatch, on its stream. Launches that a stream captures run with the graph.
    let captured = |made: &Call| {
        let mut before = pairs
            .iter()
            .map(|(other, _)| other)
            .filter(|other| other.tid == made.tid && other.start_ns < made.start_ns && other.call.ends_with("Capture"));
        before
            .next_back()
            .is_some_and(|other| other.call == "hipStreamBeginCapture")
    };
    let launches = pairs
        .iter()
        .filter(|(made, _)| made.kernel.is_some() && !captured(made));
    for (made, seen) in launches {
        let is_it = |d: &&Dispatch| {
            let workgroup = d.workgroup.map(u32::from);
            d.api_call.map(root_of) == Some(seen.call) && (Some(d.grid), Some(workgroup)) == (made.grid, made.workgroup)
        };
        let own: Vec<&Dispatch> = run.dispatches().filter(is_it).collect();
        assert_eq!(own.len(), 1, "{made:?} {seen:?}");
        assert_eq!(own[0].stream, made.stream.as_deref().map(address), "{made:?} {own:?}");
        assert_eq!(own[0].kernel.as_deref(), made.kernel.as_deref(), "{own:?}");
    }
    // The SDMA transfers or the kernel of a copy move everything that the call requests; the transfers in the direction that the
    // call gives.
    for (made, seen) in &pairs {
        let (Some(asked), Some(direction)) = (made.bytes, made.direction.as_deref()) else {
            continue;
        };
        let own: Vec<&Copy> = run
            .copies()
            .filter(|copy| copy.api_call.map(root_of) == Some(seen.call))
            .collect();
        let moved: Vec<&&Copy> = own.iter().filter(|copy| copy.op != Some(CopyOp::None)).collect();
        let bytes: u64 = moved.iter().filter_map(|copy| copy.bytes).sum();
        assert!(moved.is_empty() || bytes == asked, "{made:?} {own:?}");
        let direction = match direction {
            "host-to-device" => Direction::H2d,
            "device-to-host" => Direction::D2h,
            _ => Direction::D2d,
        };
        assert!(
            moved
                .iter()
                .all(|copy| copy.direction == (!copy.is_kernel()).then_some(direction)),
            "{made:?} {own:?}"
        );
    }
    // Maps streams to their queues.
    let mut streams: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let submissions = run.dispatches().map(|d| (d.stream, Some(d.queue)));
    // A copy by a kernel is one of the dispatches.
    let by_sdma = run.copies().filter(|copy| !copy.is_kernel());
    for (stream, queue) in submissions.chain(by_sdma.map(|c| (c.stream, c.queue))) {
        if let (Some(stream), Some(queue)) = (stream, queue) {
            *streams.entry((stream, queue.into())).or_default() += 1;
        }
    }
    let reported = run.report["streams"].as_array().expect("streams");
    let of = |row: &serde_json::Value, field: &str| row[field].as_u64().expect("a number");
    let reported = reported
        .iter()
        .map(|row| ((of(row, "stream"), of(row, "queue")), of(row, "submissions")));
    assert_eq!(reported.collect::<BTreeMap<_, _>>(), streams);
    pairs
}

/// Parses an address as the dispatcher writes it: hexadecimal.
fn address(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("an address")
}
