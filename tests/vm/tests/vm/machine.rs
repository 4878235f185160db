//! A machine, the commands in it, and the checks for which it is booted.

use std::any::Any;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;
use tracer_e2e::scenario::{Run, Scenario, folder, report};
use tracer_vm::{Command, Config, Kernel, Module, Output, Vm};

/// A client id by which amdgpu marks its own clearing of buffers (`amdgpu_job.h`): 2^64 - 10.
pub const TTM_CLEAR_BUFFER: u64 = u64::MAX - 9;

/// A lock for one machine at a time, where the test runner does not ensure it: each takes 2 GiB, and a processor.
static ONE: Mutex<()> = Mutex::new(());

/// A check in a machine. It panics if it fails.
pub type Check = fn(&mut Machine);

/// A running machine.
pub struct Machine {
    pub vm: Vm,
    /// The series of its kernel: `6.1`, `6.12` or `7.x`.
    pub kernel: String,
    /// The parent of the folders that both sides write to.
    shared: TempDir,
    traces: u32,
    _one: MutexGuard<'static, ()>,
}

impl Machine {
    /// Boots a machine, and prints how long that took.
    pub fn boot(kernel: &str, modules: &[Module]) -> Self {
        Self::boot_with(kernel, modules, |_| ())
    }

    /// Boots a machine whose clock counts instructions.
    pub fn boot_counting(kernel: &str, modules: &[Module]) -> Self {
        Self::boot_with(kernel, modules, |config| {
            config.counts_instructions = true;
            config.processors = 1;
        })
    }

    fn boot_with(kernel: &str, modules: &[Module], change: impl FnOnce(&mut Config)) -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = folder();
        let mut config = Config::new(Kernel::find(kernel).unwrap()).unwrap();
        change(&mut config);
        config.modules = modules.to_vec();
        config.shared = vec![shared.path().to_owned()];
        let vm = Vm::boot(&config).unwrap();
        let (wall, guest) = vm.boot_time();
        println!(
            "{} up after {wall:.2?}, {guest:.2?} by its clock; {:?}",
            vm.release(),
            vm.load_times()
        );
        Self {
            vm,
            kernel: kernel.to_owned(),
            shared,
            traces: 0,
            _one: one,
        }
    }

    /// Runs every check, even after one that failed. Fails if any check failed.
    ///
    /// `TRACER_VM_CHECK=together` runs only the checks with that in their names, and prints which it omits.
    pub fn hold(mut self, checks: &[(&str, Check)]) {
        let wanted = std::env::var("TRACER_VM_CHECK").unwrap_or_default();
        let mut failed = Vec::new();
        for (name, check) in checks {
            if !name.contains(&wanted) {
                println!("==> {} {name}: left out by TRACER_VM_CHECK", self.kernel);
                continue;
            }
            let began = Instant::now();
            let done = catch_unwind(AssertUnwindSafe(|| check(&mut self)));
            let seconds = began.elapsed().as_secs_f64();
            println!(
                "==> {} {name}: {} ({seconds:.1} s)",
                self.kernel,
                if done.is_ok() { "ok" } else { "FAILED" }
            );
            failed.extend(done.err().map(|panic| format!("{name}: {}", words(panic.as_ref()))));
        }
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }

    /// Creates a folder that the machine writes to as well.
    pub fn folder(&self) -> TempDir {
        TempDir::new_in(self.shared.path()).unwrap()
    }

    /// Runs a shell command.
    pub fn run(&mut self, script: &str) -> Output {
        self.vm.run(&Command::new("sh").args(["-ec", script])).unwrap()
    }

    /// Runs a shell command that must succeed.
    pub fn sh(&mut self, script: &str) -> Output {
        let output = self.run(script);
        succeeded(script, output)
    }

    /// Records a command. Returns its output and the trace.
    pub fn record(&mut self, options: &str, command: &str) -> (Output, PathBuf) {
        self.traces += 1;
        let trace = self.shared.path().join(format!("{}.trace", self.traces));
        let output = self.recorded(
            &format!("tracer record -o {} {options} -- {command}", trace.display()),
            &trace,
        );
        (output, trace)
    }

    /// Runs a line that records a trace. Repeats it if the kernel skipped a program, but only a limited number of times.
    pub fn recorded(&mut self, line: &str, trace: &Path) -> Output {
        let output = self.recorded_any(line, trace);
        succeeded(line, output)
    }

    /// Does what [`Self::recorded`] does, whatever the command's exit code is.
    pub fn recorded_any(&mut self, line: &str, trace: &Path) -> Output {
        repeated(|| (self.run(line), trace.to_owned())).0
    }

    /// Records a scenario, by `tracer record` with these options in this environment. The recording must end with the code.
    pub fn scenario(&mut self, environment: &str, options: &str, scenario: &Scenario, code: i32) -> Run {
        let dir = self.folder();
        let trace = dir.path().join("t.trace");
        let line = format!(
            "{environment} tracer record {options} -o {} -- {}",
            trace.display(),
            quoted(&scenario.simulated(dir.path()))
        );
        let output = self.recorded_any(&line, &trace);
        assert_eq!(output.code, code, "{line}: {}", output.stderr_text());
        // The machine has the command's output; the files are here.
        Run::read(dir, std::process::Command::new("true").output().unwrap())
    }

    /// Does what [`Self::record`] does, and checks that nothing was lost. Returns the output and the report, which the host creates
    /// because it is faster.
    pub fn report(&mut self, options: &str, command: &str) -> (Output, Value) {
        let (output, trace) = self.record(options, command);
        let report = report(&trace);
        assert_eq!(report["losses"]["total"], 0, "{report}");
        assert_eq!(report["complete"], true);
        (output, report)
    }
}

/// Returns the output of a command that must have succeeded.
fn succeeded(script: &str, output: Output) -> Output {
    let (out, said) = (output.stdout_text(), output.stderr_text());
    assert_eq!(output.code, 0, "{script}: {out}{said}");
    output
}

/// The most recordings of one command.
const ATTEMPTS: usize = 4;

/// Returns what `record` returns: anything, and the trace. Repeats it if the kernel skipped a program, and removes the trace before,
/// but only a limited number of times.
pub fn repeated<T>(mut record: impl FnMut() -> (T, PathBuf)) -> (T, PathBuf) {
    for _ in 1..ATTEMPTS {
        let (done, trace) = record();
        if !passed_over(&trace) {
            return (done, trace);
        }
        std::fs::remove_dir_all(trace).unwrap();
    }
    record()
}

/// Returns whether a recording lost only events at which the kernel may not have run a program, which happens on Linux 7
/// (docs/limitations.md). The trace says so, and no verdict passes on it, as it should be. The test then compares another
/// recording.
fn passed_over(trace: &Path) -> bool {
    let manifest = read_json(&trace.join("manifest.json"));
    let losses = manifest["losses"].as_object().unwrap();
    let passed_over = !losses.is_empty() && losses.keys().all(|source| source.starts_with("missed-"));
    if passed_over {
        println!("recorded again, as the kernel passed over programs: {losses:?}");
    }
    passed_over
}

/// Returns the message of a panic.
fn words(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "a panic without words",
    }
}

pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", output.stdout_text(), output.stderr_text()))
}

pub fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Quotes words for a shell.
pub fn quoted(words: &[OsString]) -> String {
    let word = |word: &OsString| format!("'{}'", word.to_string_lossy());
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}
