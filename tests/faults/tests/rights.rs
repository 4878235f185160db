//! tracer with exactly the capabilities that docs/security.md and the systemd unit list.

use std::{collections::BTreeSet, fs, process::Command};

use tracer_capture::kernel::rights::{
    CONFINING, Capability, FOR_A_USER, FTRACE_RECORDING, OF_USE, PERF_RECORDING, RECORDING,
};
use tracer_core::{backend::Backend, tables::Table};
use tracer_e2e::{
    observed, place,
    running::{Program, Recorder, descendants},
    scenario::folder,
};
use tracer_store::Trace;

/// The user `nobody`.
const NOBODY: u32 = 65534;

/// Returns the names as setpriv takes them: `+bpf`.
fn set(capabilities: &[Capability]) -> String {
    let names = capabilities
        .iter()
        .map(|(name, _)| name.trim_start_matches("CAP_").to_lowercase());
    names.map(|name| format!(",+{name}")).collect()
}

/// Returns tracer as root with these capabilities and no others.
fn with(capabilities: &[Capability], words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--bounding-set=-all{}", set(capabilities)))
        .arg("--inh-caps=-all")
        .arg("--");
    command.arg(place::programs().join("tracer")).args(words);
    command
}

/// Returns the command in a mount namespace of its own in which tracefs is mounted, as on most machines.
fn seeing_tracefs(command: &Command) -> Command {
    let mut inside = Command::new("unshare");
    inside.args([
        "--mount",
        "sh",
        "-ec",
        r#"mount -t tracefs nodev /sys/kernel/tracing; exec "$@""#,
        "sh",
    ]);
    inside.arg(command.get_program()).args(command.get_args());
    inside
}

/// Returns the capabilities that recording needs and uses.
fn recording() -> Vec<Capability> {
    RECORDING.into_iter().chain(OF_USE).collect()
}

/// Returns the capabilities that a command or a user's files need.
fn for_a_user() -> Vec<Capability> {
    recording().into_iter().chain(FOR_A_USER).collect()
}

/// The unit, docs/security.md and the program name the same capabilities.
#[test]
fn the_documents_name_the_same() {
    let unit = include_str!("../../../dashboards/systemd/tracer-serve.service");
    let needed = |list: &[Capability]| list.iter().map(|(name, _)| *name).collect::<BTreeSet<&str>>();
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let listed: BTreeSet<&str> = line.expect("a set").split_whitespace().collect();
    assert_eq!(listed, needed(&recording()));
    let security = include_str!("../../../docs/security.md");
    let rights = security.split("## Rights").nth(1).expect("the section");
    let words = rights.split(|letter: char| !letter.is_ascii_uppercase() && letter != '_');
    let named: BTreeSet<&str> = words.filter(|word| word.starts_with("CAP_")).collect();
    assert_eq!(named, needed(&for_a_user()));
}

/// Also without the capabilities that are merely useful.
#[test]
fn the_capabilities_of_the_unit_suffice_to_attach() {
    attach(&recording());
    attach(&RECORDING);
}

/// Returns the file-system user of a process: the kernel checks access to files against it.
fn file_user(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let last = line
        .and_then(|ids| ids.split_whitespace().next_back())
        .expect("four ids");
    last.parse().expect("a number")
}

fn attach(capabilities: &[Capability]) {
    let program = Program::steady("trixie", "gfx942", &[]);
    program.goes_on(100);
    let pid = program.pid().to_string();
    let dir = folder();
    // record
    let trace = dir.path().join("record");
    let mut command = with(capabilities, &["-v", "record", "-p", &pid, "-o"]);
    command.arg(&trace);
    let recorder = Recorder::of(command, &trace);
    recorder.hears("attached   ");
    let readers = descendants(recorder.pid(), "tracer-reader");
    assert!(!readers.is_empty());
    let confined = CONFINING.iter().all(|own| capabilities.contains(own));
    for reader in readers {
        assert_eq!(file_user(reader), if confined { NOBODY } else { 0 });
    }
    program.goes_on(500);
    let recorded = recorder.interrupt().expect_success();
    assert_eq!(recorded.said().contains("cap_setuid"), !confined, "{}", recorded.said());
    let trace = Trace::open(&trace).expect("a trace");
    assert!(
        trace.rows(Table::Dispatches).expect("rows") >= 400,
        "{}",
        recorded.said()
    );
    assert!(trace.manifest().losses.is_empty(), "{:?}", trace.manifest().losses);
    // top
    let mut top = with(
        capabilities,
        &["top", "--once", "--json", "--duration", "1s", "-p", &pid],
    );
    let output = top.output().expect("setpriv, of util-linux");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let picture: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(
        picture["totals"]["dispatches"].as_u64().is_some_and(|count| count > 0),
        "{picture}"
    );
    // serve
    let words = ["serve", "--listen", "127.0.0.1:0", "-p", &pid];
    let server = Recorder::of(with(capabilities, &words), dir.path());
    let line = server.hears("serving    ");
    assert!(line.contains("http://127.0.0.1:"), "{line}");
    program.goes_on(100);
    let ended = server.interrupt();
    assert_eq!(ended.output.status.code(), Some(0), "{}", ended.said());
    program.stop();
}

/// Without the rights to eBPF, perf events are used, and everyone is told so. What they capture equals the truth.
#[test]
fn without_the_rights_to_ebpf_perf_is_chosen() {
    chosen(Backend::Perf, &PERF_RECORDING, "cap_bpf, cap_sys_admin are missing");
}

/// Without the rights to perf events, too, ftrace is used.
#[test]
fn with_access_to_tracefs_only_ftrace_is_chosen() {
    chosen(
        Backend::Ftrace,
        &FTRACE_RECORDING,
        "cap_bpf, cap_perfmon, cap_sys_admin are missing, and for perf events: cap_perfmon is missing",
    );
}

fn chosen(backend: Backend, capabilities: &[Capability], because: &str) {
    let program = Program::steady("trixie", "gfx942", &[]);
    program.goes_on(100);
    let pid = program.pid().to_string();
    let trace = program.dir.path().join("t.trace");
    let mut command = seeing_tracefs(&with(capabilities, &["-v", "record", "-p", &pid, "-o"]));
    command.arg(&trace);
    let recorder = Recorder::of(command, &trace);
    let told = recorder.hears("backend    ");
    assert!(
        told.starts_with(&format!("backend    {backend}, because {because}")),
        "{told}"
    );
    recorder.hears("attached   ");
    program.goes_on(1000);
    program.stop();
    let recorded = recorder.wait().expect_success();
    let run = program.read(recorded);
    let manifest = run.trace.manifest();
    assert_eq!(manifest.backend, Some(backend));
    let found = observed::adopted(&run, true);
    println!("{backend}: {found:?}");
    assert!(found.claimed >= 500 && found.outside >= 50, "{found:?}");
    assert!(
        manifest.capabilities.iter().any(|name| name == "ioctls"),
        "{manifest:?}"
    );
}

/// The guardians remove what a killed recorder has in tracefs: definitions of uprobes, and an instance. The program goes on, without
/// probes.
#[test]
fn a_killed_recorder_leaves_nothing_in_tracefs() {
    killed("perf", &PERF_RECORDING);
    killed("ftrace", &FTRACE_RECORDING);
}

fn killed(backend: &str, capabilities: &[Capability]) {
    let program = Program::steady("trixie", "gfx942", &[]);
    program.goes_on(100);
    let pid = program.pid().to_string();
    let trace = program.dir.path().join("t.trace");
    let script = r#"
        "$@" &
        recorder=$!
        tracing=/sys/kernel/tracing
        defined() { grep -q "tracer_$recorder/" $tracing/uprobe_events; }
        there() { defined || test -e $tracing/instances/tracer_$recorder; }
        tries=0
        until defined; do tries=$((tries + 1)); test $tries -lt 600 || exit 2; sleep 0.05; done
        case $backend in ftrace) test -e $tracing/instances/tracer_$recorder || exit 4;; esac
        kill -KILL $recorder
        tries=0
        while there; do tries=$((tries + 1)); test $tries -lt 600 || exit 3; sleep 0.05; done
    "#;
    let mut command = with(capabilities, &["record", "--backend", backend, "-p", &pid, "-o"]);
    command.arg(&trace);
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .collect();
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).args(words);
    let output = seeing_tracefs(&shell)
        .env("backend", backend)
        .output()
        .expect("unshare, of util-linux");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{backend}: {said}");
    program.goes_on(500);
    program.stop();
}

/// What only eBPF can do is refused, with the option's name, and nothing is recorded.
#[test]
fn what_only_ebpf_can_do_is_refused() {
    let dir = folder();
    let trace = dir.path().join("t.trace").to_string_lossy().into_owned();
    for (option, named) in [
        (&["--api", "hip"][..], "--api"),
        (&["--detail", "full"], "--detail full"),
        (&["--stacks"], "--stacks"),
        (&["--all", "--duration", "1s"], "--all"),
    ] {
        for backend in ["--backend=perf", "--backend=ftrace"] {
            let mut command = Command::new(place::programs().join("tracer"));
            command.args(["record", backend, "-o", &trace]).args(option);
            if named != "--all" {
                command.args(["--", "/bin/true"]);
            }
            let output = command.output().expect("tracer runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(125), "{said}");
            assert!(said.contains(&format!("{named} needs eBPF")), "{said}");
            assert!(!dir.path().join("t.trace").exists());
        }
    }
}

#[test]
fn a_command_takes_three_more() {
    let dir = folder();
    let capabilities = for_a_user();
    for words in [["record", "-o"], ["verify", "-o"]] {
        let mut command = with(&capabilities, &words);
        command.env("SUDO_UID", "65534").env("SUDO_GID", "65534");
        // The invoking user writes the trace.
        let own = dir.path().join("own");
        fs::create_dir_all(&own).expect("a folder");
        std::os::unix::fs::chown(&own, Some(65534), Some(65534)).expect("its owner");
        std::os::unix::fs::chown(dir.path(), Some(65534), Some(65534)).expect("its owner");
        let trace = own.join(words[0]);
        command
            .arg(&trace)
            .args(["--", "/bin/sh", "-c", "test $(id -u) = 65534"]);
        let output = command.output().expect("setpriv, of util-linux");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // A verdict on an empty trace is inconclusive.
        let expected = if words[0] == "record" { 0 } else { 3 };
        assert_eq!(output.status.code(), Some(expected), "{said}");
        let manifest = Trace::open(&trace).expect("a trace").manifest().clone();
        assert_eq!(manifest.exit, Some(tracer_store::manifest::Exit::Code(0)), "{said}");
    }
}

/// Without one of them no recording starts, and the error names it.
#[test]
fn without_one_of_them_the_error_names_it() {
    let dir = folder();
    let own = std::process::id().to_string();
    let trace = dir.path().join("trace").to_string_lossy().into_owned();
    let ebpf = "--backend=ebpf";
    let runs: [&[&str]; 5] = [
        &["record", ebpf, "-o", &trace, "-p", &own],
        &["record", ebpf, "-o", &trace, "--", "/bin/true"],
        &["top", ebpf, "--once", "--json", "--duration", "1s", "-p", &own],
        &["serve", ebpf, "--listen", "127.0.0.1:0", "-p", &own],
        &["verify", "--", "/bin/true"],
    ];
    let check = |capabilities: &[Capability], words: &[&str], user: Option<&str>, missing: &str| {
        let mut command = with(capabilities, words);
        command.env_remove("SUDO_UID").env_remove("SUDO_GID");
        if let Some(user) = user {
            command.env("SUDO_UID", user).env("SUDO_GID", user);
        }
        let output = command.output().expect("setpriv, of util-linux");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{words:?} without {missing}: {said}");
        let named = format!("the capabilities {} are missing", missing.to_lowercase());
        // Before an attach, tracer examines the process.
        let refused = missing == "CAP_SYS_PTRACE" && said.contains("without cap_sys_ptrace");
        assert!(said.contains(&named) || refused, "{words:?} without {missing}: {said}");
    };
    for missing in RECORDING {
        let others: Vec<Capability> = recording().into_iter().filter(|one| *one != missing).collect();
        for words in runs {
            check(&others, words, None, missing.0);
        }
    }
    let by =
        |backend: &'static str, all: &[Capability]| all.iter().map(|missing| (backend, *missing)).collect::<Vec<_>>();
    for (backend, missing) in [by("perf", &PERF_RECORDING), by("ftrace", &FTRACE_RECORDING)].concat() {
        let all = if backend == "perf" {
            &PERF_RECORDING[..]
        } else {
            &FTRACE_RECORDING
        };
        let others: Vec<Capability> = all.iter().copied().filter(|one| *one != missing).collect();
        for backend in [&format!("--backend={backend}")[..], "--backend=auto"] {
            let run = ["record", backend, "-o", &trace, "--", "/bin/true"];
            let output = with(&others, &run).output().expect("setpriv, of util-linux");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(125), "{backend} without {missing:?}: {said}");
            assert!(
                said.contains(&missing.0.to_lowercase()),
                "{backend} without {missing:?}: {said}"
            );
        }
    }
    for missing in FOR_A_USER {
        let others: Vec<Capability> = for_a_user().into_iter().filter(|one| *one != missing).collect();
        for words in [runs[0], runs[1], runs[4]] {
            check(&others, words, Some("65534"), missing.0);
        }
    }
}

/// In a separate pid namespace, process ids differ from those in events. tracer refuses instead of recording nothing.
#[test]
fn in_a_pid_namespace_nothing_begins() {
    let dir = folder();
    let inside = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc"]);
        command.arg(place::programs().join("tracer")).args(words);
        command.output().expect("unshare, of util-linux")
    };
    let trace = dir.path().join("t.trace");
    let marker = dir.path().join("ran");
    let (trace, marker) = (trace.to_str().expect("UTF-8"), marker.to_str().expect("UTF-8"));
    for words in [
        &["record", "-o", trace, "--", "touch", marker][..],
        &["record", "-o", trace, "-a"],
        &["record", "-o", trace, "-p", "1"],
        &["top", "--once", "--json", "--duration", "1s", "-a"],
        &["serve", "--listen", "127.0.0.1:0", "-a"],
    ] {
        let output = inside(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{words:?}: {said}");
        assert!(
            said.contains(tracer_capture::target::pid_namespace::FIX),
            "{words:?}: {said}"
        );
    }
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 0);
    let output = inside(&["doctor", "--json"]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["rights"]["own_pid_namespace"], true);
    assert_eq!(found["record_would_capture"]["doorbells"]["captured"], "no");
}
