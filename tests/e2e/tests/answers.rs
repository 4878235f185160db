//! The answers of `report` and `path` equal the truth log, the program's own log, and each other.

mod launches;

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};
use tracer_core::tables::{Dispatch, Fact, Record, Table};
use tracer_e2e::{
    compare, place,
    scenario::{Run, Scenario, each_release},
    truth::Packet,
};

/// Dispatches of one kernel, as the device saw them: count, lowest and highest LDS, smallest and largest grid.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    count: u64,
    lds: Vec<u64>,
    grid: Vec<[u32; 3]>,
}

fn packet<'a>(run: &'a Run, dispatch: &Dispatch) -> &'a Packet {
    let row = run
        .queues()
        .find(|queue| queue.queue == dispatch.queue)
        .expect("its queue");
    let is_it = |queue: &&tracer_e2e::truth::Queue| (queue.ring_base, queue.wptr) == (row.ring_base, row.write_pointer);
    let queue = run.truth.queues.iter().find(is_it).expect("its queue in the truth log");
    let mut packets = queue.packets.iter();
    packets
        .find(|packet| packet.index == dispatch.index)
        .expect("its packet")
}

/// Returns bytes 28 to 31 of a dispatch packet (HSA Platform System Architecture Specification, table 2-8).
fn group_segment(packet: &Packet) -> u64 {
    let byte = |at: usize| u64::from_str_radix(&packet.bytes[2 * at..2 * at + 2], 16).expect("hexadecimal");
    (28..32).rev().fold(0, |value, at| value << 8 | byte(at))
}

/// Checks each row of the kernels against the packets that the device took.
fn kernels_equal_the_device(run: &Run) {
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    for dispatch in run.dispatches() {
        let packet = packet(run, dispatch);
        // The comparison has checked the names.
        let key = match &dispatch.kernel {
            Some(name) => json!(&**name),
            None => json!(packet.kernel_object),
        };
        let of = seen.entry(key.to_string()).or_default();
        of.count += 1;
        of.lds.push(group_segment(packet));
        of.grid.push(packet.grid);
    }
    let rows = run.report["answers"]["kernels"].as_array().expect("kernels");
    assert_eq!(rows.len(), seen.len(), "{rows:?}");
    for row in rows {
        let key = if row["name"].is_null() {
            &row["kernel_object"]
        } else {
            &row["name"]
        };
        let Seen {
            count,
            mut lds,
            mut grid,
        } = seen.remove(&key.to_string()).unwrap_or_else(|| panic!("{row}"));
        lds.sort_unstable();
        grid.sort_by_key(|size| size.iter().map(|&n| u64::from(n)).product::<u64>());
        assert_eq!(row["count"], count, "{row}");
        assert_eq!(row["by_path"]["doorbell"], count, "{row}");
        assert_eq!(
            row["lds_bytes"],
            json!({"min": lds[0], "max": lds[lds.len() - 1]}),
            "{row}"
        );
        let (least, most) = (&row["grid"]["min"], &row["grid"]["max"]);
        let size = |value: &Value| -> u64 {
            let sizes = value.as_array().expect("three sizes").iter();
            sizes.map(|n| n.as_u64().expect("a size")).product()
        };
        let product = |size: [u32; 3]| size.into_iter().map(u64::from).product::<u64>();
        assert_eq!(
            (size(least), size(most)),
            (product(grid[0]), product(grid[grid.len() - 1])),
            "{row}"
        );
    }
}

/// Own times add up to the time in outermost calls and ioctls, each time counted once.
fn layers_add_up(run: &Run) {
    let layers = run.report["answers"]["layers"].as_array().expect("layers");
    let own: u64 = layers
        .iter()
        .map(|layer| layer["own_ns"].as_u64().expect("a time"))
        .sum();
    let calls: Vec<_> = run.api_calls().collect();
    let took = |enter: u64, exit: Option<u64>| exit.map_or(0, |exit| exit - enter);
    let outermost = calls.iter().filter(|call| call.parent.is_none());
    let in_calls: u64 = outermost.map(|call| took(call.enter_ns, call.exit_ns)).sum();
    let is_inside = |ioctl: &tracer_core::tables::Ioctl| {
        let mut of_thread = calls
            .iter()
            .filter(|call| (call.pid, call.tid) == (ioctl.pid, ioctl.tid));
        of_thread.any(|call| call.enter_ns <= ioctl.enter_ns && call.exit_ns.is_some_and(|exit| ioctl.enter_ns < exit))
    };
    let alone: u64 = run
        .facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Ioctl(ioctl) if !is_inside(ioctl) => ioctl.duration_ns(),
            _ => None,
        })
        .sum();
    assert_eq!(own, in_calls + alone);
    let counted: u64 = layers
        .iter()
        .map(|layer| layer["calls"].as_u64().expect("a count"))
        .sum();
    let ioctls = run.report["ioctls"]["total"].as_u64().expect("ioctls");
    assert_eq!(counted, calls.len() as u64 + ioctls);
}

fn path(run: &Run, place: &[&str]) -> Value {
    let mut command = Command::new(place::programs().join("tracer"));
    let output = command
        .args(["path", "--format", "json"])
        .arg(run.trace.dir())
        .args(place)
        .output()
        .expect("tracer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Checks each step of each dispatch.
fn paths_equal_the_device(run: &Run) {
    for dispatch in run.dispatches() {
        let packet = packet(run, dispatch);
        let found = path(run, &[&format!("{}:{}", dispatch.queue, dispatch.index)]);
        let row = &found["packet"];
        assert_eq!(
            (&row["kernel_object"], &row["kernarg"], &row["completion_signal"]),
            (
                &packet.kernel_object.into(),
                &packet.kernarg_address.into(),
                &packet.completion_signal.into()
            ),
            "{found:#}"
        );
        let doorbell = &found["doorbell"];
        let (value, published) = (doorbell["value"].as_u64(), doorbell["published"].as_u64());
        let (value, published) = (value.expect("a value"), published.expect("a number"));
        assert!((value + 1 - published..=value).contains(&packet.index), "{found:#}");
        // The device took it in this order, so no sample can say otherwise.
        let taken = found["taken"]["read_index"].as_u64();
        assert!(taken.is_none_or(|index| index > packet.index), "{found:#}");
        let not_taken = found["not_taken"]["read_index"].as_u64();
        assert!(not_taken.is_none_or(|index| index <= packet.index), "{found:#}");
        let innermost = found["calls"].as_array().and_then(|calls| calls.last());
        assert_eq!(
            innermost.map(|call| &call["call"]),
            dispatch.api_call.map(Value::from).as_ref()
        );
    }
}

#[test]
fn answers_equal_what_the_device_saw() {
    for (suite, asic) in each_release(1) {
        let mut scenario = Scenario::hip(suite, asic, &["mixed"]);
        scenario.api = "all";
        let run = scenario.record();
        compare::all(&run);
        kernels_equal_the_device(&run);
        layers_add_up(&run);
        paths_equal_the_device(&run);
        launches::equal_the_device(&run);
        launches::time_in_flight_holds_what_the_device_took(&run);
        log_equals_the_trace(&run);
        parts_add_up(&run);
        let named = path(&run, &["--kernel", "saxpy"]);
        let saxpy = run
            .dispatches()
            .find(|d| d.kernel.as_deref() == Some("saxpy"))
            .expect("saxpy");
        assert_eq!(
            (&named["queue"], &named["index"]),
            (&saxpy.queue.into(), &saxpy.index.into())
        );
        println!(
            "{suite}: {}",
            String::from_utf8_lossy(&text(&run, &["path", "--kernel", "saxpy"]))
        );
        println!("{}", String::from_utf8_lossy(&text(&run, &["report"])));
    }
}

/// Checks that each line is a row of the trace, with the value of each column.
fn log_equals_the_trace(run: &Run) {
    let tables: Vec<&str> = Table::ALL.into_iter().map(Table::name).collect();
    let lines = text(run, &["log", "--format", "jsonl", "--table", &tables.join(",")]);
    let mut lines = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    for fact in &run.facts {
        let line: Value = serde_json::from_slice(lines.next().expect("a line")).expect("JSON");
        let mut expected = serde_json::to_value(Record::of(fact)).expect("JSON");
        expected["table"] = Table::of(fact).name().into();
        assert_eq!(line, expected);
    }
    assert_eq!(lines.next(), None);
    // Filters leave exactly the rows that they name.
    let count = |words: &[&str]| text(run, words).split(|&byte| byte == b'\n').count() as u64 - 1;
    let doorbells = run.report["doorbells"]["total"].as_u64();
    assert_eq!(Some(count(&["log", "--table", "doorbells"])), doorbells);
    let of_queue = run.queues().map(|row| {
        let queue = row.queue.to_string();
        count(&["log", "--table", "dispatches,packets", "--queue", &queue])
    });
    let packets = run.report["packets"]["total"].as_u64().expect("packets");
    let dispatches = run.dispatches().count() as u64;
    assert_eq!(of_queue.sum::<u64>(), dispatches + packets);
    assert_eq!(count(&["log", "--kernel", "saxpy"]), 1);
    assert_eq!(count(&["log", "--from", "1h"]), 0);
}

/// Returns the counts of a part of the recording: by kernel (the object, where it has no name), and by function.
fn part(run: &Run, options: &[&str]) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let report = text(run, &[&["report", "--format", "json"], options].concat());
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["part"].is_null(), options.is_empty());
    // Only the answers are of the part.
    assert_eq!(report["dispatches"], run.report["dispatches"]);
    let count = |row: &Value, column: &str| row[column].as_u64().expect("a count");
    let rows = |table: &str| report["answers"][table].as_array().expect("rows").clone();
    let kernels = rows("kernels").into_iter().map(|row| {
        let key = if row["name"].is_null() {
            &row["kernel_object"]
        } else {
            &row["name"]
        };
        (key.to_string(), count(&row, "count"))
    });
    let functions = rows("functions")
        .into_iter()
        .map(|row| (row["function"].to_string(), count(&row, "calls")));
    (kernels.collect(), functions.collect())
}

/// Parts of the recording add up to the whole, and have only what they name.
fn parts_add_up(run: &Run) {
    let (kernels, functions) = part(run, &[]);
    assert!(kernels.len() > 3 && functions.len() > 10, "{kernels:?}, {functions:?}");
    let mut times: Vec<u64> = run.dispatches().map(|dispatch| dispatch.time_ns).collect();
    times.sort_unstable();
    let zero = run.trace.manifest().started.monotonic_ns;
    let middle = format!("{}ns", times[times.len() / 2] - zero);
    let (mut before, mut calls_before) = part(run, &["--to", &middle]);
    let (after, calls_after) = part(run, &["--from", &middle]);
    let in_first = times.iter().filter(|&&time| time < times[times.len() / 2]).count() as u64;
    assert_eq!(before.values().sum::<u64>(), in_first);
    after
        .into_iter()
        .for_each(|(kernel, count)| *before.entry(kernel).or_default() += count);
    assert_eq!(before, kernels);
    for (function, count) in calls_after {
        *calls_before.entry(function).or_default() += count;
    }
    // Calls that were only counted have no times, and are in no part.
    let recorded = run.api_calls().count() as u64;
    assert_eq!(calls_before.values().sum::<u64>(), recorded);
    let (saxpy, _) = part(run, &["--kernel", "^sax.y$"]);
    assert_eq!(saxpy, BTreeMap::from([("\"saxpy\"".to_owned(), kernels["\"saxpy\""])]));
    let pid = run.dispatches().next().expect("a dispatch").pid.to_string();
    assert_eq!(part(run, &["--pid", &pid]).0, kernels);
    assert_eq!(part(run, &["--pid", "1"]), (BTreeMap::new(), BTreeMap::new()));
}

fn text(run: &Run, words: &[&str]) -> Vec<u8> {
    let mut command = Command::new(place::programs().join("tracer"));
    let (command_name, options) = words.split_first().expect("a command");
    command.arg(command_name).arg(run.trace.dir()).args(options);
    let output = command.env_remove("COLUMNS").output().expect("tracer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// `record --log` prints each event as `log` prints it from the trace, in the order in which the recorder concludes it.
#[test]
fn a_live_log_has_the_lines_of_the_trace() {
    const TABLES: [&str; 5] = ["doorbells", "dispatches", "packets", "ioctls", "api_calls"];
    let mut scenario = Scenario::hip("sid", "gfx1100", &["mixed"]);
    scenario.api = "all";
    scenario.prints_events = true;
    let run = scenario.record();
    let is_event = |line: &&str| {
        let table = line.split_ascii_whitespace().nth(3);
        table.is_some_and(|table| TABLES.contains(&table))
    };
    let sorted = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        let mut lines: Vec<String> = text.lines().filter(is_event).map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let live = sorted(&run.output.stderr);
    let recorded = sorted(&text(&run, &["log", "--table", &TABLES.join(",")]));
    assert!(live.len() > 100, "{live:?}");
    assert_eq!(live, recorded);
}

/// Each line fits 80 columns, except for words that are longer than a line.
#[test]
fn reports_fit_80_columns() {
    let mut scenario = Scenario::hip("sid", "gfx942", &["streams", "--streams", "3", "-n", "20"]);
    scenario.api = "all";
    let run = scenario.record();
    for words in [
        &["report"][..],
        &["report", "--all"],
        &["report", "--by", "api", "--all"],
        &["report", "--by", "dispatch", "--all"],
        &["report", "--by", "queue", "--all"],
        &["path", "0:0"],
    ] {
        let text = text(&run, words);
        let text = String::from_utf8_lossy(&text);
        assert!(text.lines().count() > 3, "{words:?}: {text}");
        let sign = run.trace.manifest().simulated.as_deref().expect("a simulated GPU");
        assert!(text.contains(sign), "{words:?}: {text}");
        let is_too_long = |line: &&str| line.chars().count() > 80 && line.trim_start().contains(' ');
        let long: Vec<_> = text.lines().filter(is_too_long).collect();
        assert_eq!(long, Vec::<&str>::new(), "{words:?}");
    }
}
