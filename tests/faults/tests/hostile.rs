//! Traced processes whose memory is a trap. The recorder ends normally, reports what it could not read, and records other processes
//! completely.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tracer_core::{
    foreign::{HOSTILE, from_bytes, is_unsafe},
    tables::{Evidence, Fact},
};
use tracer_e2e::{
    compare, place,
    running::{Program, Recorded, Recorder},
    scenario::{Run, Scenario, folder},
    truth::Truth,
};
use tracer_faults::{Attack, tries};

/// Longer than any trap takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the trace must report about a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// Rows of `losses` with this source.
    Loss(&'static str),
    /// A code object whose kernels are unknown.
    Unread,
    /// A kernel with an escape sequence in its name.
    Named,
    /// A doorbell of a queue, or packets, that could not be read.
    Unreadable,
    /// Dispatches of the process, and nothing else.
    Dispatches,
}

fn expected(mode: &str) -> Expected {
    match mode {
        "list-loops"
        | "list-loops-with-long-names"
        | "list-of-20000"
        | "list-nowhere"
        | "list-impossible"
        | "list-ends-nowhere"
        | "list-at-the-end-of-memory"
        | "name-nowhere"
        | "name-of-64-kib"
        | "name-without-end" => Expected::Loss("code-object-list"),
        "code-with-escapes-in-names" => Expected::Named,
        "memory-without-end" => Expected::Dispatches,
        _ if mode.starts_with("uri-") || mode.starts_with("memory-") || mode.starts_with("code-") => Expected::Unread,
        _ if mode.starts_with("ring-") || mode.starts_with("queue-") => Expected::Unreadable,
        _ => Expected::Dispatches,
    }
}

/// Returns the names of all traps.
fn modes() -> Vec<String> {
    let output = Command::new(place::programs().join("hostile")).arg("modes").output();
    let text = String::from_utf8(output.expect("hostile").stdout).expect("names");
    text.lines().map(str::to_owned).collect()
}

/// Runs a process with its trap on its own simulated GPU. Returns the process id.
fn fall(mode: &str, dir: &TempDir) -> Result<u32, String> {
    let scenario = Scenario::new("trixie", "gfx1100", &[]);
    let mut words = scenario.simulated(dir.path());
    let end = words.iter().position(|word| word == "--").expect("the end of options");
    words.truncate(end + 1);
    let code = place::kernels().join("gfx1100.co");
    words.extend([
        place::programs().join("hostile").into(),
        dir.path().into(),
        code.into(),
        mode.into(),
    ]);
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the simulator runs");
    let began = Instant::now();
    let status = loop {
        match child.try_wait().expect("its state") {
            Some(status) => break status,
            None if began.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{mode}: it does not end"));
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let truth = Truth::read(&dir.path().join("truth.jsonl"));
    // The runtime aborts a process whose queue fails.
    let queue = truth.queues.first();
    queue
        .map(|queue| queue.pid)
        .ok_or_else(|| format!("{mode}: no queue, {status}"))
}

/// Fails if the bytes contain any that act on a terminal or in the log of a CI system.
fn harmless(what: &str, bytes: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    let acts = text.chars().any(|c| is_unsafe(c) && c != '\n');
    if acts || text.lines().any(|line| line.trim_start().starts_with("::")) {
        return Err(format!("{what} acts on a terminal: {text:?}"));
    }
    if text.contains("panicked") {
        return Err(format!("{what}: {text}"));
    }
    Ok(())
}

/// Returns whether the trace reports the trap of that process.
fn is_recorded(run: &Run, pid: u32, wanted: Expected) -> bool {
    run.facts.iter().any(|fact| match (wanted, fact) {
        (Expected::Loss(source), Fact::Loss(loss)) => loss.source == source,
        (Expected::Unread, Fact::CodeObject(code)) => code.pid == pid && code.unread.is_some(),
        (Expected::Named, Fact::Kernel(kernel)) => kernel.pid == pid && kernel.name.contains('\u{1b}'),
        (Expected::Unreadable, Fact::Doorbell(doorbell)) => doorbell.pid == pid && doorbell.queue.is_none(),
        (Expected::Unreadable, Fact::Queue(queue)) => queue.pid == pid && queue.unread > 0,
        // The doorbell after the trap found the packet in its slot, where the GPU had left the body.
        (Expected::Unreadable, Fact::Dispatch(dispatch)) => dispatch.pid == pid && dispatch.evidence == Evidence::Body,
        (Expected::Dispatches, Fact::Dispatch(dispatch)) => dispatch.pid == pid,
        _ => false,
    })
}

/// Records the whole machine while these traps run one after the other and another program works. Returns the harm.
fn record(modes: &[String]) -> Result<(), String> {
    let traces = folder();
    let trace = traces.path().join("t.trace");
    let recorder = Recorder::start(&trace, &["-a", "--detail", "full"].map(str::to_owned));
    recorder.hears("watching   every process");
    let mut other = Program::steady("trixie", "gfx1100", &[]);
    other.goes_on(100);
    let mut fallen = Vec::new();
    for mode in modes {
        fallen.push((mode, fall(mode, &folder())));
        other.goes_on(50);
    }
    other.stop();
    assert!(other.wait().success());
    let began = Instant::now();
    let recorded = recorder.interrupt();
    let took = began.elapsed();
    if recorded.output.status.code() != Some(0) || took > PATIENCE {
        return Err(format!(
            "{} after {took:?}: {}",
            recorded.output.status,
            recorded.said()
        ));
    }
    harmless("record", &recorded.output.stderr)?;
    outputs(&trace)?;
    let mut run = other.read(Recorded {
        output: recorded.output,
        trace,
    });
    for (mode, pid) in fallen {
        let pid = pid?;
        if !is_recorded(&run, pid, expected(mode)) {
            return Err(format!(
                "{mode}: the trace does not show {:?}, process {pid}; losses {}, warnings {}",
                expected(mode),
                run.report["losses"],
                run.report["warnings"]
            ));
        }
    }
    let compared = compare::of_machine(&mut run);
    if compared.dispatches as u64 != run.truth.dispatches() || compared.dispatches < 100 {
        return Err(format!(
            "another process's dispatches: {compared:?}; losses {}, warnings {}",
            run.report["losses"], run.report["warnings"]
        ));
    }
    Ok(())
}

/// Checks that the commands that read the trace end, and print no byte of the traps unescaped.
fn outputs(trace: &std::path::Path) -> Result<(), String> {
    for (words, codes) in [
        (&["report", "--all"][..], &[0][..]),
        (&["report", "--all", "--wide"], &[0]),
        (&["report", "--by", "dispatch"], &[0]),
        (&["log"], &[0]),
        (&["log", "--format", "jsonl"], &[0]),
        (&["diff", "--all"], &[0]),
        (&["diff", "--format", "json"], &[0]),
        (&["verify"], &[1, 3]),
        (&["verify", "--format", "markdown"], &[1, 3]),
    ] {
        let mut command = Command::new(place::programs().join("tracer"));
        // A diff has two traces: here, the same one twice.
        let other = (words[0] == "diff").then_some(trace);
        let output = command.args(words).args(other).arg(trace);
        let output = output.output().expect("tracer runs");
        harmless(&words.join(" "), &output.stdout)?;
        harmless(&words.join(" "), &output.stderr)?;
        if !output.status.code().is_some_and(|code| codes.contains(&code)) {
            return Err(format!("{words:?}: {}", output.status));
        }
    }
    Ok(())
}

/// In quick runs one recording covers all traps; in long runs each trap also has its own recording.
#[test]
fn hostile_memory_harms_nobody_else() {
    // The checks detect what they are meant to detect.
    assert!(harmless("a name", from_bytes(HOSTILE).as_bytes()).is_err());
    let modes = modes();
    assert!(modes.len() >= 25, "{modes:?}");
    let mut attack = Attack::new("hostile memory of a traced process, all traps in one recording");
    attack.count(record(&modes));
    attack.finish();
    let mut attack = Attack::new("hostile memory of a traced process, a recording each");
    for mode in modes.iter().take(tries(3, usize::MAX)) {
        attack.count(record(std::slice::from_ref(mode)));
    }
    attack.finish();
}
