//! Steps, phases, nested calls, copies and time in flight.

use std::collections::BTreeMap;

use serde_json::Value;
use tracer_core::tables::Fact;
use tracer_e2e::scenario::Run;

use super::packet;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Steps, phases, nested calls and copies count what the rows have, which the comparison has checked.
pub(super) fn equal_the_device(run: &Run) {
    let answers = &run.report["answers"];
    let rows = |table: &str| answers[table].as_array().expect("rows").clone();
    let sum = |rows: &[Value], column: &str| rows.iter().map(|row| number(&row[column])).sum::<u64>();
    let ioctls = run.facts.iter().filter_map(|fact| match fact {
        Fact::Ioctl(row) => Some(row),
        _ => None,
    });
    let doorbells = run.facts.iter().filter_map(|fact| match fact {
        Fact::Doorbell(row) => Some(row),
        _ => None,
    });
    // Every doorbell published, and the device took everything before the queues were destroyed.
    let published = doorbells.clone().filter(|row| row.published > 0).count() as u64;
    let cheap = ioctls
        .clone()
        .filter(|row| row.device == "kfd" && row.name != "WAIT_EVENTS" && row.ret.is_some());
    let launched = run.dispatches().filter(|row| row.api_call.is_some()).count() as u64;
    let steps: BTreeMap<String, u64> = rows("steps")
        .iter()
        .map(|row| (row["step"].as_str().expect("a step").to_owned(), number(&row["count"])))
        .collect();
    assert_eq!(steps["doorbell-to-taken"], published, "{steps:?}");
    assert_eq!(steps["doorbell-to-not-taken"], published, "{steps:?}");
    assert_eq!(steps["call-to-doorbell"], launched, "{steps:?}");
    assert_eq!(steps["kfd-ioctl"], cheap.count() as u64, "{steps:?}");
    // The scenario has probes on calls, reserves and doorbells.
    let hits = |step: &str| {
        rows("steps")
            .iter()
            .find(|row| row["step"] == step)
            .map(|row| number(&row["hits"]))
    };
    let limited = ["call-to-reserve", "reserve-to-doorbell", "call-to-doorbell", "call"].map(hits);
    assert_eq!(limited, [Some(1), Some(1), Some(2), Some(3)]);
    assert_eq!(hits("doorbell-to-taken"), Some(0));
    // Every uprobe's instruction was measured, and no other probe has a cost.
    for probe in run.report["probes"].as_array().expect("probes") {
        let ns = probe["hit_ns"].as_u64();
        assert_eq!(probe["instruction"].is_string(), ns.is_some_and(|ns| ns > 0), "{probe}");
    }

    let phases = rows("phases");
    let names: Vec<&str> = phases.iter().filter_map(|row| row["phase"].as_str()).collect();
    assert_eq!(names, ["set-up", "steady", "end"]);
    assert_eq!(sum(&phases, "ioctls"), ioctls.clone().count() as u64);
    assert_eq!(sum(&phases, "dispatches"), run.dispatches().count() as u64);
    assert_eq!(number(&phases[1]["dispatches"]), run.dispatches().count() as u64);
    let times: Vec<u64> = run.dispatches().map(|row| row.time_ns).collect();
    let (first, last) = (times.iter().min(), times.iter().max());
    let (first, last) = (*first.expect("a dispatch"), *last.expect("a dispatch"));
    let before = ioctls.clone().filter(|row| row.enter_ns < first).count() as u64;
    assert_eq!(number(&phases[0]["ioctls"]), before);
    assert_eq!(number(&phases[1]["ns"]), last - first);

    // Each row is below the one that it is inside; together they have each call and ioctl once.
    let nesting = rows("nesting");
    let of = |layer: &str| {
        let rows: Vec<Value> = nesting.iter().filter(|row| row["layer"] == layer).cloned().collect();
        sum(&rows, "calls")
    };
    assert_eq!(of("ioctl"), ioctls.clone().count() as u64);
    assert_eq!(of("hip") + of("hsa"), run.api_calls().count() as u64);
    assert_eq!(sum(&nesting, "own_ns"), sum(&rows("layers"), "own_ns"));
    let at = |name: &str| nesting.iter().position(|row| row["name"] == name);
    let create = at("hsa_queue_create").expect("the creation of a queue");
    let depth = number(&nesting[create]["depth"]);
    let mut inside = nesting[create + 1..]
        .iter()
        .take_while(|row| number(&row["depth"]) > depth);
    let ioctl = inside.find(|row| row["name"] == "CREATE_QUEUE").expect("its ioctl");
    assert_eq!(ioctl["calls"], nesting[create]["calls"], "each makes one queue");

    let copies = rows("copies");
    for (direction, moved) in run.report["copies"]["by_direction"].as_object().expect("directions") {
        let of: Vec<Value> = copies
            .iter()
            .filter(|row| row["direction"] == direction.as_str())
            .cloned()
            .collect();
        let expected = (number(&moved["count"]), number(&moved["bytes"]));
        assert_eq!((sum(&of, "count"), sum(&of, "bytes")), expected, "{copies:?}");
    }
    let all = run.facts.iter().filter(|fact| matches!(fact, Fact::Copy(_)));
    assert_eq!(sum(&copies, "count"), all.count() as u64);
}

/// From its doorbell to the time at which the device took it, a packet was in flight.
pub(super) fn time_in_flight_holds_what_the_device_took(run: &Run) {
    let times = &run.report["answers"]["in_flight"];
    let most = number(&times["held"]["most_ns"]);
    let (least, phase) = (number(&times["held"]["least_ns"]), number(&times["phase_ns"]));
    assert!(least <= most && most <= phase, "{times}");
    let mut held: Vec<(u64, u64)> = run
        .dispatches()
        .map(|dispatch| (dispatch.time_ns, packet(run, dispatch).time_ns))
        .collect();
    held.sort_unstable();
    let (mut total, mut end) = (0, 0);
    for (begin, taken) in held {
        total += taken.saturating_sub(begin.max(end));
        end = end.max(taken);
    }
    assert!(total > 0 && total <= most, "{total} ns, {times}");
    for queue in run.queues().filter(|row| row.dispatches > 0) {
        let of = &times["queues"][queue.queue.to_string()];
        assert!(number(&of["most_ns"]) <= most, "{times}");
        assert!(number(&of["least_ns"]) <= least, "{times}");
    }
}
