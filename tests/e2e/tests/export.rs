//! Exports of one recording agree with each other in every number, and with what the device saw.

mod chrome;
mod database;
mod found;
mod perfetto;
mod rows;
#[path = "../../../tracer-export/src/tests/wire.rs"]
mod wire;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use tracer_core::tables::Table;
use tracer_core::words::Named;
use tracer_e2e::{
    compare, place,
    scenario::{Run, Scenario, folder},
};

use found::{Copied, Dispatched, Found};

/// Runs `tracer export`.
fn export(run: &Run, format: &str, output: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(place::programs().join("tracer"));
    command
        .arg("export")
        .arg(run.trace.dir())
        .args(["--format", format, "-o"]);
    command.arg(output).args(more).output().expect("tracer runs")
}

/// Runs `tracer export`, which must succeed.
fn exported(run: &Run, format: &str, output: &Path, more: &[&str]) -> String {
    let output = export(run, format, output, more);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

/// Returns what the trace has, by the rows that the comparison has checked.
fn expected(run: &Run) -> Found {
    let times: BTreeMap<_, _> = run
        .gpu_times()
        .filter_map(|time| Some(((time.queue, time.index), (time.start_ns?, time.end_ns?))))
        .collect();
    let dispatches = run.dispatches().map(|row| {
        let dispatched = Dispatched {
            kernel: row.kernel.as_deref().unwrap_or_default().to_owned(),
            path: row.path.name().to_owned(),
            grid: row.grid,
            workgroup: row.workgroup.map(u32::from),
            time_ns: row.time_ns,
            gpu: times.get(&(row.queue, row.index)).copied(),
        };
        ((row.queue, row.index), dispatched)
    });
    let copies = run.copies().map(|row| Copied {
        time_ns: row.time_ns,
        by_kernel: row.is_kernel(),
        bytes: row.bytes,
        direction: row.direction.map(|direction| direction.name().to_owned()),
    });
    let mut found = Found {
        dispatches: dispatches.collect(),
        copies: copies.collect(),
        ..Found::default()
    };
    for call in run.api_calls() {
        *found.calls.entry(call.function.clone().into_owned()).or_default() += 1;
    }
    found.sorted()
}

/// Checks the dispatches and bytes against the packets and commands that the device took.
fn equals_the_device(run: &Run, found: &Found) {
    let mut dispatches = 0;
    let mut timed = 0;
    for row in run.queues().filter(|row| row.is_aql()) {
        let queue = run.truth_of(row);
        for packet in queue.packets.iter().filter(|packet| packet.is_dispatch()) {
            let of = &found.dispatches[&(row.queue, packet.index)];
            assert_eq!((of.grid, of.workgroup), (packet.grid, packet.workgroup.map(u32::from)));
            if let Some(name) = &packet.kernel {
                assert!(
                    of.kernel == *name || of.kernel.starts_with(name.trim_end_matches(".kd")),
                    "{of:?} {name}"
                );
            }
            assert_eq!(of.path, "doorbell");
            dispatches += 1;
            timed += usize::from(of.gpu.is_some());
            // Only the device knows times of dispatches that it wrote to a signal.
            assert!(of.gpu.is_none() || queue.times.contains_key(&packet.index), "{of:?}");
        }
    }
    assert_eq!(found.dispatches.len(), dispatches);
    assert_eq!(found.dispatches.values().filter(|of| of.gpu.is_some()).count(), timed);
    let by_engine = found.copies.iter().filter(|copy| !copy.by_kernel);
    assert_eq!(by_engine.filter_map(|copy| copy.bytes).sum::<u64>(), run.truth.copied());
}

/// Exports to every format, and returns what each one has.
fn all(run: &Run, folder: &Path) -> [(&'static str, Found); 5] {
    let file = |format: &str| folder.join(format);
    for format in ["jsonl", "csv", "chrome", "perfetto", "rocpd"] {
        let said = exported(run, format, &file(format), &[]);
        let sign = run.trace.manifest().simulated.as_deref().expect("a simulated GPU");
        assert!(said.contains(sign) && said.contains("wrote "), "{said}");
    }
    [
        ("jsonl", rows::jsonl(&file("jsonl"))),
        ("csv", rows::csv(&file("csv"))),
        ("chrome", chrome::read(&file("chrome"))),
        ("perfetto", perfetto::read(&file("perfetto"))),
        ("rocpd", database::read(&file("rocpd"))),
    ]
}

#[test]
fn every_format_has_the_numbers_of_the_device() {
    let mut mixed = Scenario::hip("sid", "gfx942", &["mixed"]);
    mixed.api = "all";
    let mut graph = Scenario::hip("experimental", "gfx1100", &["streams", "--streams", "3", "-n", "20"]);
    graph.api = "all";
    // Each dispatch has a time of the GPU.
    let mut timed = Scenario::new("trixie", "gfx942", &["compute-only", "-n", "40", "--profile"]);
    timed.api = "all";
    compare::each([mixed, graph, timed], |run, _| {
        let folder = folder();
        let expected = expected(run);
        assert!(!expected.dispatches.is_empty() && !expected.calls.is_empty());
        let gpu = &run.trace.manifest().devices[0];
        let product = (gpu.name == "gfx942").then_some("AMD Instinct MI300X");
        assert_eq!(gpu.product.as_deref(), product, "gfx1100 is several products");
        for (format, found) in all(run, folder.path()) {
            assert_eq!(found, expected, "{format}");
        }
        equals_the_device(run, &expected);
    });
}

/// What the command does with its output, and with a window.
#[test]
fn an_export_is_whole_or_not_there() {
    let mut scenario = Scenario::hip("sid", "gfx1100", &["mixed"]);
    scenario.api = "hip";
    let run = scenario.record();
    let folder = folder();
    let at = |name: &str| folder.path().join(name);

    // Standard output has the same text as a file; a file that exists is replaced.
    fs::write(at("rows"), "something else").expect("a file");
    for format in ["jsonl", "chrome"] {
        exported(&run, format, &at("rows"), &[]);
        let output = export(&run, format, Path::new("-"), &[]);
        assert!(output.status.success());
        assert_eq!(output.stdout, fs::read(at("rows")).expect("the file"), "{format}");
    }
    for format in ["perfetto", "rocpd", "csv"] {
        let output = export(&run, format, Path::new("-"), &[]);
        assert!(!output.status.success() && output.stdout.is_empty());
    }

    // A link is not followed, and nothing is left of an export that failed.
    symlink(at("elsewhere"), at("link")).expect("a link");
    for format in ["jsonl", "rocpd", "csv"] {
        let output = export(&run, format, &at("link"), &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("cannot write the export"),
            "{said}"
        );
    }
    fs::create_dir(at("notes")).expect("a folder");
    fs::write(at("notes/todo.txt"), "").expect("a file");
    let output = export(&run, "csv", &at("notes"), &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("todo.txt"));
    let left = |path: &Path| -> Vec<String> {
        let entries = fs::read_dir(path).expect("the folder");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("its entries").file_name()).collect();
        names.sort();
        names
            .into_iter()
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    };
    assert_eq!(left(folder.path()), ["link", "notes", "rows"]);
    assert_eq!(left(&at("notes")), ["todo.txt"]);

    // A second export into a folder leaves no file of the first one.
    exported(&run, "csv", &at("csv"), &[]);
    assert!(at("csv/doorbells.csv").exists());
    exported(&run, "csv", &at("csv"), &["--from", "10h"]);
    assert_eq!(left(&at("csv")), ["manifest.json"]);

    window(&run, folder.path());
}

/// A window has the rows that `tracer log` prints for it, and every format agrees on it.
fn window(run: &Run, folder: &Path) {
    let zero = run.trace.manifest().started.monotonic_ns;
    let mut times: Vec<u64> = run.dispatches().map(|row| row.time_ns).collect();
    times.sort_unstable();
    times.dedup();
    let ms = |ns: u64| format!("{}ms", (ns - zero) as f64 / 1e6);
    let (from, to) = (ms(times[1] - 500), ms(times[times.len() - 1] - 500));
    let window = ["--from", &from, "--to", &to];
    let tables: Vec<&str> = Table::ALL.into_iter().map(Table::name).collect();
    let mut log = Command::new(place::programs().join("tracer"));
    log.arg("log")
        .arg(run.trace.dir())
        .args(["--format", "jsonl", "--table", &tables.join(",")]);
    let log = log.args(window).output().expect("tracer runs").stdout;
    exported(run, "jsonl", &folder.join("window"), &window);
    let rows = fs::read(folder.join("window")).expect("the file");
    let first = rows.iter().position(|&byte| byte == b'\n').expect("the first line");
    assert_eq!(rows[first + 1..], log);
    let expected = rows::jsonl(&folder.join("window"));
    assert!(!expected.dispatches.is_empty() && expected.dispatches.len() < run.dispatches().count());
    for format in ["chrome", "perfetto", "rocpd"] {
        let file = folder.join(format!("window-{format}"));
        exported(run, format, &file, &window);
        let found = match format {
            "chrome" => chrome::read(&file),
            "perfetto" => perfetto::read(&file),
            _ => database::read(&file),
        };
        assert_eq!(found, expected, "{format}");
        // Queues were created before the window, and have their names all the same.
        let bytes = fs::read(&file).expect("the file");
        let kind = b"compute-aql";
        assert!(bytes.windows(kind.len()).any(|at| at == kind), "{format}");
    }
    let output = export(run, "jsonl", &folder.join("empty"), &["--from", &to, "--to", &from]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--to must be later"));
    assert!(!folder.join("empty").exists());
}
