//! The report as a page, in a real browser: its numbers are those of the report in JSON, and of the device.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::Value;
use tracer_core::{
    sample,
    tables::{Dispatch, Fact, Loss, RingJob},
};
use tracer_e2e::{
    browser::{Picture, Seen, open_page},
    compare, place,
    scenario::{Run, Scenario, folder},
    terminal::Terminal,
};
use tracer_store::{
    Manifest, TraceWriter,
    manifest::{ClockSnapshot, Host, Target, Tool},
};

use crate::page::between;

/// A name that would run a script if it became an element.
const HOSTILE: &str = "</script><img src=\"http://127.0.0.1:1/x\" onerror=\"document.title='owned'\"><script>document.title='owned'</script>";

/// Runs `tracer report --format html`.
fn report(trace: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(place::programs().join("tracer"));
    command
        .arg("report")
        .arg(trace)
        .args(["--format", "html"])
        .args(options);
    command.output().expect("tracer runs")
}

/// Writes a page, which must succeed, and returns its file.
fn written(trace: &Path, folder: &Path, options: &[&str]) -> PathBuf {
    let file = folder.join("report.html");
    let path = file.to_str().expect("a path");
    let output = report(trace, &[&["-o", path], options].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("wrote "), "{said}");
    assert!(output.stdout.is_empty());
    file
}

/// Opens a page from its file. It must not complain, and must ask for nothing but itself.
fn opened(folder: &Path, file: &Path, picture: Option<Picture<'_>>) -> Seen {
    let url = format!("file://{}", file.display());
    let seen = open_page(folder, &url, 1, picture);
    assert!(seen.console.is_empty(), "{:#?}", seen.console);
    // Reading the file is no request. The harness would notice others (a test of it does that).
    assert_eq!(seen.requests, Vec::<String>::new());
    seen
}

/// Returns the text of a section of the page.
fn section<'a>(seen: &'a Seen, id: &str) -> &'a str {
    let sections = between(&seen.document, &format!("<section id=\"{id}\""), "</section>");
    assert_eq!(sections.len(), 1, "{id}");
    sections[0]
}

/// Returns an attribute, wherever it is.
fn attributes<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    between(text, &format!(" {name}=\""), "\"")
}

/// Returns the sum of the values of an attribute such as `12:5 13:7`.
fn sum(text: &str, name: &str) -> u64 {
    let lists = attributes(text, name).into_iter();
    let values = lists.flat_map(|list| list.split(' ').map(|one| one.split_once(':').expect("bin and value").1));
    values.map(|value| value.parse::<u64>().expect("a number")).sum()
}

/// Returns the cells of each row below the heads of a text's tables, as text.
fn cells(text: &str) -> Vec<Vec<String>> {
    let bodies = between(text, "<tbody>", "</tbody>").into_iter();
    let rows = bodies.flat_map(|body| between(body, "<tr", "</tr>"));
    rows.map(|row| {
        let cells = between(row, "<td", "</td>").into_iter();
        cells
            .map(|cell| plain(cell.split_once('>').expect("a cell").1))
            .collect()
    })
    .collect()
}

/// Returns text without its elements, and without escapes.
fn plain(text: &str) -> String {
    let parts = text.split('<').enumerate();
    let parts = parts.map(|(at, part)| match at {
        0 => part,
        _ => part.split_once('>').expect("an element ends").1,
    });
    let text: String = parts.collect();
    let escapes = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    escapes.iter().fold(text, |text, (from, to)| text.replace(from, to))
}

/// Returns a number of the report in JSON.
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Returns the rows of the report's answers.
fn rows<'a>(run: &'a Run, table: &str) -> &'a [Value] {
    run.report["answers"][table].as_array().expect("rows")
}

#[test]
fn the_numbers_of_the_page_are_those_of_the_report_and_the_device() {
    let mut mixed = Scenario::hip("trixie", "gfx1100", &["mixed"]);
    mixed.api = "all";
    let mut timed = Scenario::new("sid", "gfx942", &["compute-only", "-n", "40", "--profile"]);
    timed.api = "all";
    compare::each([mixed, timed], |run, _| {
        let folder = folder();
        let file = written(run.trace.dir(), folder.path(), &["--top", "3"]);
        let seen = opened(folder.path(), &file, None);
        let sign = run.trace.manifest().simulated.as_deref().expect("a simulated GPU");
        let banner = between(&seen.document, "<p id=\"simulated\" role=\"note\">", "</p>");
        assert_eq!(
            plain(banner[0]),
            format!("SIMULATED GPU {sign}: no number here is from a real GPU.")
        );
        lanes(run, section(&seen, "timeline"));
        paths(run, section(&seen, "paths"));
        latencies(run, section(&seen, "latency"));
        depths(run, section(&seen, "depth"));
        tables(run, &seen);
    });
}

/// The bins of all lanes have every submission.
fn lanes(run: &Run, timeline: &str) {
    assert_eq!(sum(timeline, "data-dispatches"), run.truth.dispatches());
    let report = &run.report;
    for (attribute, total) in [
        ("data-dispatches", &report["dispatches"]["total"]),
        ("data-doorbells", &report["doorbells"]["total"]),
        ("data-packets", &report["packets"]["total"]),
        ("data-copies", &report["copies"]["total"]),
    ] {
        assert_eq!(sum(timeline, attribute), number(total), "{attribute}");
    }
    let busy: Vec<_> = run.gpu_times().filter(|time| time.start_ns.is_some()).collect();
    assert_eq!(sum(timeline, "data-busy") > 0, !busy.is_empty());
    // On a simulator, kernels of a queue run one after the other.
    let length = |time: &&tracer_core::tables::GpuTime| time.end_ns.unwrap_or(0) - time.start_ns.unwrap_or(0);
    assert!(sum(timeline, "data-busy") <= busy.iter().map(length).sum());
    // Rings are not watched: no lane stands for them, and the page says so.
    assert_eq!(sum(timeline, "data-jobs"), 0);
    assert!(timeline.contains("Jobs on rings of the kernel driver: not watched."));
}

fn paths(run: &Run, paths: &str) {
    let total = number(&run.report["dispatches"]["total"]).to_string();
    let kernels = between(paths, "<table id=\"share-kernels\"", "</table>");
    let found: Vec<[String; 3]> = cells(kernels[0])
        .into_iter()
        .map(|row| [row[0].clone(), row[1].clone(), row[3].clone()])
        .collect();
    let expected = [
        ["doorbell", &total, ""],
        ["ring", "?", "not watched"],
        ["thunk", "0", ""],
        ["unseen", "0", ""],
    ];
    assert_eq!(found, expected);
    let copies = between(paths, "<table id=\"share-copies\"", "</table>").into_iter();
    let copies = copies.flat_map(cells);
    let counts: u64 = copies.map(|row| row[1].parse::<u64>().expect("a number")).sum();
    assert_eq!(counts, run.copies().count() as u64);
}

fn latencies(run: &Run, latency: &str) {
    let drawn = |id: &str| {
        let all = between(latency, "<svg class=\"histogram\"", "</svg>");
        let found = all
            .into_iter()
            .find(|svg| svg.contains(&format!("data-latency=\"{id}\"")));
        let svg = found.unwrap_or_else(|| panic!("{id}: {latency}"));
        let attribute = |name: &str| attributes(svg, name)[0].parse::<u64>().expect("a number");
        let [known, p50, p99] = ["data-known", "data-p50", "data-p99"].map(attribute);
        assert_eq!(sum(svg, "data-bars"), known);
        (known, p50, p99)
    };
    let stats = &run.report["doorbells"]["reserve_to_doorbell_ns"];
    let reserved = run
        .doorbells()
        .filter(|row| row.reserve_to_doorbell_ns.is_some())
        .count() as u64;
    let expected = (reserved, number(&stats["p50"]), number(&stats["p99"]));
    assert_eq!(drawn("reserve"), expected);
    // Each dispatch whose kernel has launch times in the report is in a call, and conversely.
    let in_calls = run.dispatches().filter(|row| row.api_call.is_some()).count() as u64;
    if in_calls > 0 {
        let (known, p50, _) = drawn("launch");
        assert_eq!(known, in_calls);
        let stats = rows(run, "kernels")
            .iter()
            .map(|kernel| &kernel["launch_ns"])
            .filter(|ns| !ns.is_null());
        let (least, most) = stats.fold((u64::MAX, 0), |(least, most), ns| {
            (least.min(number(&ns["min"])), most.max(number(&ns["max"])))
        });
        assert!((least..=most).contains(&p50), "{p50} in {least}..={most}");
    } else {
        assert!(
            latency.contains("Unknown: no doorbell was in a recorded call."),
            "{latency}"
        );
    }
}

/// The highest depth at a moment is that of a doorbell: a sample can only find fewer packets.
fn depths(run: &Run, depth: &str) {
    let queues = attributes(depth, "data-queue").into_iter();
    let maxima = attributes(depth, "data-max").into_iter();
    let found: BTreeMap<String, String> = queues.map(str::to_owned).zip(maxima.map(str::to_owned)).collect();
    let used = run.queues().filter(|row| row.is_aql() && row.doorbells > 0);
    let expected: BTreeMap<String, String> = used
        .map(|row| (row.queue.to_string(), row.max_depth.to_string()))
        .collect();
    assert_eq!(found, expected);
    for list in attributes(depth, "data-depth") {
        for band in list.split(' ').map(|one| one.split_once(':').expect("bin and band").1) {
            let (low, high) = band.split_once('-').expect("two depths");
            assert!(
                low.parse::<u64>().expect("a depth") <= high.parse::<u64>().expect("a depth"),
                "{list}"
            );
        }
    }
}

/// Tables have all rows, those behind `more`, too.
fn tables(run: &Run, seen: &Seen) {
    let kernels: Vec<[String; 2]> = rows(run, "kernels")
        .iter()
        .map(|row| {
            let name = match row["name"].as_str() {
                Some(name) => name.to_owned(),
                None => format!("{:#x}", number(&row["kernel_object"])),
            };
            [name, row["count"].to_string()]
        })
        .collect();
    let found: Vec<[String; 2]> = cells(section(seen, "kernels"))
        .into_iter()
        .map(|row| [row[0].clone(), row[1].clone()])
        .collect();
    assert_eq!(found, kernels);
    let functions = cells(section(seen, "api"));
    assert_eq!(functions.len(), rows(run, "functions").len());
    assert_eq!(section(seen, "api").contains("<details>"), functions.len() > 3);
    let layers = section(seen, "layers");
    let own = attributes(layers, "data-own").into_iter();
    let own: Vec<u64> = own.map(|ns| ns.parse().expect("a time")).collect();
    let expected: Vec<u64> = rows(run, "layers")
        .iter()
        .map(|layer| number(&layer["own_ns"]))
        .collect();
    assert_eq!(own, expected);
    let queues: u64 = cells(section(seen, "queues")).len() as u64;
    assert_eq!(queues, run.queues().count() as u64);
    let ioctls = cells(section(seen, "ioctls")).into_iter();
    let ioctls: u64 = ioctls.map(|row| row[1].parse::<u64>().expect("a count")).sum();
    assert_eq!(ioctls, number(&run.report["ioctls"]["total"]));
}

/// What the command does with its output, and with a part of the recording.
#[test]
fn a_page_is_a_file_and_can_be_of_a_part() {
    let mut scenario = Scenario::hip("sid", "gfx1100", &["mixed"]);
    scenario.api = "hip";
    let run = scenario.record();
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("report.html"), "something else").expect("a file");
    let file = written(run.trace.dir(), folder.path(), &[]);
    let whole = fs::read(&file).expect("the page");
    let mode = fs::metadata(&file).expect("the page").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A pipe gets the same page.
    assert_eq!(report(run.trace.dir(), &[]).stdout, whole);
    assert_eq!(report(run.trace.dir(), &["-o", "-"]).stdout, whole);
    // A link is not followed.
    symlink(at("elsewhere"), at("link")).expect("a link");
    let output = report(run.trace.dir(), &["-o", at("link").to_str().expect("a path")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("cannot write the report"),
        "{said}"
    );
    assert!(!at("elsewhere").exists());
    let output = report(run.trace.dir(), &["--by", "queue"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("leave out --by"));
    // A terminal does not get a page.
    let mut command = Command::new(place::programs().join("tracer"));
    command.arg("report").arg(run.trace.dir()).args(["--format", "html"]);
    let mut terminal = Terminal::start(command);
    terminal.wait_for(|screen| screen.contains("name a file with -o report.html"));

    let file = written(run.trace.dir(), folder.path(), &["--kernel", "^saxpy$"]);
    let seen = opened(folder.path(), &file, None);
    assert_eq!(sum(section(&seen, "timeline"), "data-dispatches"), 1);
    assert_eq!(sum(section(&seen, "timeline"), "data-doorbells"), 0);
    let part = between(&seen.document, "<p id=\"part\" role=\"note\">", "</p>");
    assert!(plain(part[0]).contains("kernels that match ^saxpy$"), "{part:?}");
    assert!(!seen.document.contains("<section id=\"depth\"") && !seen.document.contains("<table id=\"share-copies\""));

    let mut times: Vec<u64> = run.dispatches().map(|row| row.time_ns).collect();
    times.sort_unstable();
    let zero = run.trace.manifest().started.monotonic_ns;
    let middle = format!("{}ns", times[times.len() / 2] - zero);
    let dispatches = |options: &[&str]| {
        let file = written(run.trace.dir(), folder.path(), options);
        let page = fs::read_to_string(file).expect("the page");
        sum(&page, "data-dispatches")
    };
    let (before, after) = (dispatches(&["--to", &middle]), dispatches(&["--from", &middle]));
    assert!(before > 0 && after > 0, "{before}, {after}");
    assert_eq!(before + after, times.len() as u64);
}

/// Names of a traced program become text, in a real browser, and rings and losses have lanes of their own.
#[test]
fn hostile_names_are_text_and_losses_are_drawn() {
    let folder = folder();
    let trace = folder.path().join("hostile.trace");
    let tool = Tool {
        name: HOSTILE.to_owned(),
        version: HOSTILE.to_owned(),
    };
    let host = Host {
        name: HOSTILE.to_owned(),
        ..Host::default()
    };
    let target = Target::Command {
        argv: vec![HOSTILE.to_owned()],
    };
    let mut manifest = Manifest::new(tool, host, target, ClockSnapshot::default());
    manifest.simulated = Some(HOSTILE.to_owned());
    manifest.capabilities = ["doorbells", "packets", "kernel_rings"].map(str::to_owned).to_vec();
    let mut writer = TraceWriter::create(&trace, manifest, false).expect("a trace");
    writer.push(&Fact::Dispatch(Dispatch {
        kernel: Some(Arc::from(HOSTILE)),
        ..sample::dispatch(0, 1_000_000)
    }));
    writer.push(&Fact::RingJob(RingJob {
        time_ns: 2_000_000,
        ring: Some(HOSTILE.to_owned()),
        class: HOSTILE.to_owned(),
        device: Some(HOSTILE.to_owned()),
        context: None,
        seqno: None,
        job_id: None,
        client_id: None,
        reason: Some(HOSTILE.to_owned()),
        pid: None,
        tid: None,
        traced: None,
        submit_ns: None,
        run_ns: Some(2_000_000),
        done_ns: Some(2_500_000),
        queued: None,
    }));
    writer.push(&Fact::Loss(Loss {
        time_ns: 3_000_000,
        source: HOSTILE.to_owned(),
        count: 9,
    }));
    writer.push(&Fact::Queue(tracer_core::tables::Queue {
        kind: HOSTILE.to_owned(),
        ..sample::queue(1)
    }));
    let ended = Some(ClockSnapshot {
        monotonic_ns: 4_000_000,
        ..ClockSnapshot::default()
    });
    let end = |manifest: &mut Manifest| {
        manifest.ended = ended;
        manifest.complete = true;
    };
    writer.finish(end).expect("the trace");
    let file = written(&trace, folder.path(), &[]);
    let seen = opened(folder.path(), &file, None);
    // Nothing of a name is an element, and no script but the page's own ran.
    let count = |element: &str| seen.document.matches(element).count();
    assert_eq!((count("<img"), count("<script"), count("</script")), (0, 1, 1));
    let title = between(&seen.document, "<title>", "</title>");
    assert_eq!(plain(title[0]), format!("{HOSTILE} - tracer"));
    let kernels = cells(section(&seen, "kernels"));
    assert_eq!((kernels[0][0].as_str(), kernels[0][1].as_str()), (HOSTILE, "1"));
    // 400 bins of 10,001 ns.
    let timeline = section(&seen, "timeline");
    assert_eq!(attributes(timeline, "data-width"), ["10001"]);
    assert_eq!(attributes(timeline, "data-dispatches"), ["99:1"]);
    assert_eq!(attributes(timeline, "data-jobs"), ["199:1"]);
    assert_eq!(sum(timeline, "data-busy"), 500_000);
    assert_eq!(attributes(timeline, "data-lost"), ["299:9"]);
    assert!(plain(timeline).contains("events lost9, when tracer noticed"));
    // Losses belong to each process, because nobody knows whose events they were.
    let file = written(&trace, folder.path(), &["--pid", "7"]);
    let page = fs::read_to_string(file).expect("the page");
    assert_eq!(
        (
            sum(&page, "data-dispatches"),
            sum(&page, "data-lost"),
            sum(&page, "data-jobs")
        ),
        (1, 9, 0)
    );
}

/// Checks the picture in docs/report-page.md. `UPDATE_DOCS=1` takes it again.
#[test]
fn the_picture_of_the_docs_is_there_and_small() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let picture = docs.join("report.png");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let folder = folder();
        let line = |hip: bool, name: &str, workload: &[&'static str]| {
            let scenario = Scenario {
                hip,
                ..Scenario::new("trixie", "gfx1100", workload)
            };
            let own = folder.path().join(name);
            fs::create_dir(&own).expect("a folder");
            let words = scenario.simulated(&own);
            let words: Vec<_> = words.iter().map(|word| word.to_str().expect("a path")).collect();
            words.join(" ")
        };
        let script = [
            "#!/bin/sh -e".to_owned(),
            line(true, "mixed", &["mixed", "--elements", "4096", "-n", "60"]) + " &",
            line(true, "streams", &["streams", "--streams", "4", "-n", "400"]) + " &",
            line(false, "timed", &["compute-only", "-n", "300", "--profile"]) + " &",
            "wait".to_owned(),
        ];
        let path = folder.path().join("train.sh");
        fs::write(&path, script.join("\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script");
        let mut command = Command::new(place::programs().join("tracer"));
        command
            .current_dir(folder.path())
            .args(["record", "--detail", "full", "--api", "all"]);
        let output = command
            .args(["-o", "t.trace", "--", "./train.sh"])
            .output()
            .expect("tracer runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let file = written(&folder.path().join("t.trace"), folder.path(), &[]);
        let wanted = Picture {
            path: &picture,
            size: (1240, 3080),
            scale: 0.75,
        };
        opened(folder.path(), &file, Some(wanted));
    }
    let bytes = fs::read(&picture).expect("UPDATE_DOCS=1 makes it");
    assert!(
        bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.len() < 300_000,
        "{} bytes",
        bytes.len()
    );
    let text = fs::read_to_string(docs.join("report-page.md")).expect("the document");
    assert!(text.contains("](report.png)"));
}
