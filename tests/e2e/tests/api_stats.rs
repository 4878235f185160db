//! HIP and HSA calls that are only counted: the counts equal those of the program's own log.

use std::{collections::BTreeMap, ffi::OsStr, path::Path, process::Command};

use tracer_common::api::{FUNCTIONS, Layer, find};
use tracer_core::tables::{ApiStats, Fact};
use tracer_e2e::{
    dispatcher::{Call, Log},
    place,
    scenario::{Run, Scenario, each_release, folder, report_text},
};

fn stats(run: &Run) -> Vec<&ApiStats> {
    let stats = run.facts.iter().filter_map(|fact| match fact {
        Fact::ApiStats(stats) => Some(stats),
        _ => None,
    });
    stats.collect()
}

/// Checks what is true of every recording that only counts calls.
fn assert_consistent(run: &Run) {
    assert_eq!(run.report["losses"]["total"], 0, "{}", run.report["losses"]);
    for fact in &run.facts {
        match fact {
            Fact::ApiCall(call) => panic!("a call by itself: {call:?}"),
            Fact::Dispatch(d) => assert_eq!((d.api_call, d.stream), (None, None), "{d:?}"),
            Fact::Copy(c) => assert_eq!((c.api_call, c.stream), (None, None), "{c:?}"),
            _ => {}
        }
    }
    let mut sums: BTreeMap<&str, [u64; 4]> = BTreeMap::new();
    for row in stats(run) {
        assert!(row.pid.is_some(), "there are few processes: {row:?}");
        assert_eq!(row.calls, row.returned + row.left, "open at the end: {row:?}");
        assert!(row.failed <= row.returned, "{row:?}");
        let durations = &row.durations.0;
        assert_eq!(
            row.returned,
            durations.iter().map(|(_, count)| count).sum::<u64>(),
            "{row:?}"
        );
        assert!(durations.is_sorted_by(|(one, _), (next, _)| one < next), "{row:?}");
        if let (Some(min), Some(max)) = (row.min_ns, row.max_ns) {
            // Each duration is in the right bucket.
            let (first, last) = (durations[0].0, durations[durations.len() - 1].0);
            assert!(0 < min && min <= first && first <= min + min / 8 + 1, "{row:?}");
            assert!(max <= last && last <= max + max / 8 + 1, "{row:?}");
            let (least, most) = (row.returned * min, row.returned * max);
            assert!((least..=most).contains(&row.total_ns), "{row:?}");
        } else {
            assert_eq!((row.returned, row.min_ns, row.max_ns), (0, None, None), "{row:?}");
        }
        let sum = sums.entry(&row.function).or_default();
        for (sum, more) in sum.iter_mut().zip([row.calls, row.failed, row.left, row.total_ns]) {
            *sum += more;
        }
    }
    // The report shows the same numbers and their meaning.
    let reported = &run.report["api_calls"];
    assert_eq!(reported["total"], sums.values().map(|[calls, ..]| calls).sum::<u64>());
    assert_eq!(reported["counted_only"], true);
    assert_eq!(run.report["streams"], serde_json::json!([]));
    let functions = reported["by_function"].as_object().expect("functions");
    assert_eq!(functions.keys().collect::<Vec<_>>(), sums.keys().collect::<Vec<_>>());
    for (function, [calls, failed, left, total_ns]) in sums {
        let said = &functions[function];
        let number = |field: &serde_json::Value| field.as_u64().unwrap_or(0);
        let numbers = [
            &said["count"],
            &said["errors"],
            &said["unreturned"],
            &said["ns"]["total"],
        ]
        .map(number);
        assert_eq!(numbers, [calls, failed, left, total_ns], "{function}");
        assert!(
            said["dispatches"].is_null() && said["copies"].is_null(),
            "{function}: {said}"
        );
    }
    let known = &run.trace.manifest().capabilities;
    let has = |name: &str| known.iter().any(|known| known == name);
    assert!(has("api_stats") && !has("api"), "{known:?}");
    let text = report_text(run.trace.dir());
    assert!(text.contains("counted only"), "{text}");
}

fn counted(scenario: Scenario) -> Run {
    let run = Scenario {
        api: "stats",
        ..scenario
    }
    .record();
    assert_consistent(&run);
    run
}

/// The calls of a function, and the calls that returned an error.
type Counts<'a> = BTreeMap<&'a str, (u64, u64)>;

/// Returns the counts of the watched HIP functions in the program's log.
fn logged(log: &Log) -> Counts<'_> {
    let mut counts = Counts::new();
    for call in &log.calls {
        if let Some(number) = find(Layer::Hip, &call.call) {
            let (calls, failed) = counts.entry(&call.call).or_default();
            *calls += 1;
            *failed += u64::from(FUNCTIONS[number].failed(call.result.into()));
        }
    }
    counts
}

/// Returns the counts of the functions of a layer in a trace.
fn seen<'a>(rows: &[&'a ApiStats], layer: &str) -> Counts<'a> {
    let mut counts = Counts::new();
    for row in rows.iter().filter(|row| row.layer == layer) {
        let (calls, failed) = counts.entry(&row.function).or_default();
        (*calls, *failed) = (*calls + row.calls, *failed + row.failed);
    }
    counts
}

/// Checks that counts equal the log's exactly, and that no time is longer than the program measured around the call.
fn assert_as_logged(rows: &[&ApiStats], log: &Log) {
    assert_eq!(seen(rows, "hip"), logged(log));
    let took = |call: &&Call| call.end_ns - call.start_ns;
    for row in rows.iter().filter(|row| row.layer == "hip") {
        let made: Vec<&Call> = log.calls.iter().filter(|call| call.call == row.function).collect();
        let times = made.iter().map(took);
        assert!(row.total_ns <= times.clone().sum(), "{row:?}");
        assert!(
            row.max_ns <= times.clone().max() && row.min_ns <= times.min(),
            "{row:?}"
        );
    }
}

fn log(run: &Run) -> &Log {
    run.log.as_ref().expect("the dispatcher's log")
}

#[test]
fn calls_are_as_many_as_the_program_made() {
    for (suite, gpu) in each_release(0) {
        let run = counted(Scenario::hip(suite, gpu, &["launches", "-n", "3"]));
        assert_as_logged(&stats(&run), log(&run));
        let launches = seen(&stats(&run), "hip")["hipModuleLaunchKernel"];
        assert!(launches.0 >= 3 && launches.1 == 0, "{suite}: {launches:?}");
        assert!(!seen(&stats(&run), "hsa").is_empty(), "{suite}");
    }
}

/// Returns the calls of HSA functions in a recording of single calls.
fn recorded(scenario: &Scenario) -> BTreeMap<String, (u64, u64)> {
    let run = Scenario {
        api: "all",
        api_rows: Some("all"),
        ..scenario.clone()
    }
    .record();
    let mut counts = BTreeMap::<String, (u64, u64)>::new();
    for fact in &run.facts {
        if let Fact::ApiCall(call) = fact
            && call.layer == "hsa"
        {
            let (calls, failed) = counts.entry(call.function.clone().into_owned()).or_default();
            (*calls, *failed) = (*calls + 1, *failed + u64::from(call.failed == Some(true)));
        }
    }
    counts
}

/// There is no log of HSA functions. A nested call that is not a separate call is excluded as in a recording of single calls.
#[test]
fn they_are_as_many_as_where_they_are_recorded() {
    for (suite, gpu) in each_release(1) {
        let scenario = Scenario::new(suite, gpu, &["mixed", "-n", "2", "--dispatches", "6"]);
        let mut recorded = recorded(&scenario);
        let run = counted(scenario);
        let rows = stats(&run);
        let mut counted: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        counted.extend(
            seen(&rows, "hsa")
                .into_iter()
                .map(|(name, counts)| (name.to_owned(), counts)),
        );
        // How often a program reads a signal depends on the GPU's speed.
        let polls = ["signal_wait", "signal_load", "load_read_index"];
        let fixed = |function: &str| !polls.iter().any(|poll| function.contains(poll));
        recorded.retain(|function, _| fixed(function));
        counted.retain(|function, _| fixed(function));
        assert_eq!(counted, recorded, "{suite}");
    }
}

/// HIP queries attributes of symbols that do not exist.
#[test]
fn errors_are_counted() {
    let scenario = Scenario::hip("sid", "gfx942", &["launches", "-n", "1"]);
    let function = "hsa_executable_symbol_get_info";
    let recorded = recorded(&scenario)[function];
    let run = counted(scenario);
    let (calls, failed) = seen(&stats(&run), "hsa")[function];
    assert_eq!((calls, failed), recorded);
    assert!(0 < failed && failed < calls, "{failed} of {calls}");
}

#[test]
fn threads_count_together() {
    for suite in ["trixie", "experimental"] {
        let run = counted(Scenario::hip(
            suite,
            "gfx1100",
            &["streams", "--streams", "4", "-n", "200"],
        ));
        assert_as_logged(&stats(&run), log(&run));
        assert_eq!(seen(&stats(&run), "hip")["hipModuleLaunchKernel"].0, 801, "{suite}");
    }
}

/// Runs two processes at once, each on its own simulated GPU.
#[test]
fn processes_count_apart() {
    let (dir, other) = (folder(), folder());
    let words = |n, dir: &Path| {
        let scenario = Scenario::hip("trixie", "gfx942", &["launches", "-n", n]);
        let words = scenario.simulated(dir);
        words.join(OsStr::new(" ")).into_string().expect("plain paths")
    };
    let script = format!("{} & {}; wait", words("2", dir.path()), words("5", other.path()));
    let output = Command::new(place::programs().join("tracer"))
        .args(["record", "--api", "stats", "-o"])
        .arg(dir.path().join("t.trace"))
        .args(["--", "/bin/sh", "-c", &script])
        .output()
        .expect("tracer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = Run::read(dir, output);
    assert_consistent(&run);
    let theirs = Log::read(&other.path().join("log.jsonl"));
    for log in [log(&run), &theirs] {
        // The first thread makes all calls.
        let pid = log.calls[0].tid;
        let own: Vec<&ApiStats> = stats(&run).into_iter().filter(|row| row.pid == Some(pid)).collect();
        assert_as_logged(&own, log);
    }
    assert_ne!(log(&run).calls[0].tid, theirs.calls[0].tid);
}
