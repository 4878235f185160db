//! The recorder's own life cycle: terminals that close, readers that exit, signals, and what it leaves behind.

mod foreign;

use std::{
    fs, io,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use tracer_core::tables::Fact;
use tracer_core::tables::Table;
use tracer_e2e::{
    place,
    running::{Program, Recorder, descendants, signal, wait_for},
    scenario::{Run, Scenario, folder},
    terminal::Terminal,
};
use tracer_faults::{Attack, tries};
use tracer_store::{
    State, Trace,
    manifest::{EndedBy, Exit},
};

fn tracer() -> Command {
    Command::new(place::programs().join("tracer"))
}

/// A process that does nothing, and is killed when the test ends.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        Self(Command::new("/bin/sleep").arg("1000").spawn().expect("sleep"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command whose standard output and standard error have no reader.
fn unread(command: &mut Command) -> Child {
    let closed = || {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        writer
    };
    command.stdout(closed()).stderr(closed()).spawn().expect("tracer runs")
}

fn code(status: ExitStatus, wanted: i32) -> Result<(), String> {
    match status.code() {
        Some(code) if code == wanted => Ok(()),
        _ => Err(format!("it ended with {status}, not {wanted}")),
    }
}

fn ended(trace: &Path, wanted: &EndedBy) -> Result<(), String> {
    let trace = Trace::open(trace).map_err(|error| error.to_string())?;
    let found = trace.manifest().ended_by.clone();
    if trace.state() == State::Complete && found.as_ref() == Some(wanted) {
        Ok(())
    } else {
        Err(format!("{:?}, ended by {found:?}", trace.state()))
    }
}

fn by(name: &str) -> EndedBy {
    EndedBy::Signal { name: name.to_owned() }
}

#[test]
fn a_terminal_that_closes_ends_top() {
    let mut attack = Attack::new("the terminal of `tracer top -p` closes");
    for _ in 0..tries(3, 40) {
        let sleeper = Sleeper::start();
        let mut command = tracer();
        command.args(["top", "-p", &sleeper.pid()]);
        let mut terminal = Terminal::start(command);
        terminal.wait_for(|screen| screen.contains("? help"));
        let status = terminal.hang_up(Duration::from_secs(30));
        attack.count(match status {
            Some(status) => code(status, 0),
            None => Err("it went on for 30 s".to_owned()),
        });
    }
    attack.finish();
}

#[test]
fn a_recording_that_nobody_listens_to_goes_on() {
    let mut attack = Attack::new("nobody reads what `tracer record` says (`2>&1 | true`)");
    for _ in 0..tries(2, 20) {
        let dir = folder();
        let trace = dir.path().join("t");
        // Also with a log.
        let mut command = tracer();
        command.args(["-v", "record", "-o"]).arg(&trace);
        let mut child = unread(command.args(["--", "/bin/sh", "-c", "exit 3"]));
        let status = child.wait().expect("tracer ends");
        attack.count(code(status, 3).and_then(|()| ended(&trace, &EndedBy::CommandExited)));

        let sleeper = Sleeper::start();
        let trace = dir.path().join("attached");
        let mut command = tracer();
        let mut child = unread(command.args(["record", "-p", &sleeper.pid(), "-o"]).arg(&trace));
        wait_for("the trace", || trace.join("manifest.json").exists().then_some(()));
        signal(child.id(), libc::SIGTERM);
        let status = child.wait().expect("tracer ends");
        attack.count(code(status, 0).and_then(|()| ended(&trace, &by("SIGTERM"))));
    }
    attack.finish();
}

#[test]
fn a_result_that_nobody_reads_is_no_failure() {
    let dir = folder();
    let trace = dir.path().join("t");
    let recorded = tracer()
        .args(["record", "-o"])
        .arg(&trace)
        .args(["--", "/bin/true"])
        .output();
    assert!(recorded.expect("tracer runs").status.success());
    for words in [
        &["report"][..],
        &["report", "--format", "json"],
        &["top", "--once", "--json"],
        &["-vv", "report"],
    ] {
        let mut command = tracer();
        let status = unread(command.args(words).arg(&trace)).wait().expect("tracer ends");
        assert_eq!(status.code(), Some(0), "{words:?}");
    }
    // The trace lacks evidence. The result is the same with or without a reader.
    for format in ["text", "json", "junit", "github", "markdown"] {
        let mut command = tracer();
        let status = unread(command.args(["verify", "--format", format]).arg(&trace)).wait();
        assert_eq!(status.expect("tracer ends").code(), Some(3), "{format}");
    }
    let doctor = unread(tracer().arg("doctor")).wait().expect("tracer ends");
    assert!(matches!(doctor.code(), Some(0 | 1)), "{doctor}");
}

/// The manifest gives the reason for the end of the recording.
#[test]
fn the_manifest_says_what_ended_the_recording() {
    let dir = folder();
    let sleeper = Sleeper::start();
    for (name, number) in [
        ("SIGTERM", libc::SIGTERM),
        ("SIGINT", libc::SIGINT),
        ("SIGHUP", libc::SIGHUP),
    ] {
        let trace = dir.path().join(name);
        let recorder = Recorder::attach(&trace, &[sleeper.0.id()], &[]);
        signal(recorder.pid(), number);
        drop(recorder.wait().expect_success());
        assert_eq!(ended(&trace, &by(name)), Ok(()));
    }
    let trace = dir.path().join("duration");
    let recorder = Recorder::attach(&trace, &[sleeper.0.id()], &["--duration", "100ms"]);
    drop(recorder.wait().expect_success());
    assert_eq!(ended(&trace, &EndedBy::Duration), Ok(()));
    let trace = dir.path().join("target");
    let recorder = Recorder::attach(&trace, &[sleeper.0.id()], &[]);
    drop(sleeper);
    drop(recorder.wait().expect_success());
    assert_eq!(ended(&trace, &EndedBy::TargetExited), Ok(()));

    // The first signal is for the command, which ignores it; the second is for the recorder.
    let trace = dir.path().join("forced");
    let script =
        "exec 2> /dev/null; trap '' INT TERM; echo > ready; i=0; while [ $i -lt 60 ]; do sleep 1; i=$((i+1)); done";
    let words = ["--", "/bin/sh", "-c", script].map(str::to_owned);
    let mut command = tracer();
    command
        .current_dir(dir.path())
        .args(["-v", "record", "-o"])
        .arg(&trace)
        .args(words);
    let recorder = Recorder::of(command, &trace);
    wait_for("the command", || dir.path().join("ready").exists().then_some(()));
    let shell = descendants(recorder.pid(), "sh");
    signal(recorder.pid(), libc::SIGTERM);
    std::thread::sleep(Duration::from_millis(100));
    signal(recorder.pid(), libc::SIGINT);
    let recorded = recorder.wait();
    shell.into_iter().for_each(|pid| signal(pid, libc::SIGKILL));
    assert_eq!(recorded.output.status.code(), Some(130), "{}", recorded.said());
    assert_eq!(ended(&trace, &by("SIGINT")), Ok(()));
    assert_eq!(Trace::open(&trace).expect("a trace").manifest().exit, None::<Exit>);
}

/// A program that is blocked in an ioctl and in an HSA call when the recording stops.
#[test]
fn calls_that_are_open_at_the_end_have_rows() {
    let files = folder();
    let trace = files.path().join("t.trace");
    let recorder = Recorder::start(&trace, &["-a", "--api", "hsa"].map(str::to_owned));
    recorder.hears("watching   ");
    let program = Program::steady("trixie", "gfx1100", &[]);
    program.goes_on(200);
    signal(recorder.pid(), libc::SIGTERM);
    let recorded = recorder.wait().expect_success();
    assert_eq!(ended(&trace, &by("SIGTERM")), Ok(()));
    let found = Trace::open(&trace).expect("a trace");
    let end_ns = found.manifest().ended.as_ref().expect("an end").monotonic_ns;
    let facts: Vec<Fact> = found
        .facts(&Table::ALL)
        .expect("readable")
        .map(|fact| fact.expect("whole"))
        .collect();
    let of_program = |pid: u32| pid == program.pid();
    // The runtime's event thread waits in the driver all the time.
    let open = facts.iter().filter_map(|fact| match fact {
        Fact::Ioctl(ioctl) if ioctl.ret.is_none() && of_program(ioctl.pid) => Some(ioctl),
        _ => None,
    });
    let open: Vec<_> = open.collect();
    println!("{open:?}");
    assert!(!open.is_empty(), "{}", recorded.said());
    for ioctl in open {
        assert!(ioctl.enter_ns <= ioctl.exit_ns && ioctl.exit_ns <= end_ns, "{ioctl:?}");
        assert_eq!((ioctl.device, ioctl.arg_out.is_none()), ("kfd", true), "{ioctl:?}");
    }
    let calls: Vec<_> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::ApiCall(call) if of_program(call.pid) => Some(call),
            _ => None,
        })
        .collect();
    let open: Vec<_> = calls.iter().filter(|call| call.exit_ns.is_none()).collect();
    println!("{} calls, open: {open:?}", calls.len());
    for call in &open {
        assert_eq!((call.ret, call.failed), (None, None), "{call:?}");
        assert!(call.enter_ns <= end_ns, "{call:?}");
    }
    let mut numbers: Vec<u64> = calls.iter().map(|call| call.call).collect();
    numbers.sort_unstable();
    let count = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), count, "a call has two rows");
    program.stop();
    drop(program.read(recorded));
}

#[test]
fn verify_that_is_killed_leaves_no_folder() {
    let mut attack = Attack::new("SIGKILL of `tracer verify -- COMMAND`: its temporary folder");
    for _ in 0..tries(2, 20) {
        let dir = folder();
        let count = || fs::read_dir(dir.path()).expect("readable").count();
        let mut verify = tracer()
            .env("TMPDIR", dir.path())
            .args(["verify", "--", "/bin/sleep", "1000"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("tracer runs");
        let sleeper = wait_for("the command", || descendants(verify.id(), "sleep").first().copied());
        assert_eq!(count(), 1, "a folder for the trace");
        verify.kill().expect("it can be killed");
        verify.wait().expect("it ends");
        signal(sleeper, libc::SIGKILL);
        let gone = (0..400).any(|_| {
            std::thread::sleep(Duration::from_millis(25));
            count() == 0
        });
        attack.count(if gone {
            Ok(())
        } else {
            Err("a folder is left".to_owned())
        });
    }
    attack.finish();
}

/// A process that a daemon starts for a client is not in the client's process tree.
#[test]
fn a_process_that_works_for_the_command_elsewhere_is_named() {
    let dir = folder();
    let files = folder();
    let script = "touch \"$0/asked\"; while [ ! -s \"$0/progress\" ]; do sleep 0.05; done";
    let at = dir.path().to_str().expect("UTF-8").to_owned();
    let words = ["--", "/bin/sh", "-c", script, &at].map(str::to_owned);
    let recorder = Recorder::start(&files.path().join("t"), &words);
    wait_for("the request", || dir.path().join("asked").exists().then_some(()));
    let mut program = Program::of(dir, &Scenario::new("trixie", "gfx1100", &["steady"]));
    let pid = program.pid();
    let recorded = recorder.wait().expect_success();
    program.stop();
    assert!(program.wait().success());
    let named = format!("process {pid} (hsa-dispatch)");
    let said = recorded.said();
    assert!(said.contains(&named) && said.contains(" -a"), "{said}");
    let manifest = Trace::open(&recorded.trace).expect("a trace").manifest().clone();
    assert!(
        manifest.warnings.iter().any(|warning| warning.contains(&named)),
        "{:?}",
        manifest.warnings
    );
}

/// Exit code 124 is about compute queues, not about libraries: `ls` has none, and neither has a program that only loads a runtime.
#[test]
fn a_command_without_a_queue_has_its_own_exit_code() {
    let dir = folder();
    for (name, words, wanted) in [("ls", &["ls"][..], 0), ("fails", &["/bin/sh", "-c", "exit 9"], 9)] {
        let mut command = tracer();
        command
            .args(["record", "-o"])
            .arg(dir.path().join(name))
            .arg("--")
            .args(words);
        let status = command.stdout(Stdio::null()).status().expect("tracer runs");
        assert_eq!(status.code(), Some(wanted), "{name}");
    }
    let run: Run = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "3"]).record();
    assert_eq!(run.output.status.code(), Some(0));
}
