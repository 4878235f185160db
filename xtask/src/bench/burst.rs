//! What recording adds to a dispatch of a program that rings as fast as it can, in turns with other ways to see its doorbells.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::Place;
use super::workload::{all_attached, before_dispatcher, burst, record};
use crate::setup::Rootfs;
use crate::{cmd, simulated};

/// Rounds. In each the workload runs once in each way, and the fastest run of each counts: other work only makes a run slower.
const ROUNDS: usize = 9;
/// Dispatches of a run, with a doorbell each: fewer than the ring has packets, so that the program waits for no room.
const DISPATCHES: u32 = 16_000;
/// The time in which a program that runs beside the workload must be ready.
const PATIENCE: Duration = Duration::from_secs(30);

/// The mean time of a dispatch in the fastest run, ns.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    alone: f64,
    /// With a program that does nothing, at the place of tracer's probe.
    empty: f64,
    record: f64,
    full: f64,
    /// With a script for bpftrace.
    bpftrace: f64,
    /// With `perf record`.
    perf: f64,
}

impl Burst {
    /// Returns the ratio of what two ways add.
    fn ratio(&self, of: f64, to: f64) -> f64 {
        (of - self.alone) / (to - self.alone)
    }
}

/// Returns the ratio of the time that a recording adds to the time that an empty program adds.
pub fn against_empty(place: &Place<'_>) -> Result<f64> {
    place.burst().map(|burst| burst.ratio(burst.record, burst.empty))
}

/// Returns the same for `--detail full`.
pub fn full_against_empty(place: &Place<'_>) -> Result<f64> {
    place.burst().map(|burst| burst.ratio(burst.full, burst.empty))
}

/// Returns the ratio of the time that a recording adds to the time that a script for bpftrace adds.
pub fn against_bpftrace(place: &Place<'_>) -> Result<f64> {
    place.burst().map(|burst| burst.ratio(burst.record, burst.bpftrace))
}

/// Returns the ratio of the time that a recording adds to the time that `perf record` adds.
pub fn against_perf(place: &Place<'_>) -> Result<f64> {
    place.burst().map(|burst| burst.ratio(burst.record, burst.perf))
}

/// Runs all rounds.
pub fn measure(place: &Place<'_>) -> Result<Burst> {
    let (library, offset) = place.doorbell_site(Rootfs::stable(place.project).dir())?;
    let least = f64::INFINITY;
    let mut burst = Burst {
        alone: least,
        empty: least,
        record: least,
        full: least,
        bpftrace: least,
        perf: least,
    };
    for _ in 0..ROUNDS {
        burst.alone = burst.alone.min(alone(place)?);
        burst.empty = burst.empty.min(beside_empty(place, &library, offset)?);
        burst.record = burst.record.min(recorded(place, &[])?);
        burst.full = burst.full.min(recorded(place, &["--detail", "full"])?);
        burst.bpftrace = burst.bpftrace.min(beside_bpftrace(place, &library)?);
        burst.perf = burst.perf.min(by_perf(place, &library)?);
    }
    eprintln!("    ns per dispatch: {burst:?}");
    all_attached(
        burst.alone,
        [
            ("the empty program", burst.empty),
            ("record", burst.record),
            ("record --detail full", burst.full),
            ("bpftrace", burst.bpftrace),
            ("perf", burst.perf),
        ],
    )?;
    Ok(burst)
}

fn alone(place: &Place<'_>) -> Result<f64> {
    mean_ns(place, simulated::dispatcher(place.project, &place.programs))
}

fn recorded(place: &Place<'_>, options: &[&str]) -> Result<f64> {
    let tracer = record(place, &place.dir.join("bench.trace"), options);
    mean_ns(place, before_dispatcher(place, tracer))
}

fn beside_empty(place: &Place<'_>, library: &Path, offset: u64) -> Result<f64> {
    let beside = Beside::empty_program(place, library, offset)?;
    let mean = alone(place);
    beside.end()?;
    mean
}

fn beside_bpftrace(place: &Place<'_>, library: &Path) -> Result<f64> {
    let script = place.dir.join("dispatches.bt");
    fs::write(&script, bpftrace_script(library))?;
    let printed = place.dir.join("dispatches.txt");
    let mut command = Command::new(place.project.peers_dir().join("bpftrace"));
    command.env("BPFTRACE_MAX_STRLEN", "64");
    command.args(["-B", "line"]).arg(&script);
    let beside = Beside::start(command, &printed, "Attaching")?;
    // It attaches its probes after it says so.
    thread::sleep(Duration::from_secs(1));
    let mean = alone(place);
    beside.end()?;
    let text = fs::read_to_string(&printed).with_context(|| format!("cannot read {}", printed.display()))?;
    let lines = text.lines().filter(|line| line.starts_with("dispatch ")).count();
    ensure!(lines > 0, "bpftrace printed no dispatch: {text:.500}");
    mean
}

/// What somebody who has only bpftrace would write: the exported functions, and what a packet says.
fn bpftrace_script(library: &Path) -> String {
    let library = library.display();
    format!(
        "uprobe:{library}:hsa_queue_add_write_index_screlease\n\
         {{ printf(\"reserve %d %lx %ld\\n\", tid, arg0, arg1); }}\n\
         uprobe:{library}:hsa_signal_store_screlease\n\
         {{\n\
           $queue = *(uint64 *)uptr(arg0 + 0x30);\n\
           $base = *(uint64 *)uptr($queue + 0x8);\n\
           $size = (uint64)*(uint32 *)uptr($queue + 0x18);\n\
           $packet = $base + (arg1 & ($size - 1)) * 64;\n\
           printf(\"dispatch %d %lx %ld %lx %d\\n\", tid, $queue, arg1, *(uint64 *)uptr($packet + 32),\n\
             *(uint32 *)uptr($packet + 12));\n\
         }}\n"
    )
}

/// Records with `perf record` and uprobes at the exported functions.
fn by_perf(place: &Place<'_>, library: &Path) -> Result<f64> {
    let script = place.dir.join("perf.sh");
    let perf = place.project.peers_dir().join("perf");
    let (perf, library, data) = (
        cmd::shell_quote(&perf.to_string_lossy()),
        cmd::shell_quote(&library.to_string_lossy()),
        cmd::shell_quote(&place.dir.join("perf.data").to_string_lossy()),
    );
    // In a mount namespace of its own, so that no mount remains.
    let text = format!(
        "set -e\n\
         mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing\n\
         {perf} probe -q -d 'tracer_bench:*' 2> /dev/null || true\n\
         trap \"{perf} probe -q -d 'tracer_bench:*'\" EXIT\n\
         {perf} probe -q -x {library} -a tracer_bench:reserve=hsa_queue_add_write_index_screlease\n\
         {perf} probe -q -x {library} -a tracer_bench:doorbell=hsa_signal_store_screlease\n\
         {perf} record -q -o {data} -e 'tracer_bench:*' -- \"$@\"\n"
    );
    fs::write(&script, text)?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh"]).arg(&script);
    mean_ns(place, before_dispatcher(place, command))
}

/// Runs the workload, and returns the mean time of a dispatch's submission, ns.
fn mean_ns(place: &Place<'_>, command: Command) -> Result<f64> {
    let did = burst(place, command, DISPATCHES)?;
    let submitted = did["submitted_ns"].as_f64().context("the workload printed no time")?;
    Ok(submitted / f64::from(DISPATCHES))
}

/// A program that runs beside the workload, until it is interrupted.
pub struct Beside(Child);

impl Beside {
    /// Attaches a program that does nothing at a place of a library.
    pub fn empty_program(place: &Place<'_>, library: &Path, offset: u64) -> Result<Self> {
        let mut command = Command::new(place.programs.join("examples/empty_probe"));
        command.arg(library).arg(offset.to_string());
        Self::start(command, &place.dir.join("empty.txt"), "attached")
    }

    /// Starts the program with its output in a file, and waits until the file has a line that begins with `ready`.
    fn start(mut command: Command, output: &Path, ready: &str) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let file = File::create(output).with_context(|| format!("cannot write {}", output.display()))?;
        command.stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(file);
        let mut beside = Self(command.spawn().with_context(|| format!("cannot start {name}"))?);
        let until = Instant::now() + PATIENCE;
        loop {
            let text = fs::read_to_string(output)?;
            if text.lines().any(|line| line.starts_with(ready)) {
                return Ok(beside);
            }
            if beside.0.try_wait()?.is_some() || Instant::now() > until {
                bail!("{name} was not ready: {text}");
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Interrupts the program and waits for its end.
    pub fn end(mut self) -> Result<()> {
        self.interrupt();
        self.0.wait()?;
        Ok(())
    }

    fn interrupt(&self) {
        // Its own child, which it has not waited for, so that the number is still its own.
        let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            self.interrupt();
            let _ = self.0.wait();
        }
    }
}
