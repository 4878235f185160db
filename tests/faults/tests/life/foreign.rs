//! One hostile name, used for everything that others may name, through every output: it is always printed as text.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
};

use tracer_core::family::Family;
use tracer_core::{
    foreign::{HOSTILE, from_bytes, is_unsafe},
    sample,
    tables::Fact,
};
use tracer_e2e::{place, running::Recorder, scenario::folder, terminal::Terminal};
use tracer_store::{
    TraceWriter,
    manifest::{ClockSnapshot, Device, Host, Library, Manifest, Probe, Scheduler, SchedulerKind, Target, Tool},
};

fn hostile() -> String {
    format!("{}\0", from_bytes(HOSTILE))
}

/// Writes a trace in which every name is hostile.
fn trace(dir: &Path) -> PathBuf {
    let trace = dir.join("hostile.trace");
    let name = hostile();
    let tool = Tool {
        name: name.clone(),
        version: name.clone(),
    };
    let target = Target::Command {
        argv: vec![name.clone(), name.clone()],
    };
    let mut manifest = Manifest::new(tool, Host::here(), target, ClockSnapshot::now());
    manifest.simulated = Some(name.clone());
    manifest.warnings = vec![name.clone()];
    manifest.losses = [(name.clone(), 3)].into();
    manifest.capabilities = ["doorbells", "packets", "ioctls", "kernel_rings", "reserves", "unseen"]
        .map(str::to_owned)
        .to_vec();
    manifest.devices = vec![Device {
        gpu_id: 1,
        name: name.clone(),
        gfx_target_version: 110_000,
        scheduler: Scheduler {
            kind: SchedulerKind::Mes,
            evidence: vec![name.clone()],
        },
        ..Device::default()
    }];
    manifest.libraries = vec![Library {
        path: name.clone(),
        device: name.clone(),
        inode: 1,
        build_id: Some(name.clone()),
        soname: Some(name.clone()),
    }];
    manifest.probes = vec![Probe {
        family: Family::Other,
        library: Some(name.clone()),
        symbol: name.clone(),
        file_offset: Some(1),
        instruction: Some(name.clone()),
        hit_ns: None,
        resolver: Some(name.clone()),
        confidence: Some(name.clone()),
        attached: false,
        error: Some(name.clone()),
    }];
    let mut writer = TraceWriter::create(&trace, manifest, false).expect("a trace");
    let kernel: Arc<str> = name.as_str().into();
    let mut process = sample::process(7);
    process.comm.clone_from(&name);
    let mut code_object = sample::code_object(0);
    code_object.uri.clone_from(&name);
    let mut named = sample::kernel(0);
    named.name = name.as_str().into();
    let mut dispatch = sample::dispatch(0, 10);
    dispatch.kernel = Some(kernel);
    let facts = [
        Fact::Dispatch(dispatch),
        Fact::Doorbell(sample::doorbell(0, 10)),
        Fact::CodeObject(code_object),
        Fact::Kernel(named),
        Fact::Queue(sample::queue(1)),
        Fact::Process(process),
    ];
    for fact in &facts {
        writer.push(fact);
    }
    writer
        .finish(|manifest| manifest.complete = true)
        .expect("it is written");
    trace
}

/// Fails if a byte of the name acts on a terminal or in the log of a CI system. `own`: lines of tracer that are commands.
fn check(what: &str, bytes: &[u8], own: usize) {
    let text = str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: {error}: {bytes:?}"));
    let bad: Vec<char> = text.chars().filter(|&c| is_unsafe(c) && c != '\n').collect();
    assert!(bad.is_empty(), "{what}: {bad:?} in\n{text:?}");
    let commands = text.lines().filter(|line| line.trim_start().starts_with("::")).count();
    assert_eq!(commands, own, "{what}:\n{text}");
    assert!(!text.contains("##[") && !text.contains("##vso["), "{what}:\n{text}");
}

fn run(words: &[&OsStr]) -> Output {
    let mut tracer = Command::new(place::programs().join("tracer"));
    tracer
        .args(words)
        .env_remove("GITHUB_STEP_SUMMARY")
        .output()
        .expect("tracer runs")
}

#[test]
fn a_hostile_trace_is_text_in_every_output() {
    let dir = folder();
    let trace = trace(dir.path());
    let json = |output: &Output| serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON");
    let with = |words: &[&str]| {
        let mut all: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        all.push(trace.as_os_str());
        let output = run(&all);
        check(&format!("{words:?}, standard error"), &output.stderr, 0);
        check(
            &format!("{words:?}"),
            &output.stdout,
            usize::from(words.contains(&"github")),
        );
        output
    };
    with(&["report", "--all"]);
    with(&["report", "--by", "dispatch"]);
    with(&["path", "--kernel", ""]);
    with(&["log"]);
    let log = with(&["log", "--format", "jsonl"]);
    let lines = log.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    assert!(lines.clone().count() > 0);
    for line in lines {
        serde_json::from_slice::<serde_json::Value>(line).expect("JSON");
    }
    let report = with(&["-vv", "report", "--all", "--wide"]);
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.contains("\\u{1b}]0;owned"), "the name is shown:\n{report}");
    let report = json(&with(&["report", "--format", "json"]));
    assert_eq!(report["target"]["argv"][0], hostile().as_str(), "data stays what it is");
    json(&with(&["top", "--once", "--json"]));
    with(&["verify", "--policy", "mes-bypass"]);
    json(&with(&["verify", "--format", "json"]));
    let junit = with(&["verify", "--format", "junit"]);
    let junit = String::from_utf8_lossy(&junit.stdout).into_owned();
    assert!(
        !junit.contains("<script>") && junit.matches("]]>").count() == junit.matches("<![CDATA[").count(),
        "{junit}"
    );
    with(&["verify", "--format", "github"]);
    let markdown = with(&["verify", "--format", "markdown"]);
    assert!(!String::from_utf8_lossy(&markdown.stdout).contains("<script>"));
}

#[test]
fn a_hostile_trace_is_text_on_the_screen() {
    let dir = folder();
    let trace = trace(dir.path());
    let mut command = Command::new(place::programs().join("tracer"));
    command.arg("top").arg(&trace);
    let mut terminal = Terminal::start(command);
    for (key, view) in [("1", "queue"), ("2", "kernel"), ("5", "process")] {
        terminal.press(key);
        let shown = terminal.wait_for(|screen| screen.contains(view));
        check(&format!("the view {view}"), shown.as_bytes(), 0);
    }
    for part in [
        &b"]0;owned\x07"[..],
        b"\x1b]0;",
        "\u{202e}".as_bytes(),
        "\u{9b}".as_bytes(),
    ] {
        let found = terminal.written().windows(part.len()).any(|bytes| bytes == part);
        assert!(!found, "{part:?} reached the terminal");
    }
    terminal.press("q");
    assert!(terminal.end().0.success());
}

/// A program whose file, arguments and process have that name, and a runtime at such a path.
#[test]
fn hostile_names_of_what_runs_are_text() {
    let dir = folder();
    let hostile = OsStr::from_bytes(HOSTILE);
    let program = dir.path().join(hostile);
    fs::copy("/bin/sleep", &program).expect("a copy");
    let mut child = Command::new(&program).arg("1000").spawn().expect("it runs");

    // Attaches to it, with everything that the log reports.
    let trace = dir.path().join("attached");
    let recorder = Recorder::start(&trace, &["-p".to_owned(), child.id().to_string()]);
    recorder.hears("attached   ");
    let recorded = recorder.interrupt().expect_success();
    check("record -p", &recorded.output.stderr, 0);
    assert!(recorded.said().contains("(\\u{1b}]0;owned"), "{}", recorded.said());
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");

    // Runs it as a command, into a folder of that name; and runs one that does not exist.
    let place = dir.path().join("places");
    fs::create_dir(&place).expect("a folder");
    let tracer = place::programs().join("tracer");
    for (words, code) in [
        ([program.as_os_str(), OsStr::new("0")], 0),
        ([OsStr::from_bytes(b"/nowhere/\x1b[2J\n::error::x"), hostile], 127),
    ] {
        let output = Command::new(&tracer)
            .args(["-vv", "record", "--overwrite", "-o"])
            .arg(place.join(hostile))
            .arg("--")
            .args(words)
            .output()
            .expect("tracer runs");
        check("record", &output.stderr, 0);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    for words in [
        &[OsStr::new("report"), hostile][..],
        &[OsStr::new("verify"), hostile],
        &[OsStr::new("verify"), OsStr::new("--policy"), hostile, hostile],
        &[OsStr::new("doctor"), OsStr::new("--library"), hostile],
        &[
            OsStr::new("doctor"),
            OsStr::new("--json"),
            OsStr::new("--library"),
            hostile,
        ],
    ] {
        let output = run(words);
        check(&format!("{words:?}"), &[output.stdout, output.stderr].concat(), 0);
    }
}

/// The live page puts names into text nodes only.
#[test]
fn the_live_page_sets_text() {
    let page = include_str!("../../../../tracer-serve/src/page.html");
    for sink in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
    ] {
        assert!(!page.contains(sink), "{sink}");
    }
    assert!(page.contains("textContent"));
}
