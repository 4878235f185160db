//! A recorded run: a workload of the dispatcher, on a GPU, with a runtime.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;
use tracer_common::record::LossSource;
use tracer_core::{
    backend::Backend,
    tables::{
        ApiCall, ApiStats, CodeObject, Copy, Dispatch, DispatchRun, Doorbell, DoorbellRun, Fact, GpuTime, OtherPacket,
        Proxy, Queue, Request, Stack, Table, Unread,
    },
};
use tracer_store::Trace;

use crate::{
    dispatcher::Log,
    place,
    truth::{self, Truth},
};

/// Releases of AMD's runtime, each with the simulated GPUs that it supports: one whose queues the HWS schedules, and from 6.1.2 on
/// one with the MES. A release is named by the Debian suite that ships it: ROCr 5.2.3, 6.1.2, 6.4.3 and 7.2.4.
pub const RUNTIMES: [(&str, &str); 7] = [
    ("bookworm", "gfx90a"),
    ("trixie", "gfx942"),
    ("trixie", "gfx1100"),
    ("sid", "gfx942"),
    ("sid", "gfx1100"),
    ("experimental", "gfx942"),
    ("experimental", "gfx1100"),
];

/// Newer GPUs, each with the releases that know it. Tests of what depends on the GPU use them; the others would only take longer.
pub const NEWER_GPUS: [(&str, &str); 4] = [
    ("sid", "gfx950"),
    ("sid", "gfx1201"),
    ("experimental", "gfx950"),
    ("experimental", "gfx1201"),
];

/// Returns each release once, with one of its GPUs. The GPU changes with `turn` and from release to release, so that tests with
/// different turns cover all pairs.
pub fn each_release(turn: usize) -> impl Iterator<Item = (&'static str, &'static str)> {
    let releases = RUNTIMES.chunk_by(|(one, _), (other, _)| one == other);
    releases
        .enumerate()
        .map(move |(number, pairs)| pairs[(turn + number) % pairs.len()])
}

/// The description of a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The Debian suite whose runtime is used, one of [`RUNTIMES`].
    pub suite: &'static str,
    /// Whether the program uses HIP, of the same suite, instead of the HSA runtime.
    pub hip: bool,
    /// The simulated GPU.
    pub asic: &'static str,
    /// More options for the simulator.
    pub sim: Vec<&'static str>,
    /// The dispatcher's workload with its options.
    pub workload: Vec<&'static str>,
    /// `--backend` of the recording.
    pub backend: &'static str,
    /// `--detail` of the recording.
    pub detail: &'static str,
    /// `--api` of the recording.
    pub api: &'static str,
    /// `--api-rows` of the recording; `None` for tracer's default.
    pub api_rows: Option<&'static str>,
    /// `--row-memory` of the recording, in MiB; `None` for tracer's default.
    pub row_memory: Option<&'static str>,
    /// `--buffer` of the recording, in MiB; `None` for tracer's default.
    pub buffer: Option<&'static str>,
    /// Whether the recorder also prints each event (`--log`).
    pub prints_events: bool,
    /// More environment variables.
    pub env: Vec<(&'static str, OsString)>,
    /// A program and its arguments that run the dispatcher; `None`: the simulator runs it directly.
    pub through: Vec<OsString>,
}

/// The results of a run.
pub struct Run {
    /// The folder with every file of the run.
    pub dir: TempDir,
    /// The recorder's output and exit code.
    pub output: Output,
    /// The rows of the trace, read back.
    pub facts: Vec<Fact>,
    /// The trace.
    pub trace: Trace,
    /// `tracer report --format json`.
    pub report: serde_json::Value,
    /// What the simulated device saw.
    pub truth: Truth,
    /// The dispatcher's log; `None` if it wrote no log.
    pub log: Option<Log>,
}

impl Scenario {
    /// Returns a scenario of a workload, with defaults for everything else.
    #[must_use]
    pub fn new(suite: &'static str, asic: &'static str, workload: &[&'static str]) -> Self {
        Self {
            suite,
            hip: false,
            asic,
            sim: Vec::new(),
            workload: workload.to_vec(),
            backend: "ebpf",
            detail: "full",
            api: "none",
            api_rows: None,
            row_memory: None,
            buffer: None,
            prints_events: false,
            env: Vec::new(),
            through: Vec::new(),
        }
    }

    /// Returns a scenario of a workload through HIP.
    #[must_use]
    pub fn hip(suite: &'static str, asic: &'static str, workload: &[&'static str]) -> Self {
        Self {
            hip: true,
            ..Self::new(suite, asic, workload)
        }
    }

    /// Makes the recording do without eBPF: by this backend.
    #[must_use]
    pub fn without_ebpf(mut self, backend: &'static str) -> Self {
        (self.backend, self.detail) = (backend, "dispatch");
        self
    }

    /// Adds a tool between the program and its queues. `mode` is the tool's mode (see hsa-intercept); if empty, the tool passes
    /// packets on unchanged.
    #[must_use]
    pub fn intercepted(mut self, mode: &str) -> Self {
        let tool = place::programs().join("libhsa_intercept.so");
        self.env.push(("HSA_TOOLS_LIB", tool.into_os_string()));
        self.env.push(("HSA_INTERCEPT", mode.into()));
        self
    }

    /// Records the scenario. Panics with the output unless the command succeeded.
    #[must_use]
    pub fn record(&self) -> Run {
        let mut run = self.record_any();
        for _ in 1..ATTEMPTS {
            if !run.passed_over() {
                break;
            }
            run = self.record_any();
        }
        let said = String::from_utf8_lossy(&run.output.stderr);
        assert!(
            run.output.status.success(),
            "{self:?} ended with {}:\n{said}",
            run.output.status
        );
        run
    }

    /// Records the scenario, whatever the command's exit code is.
    #[must_use]
    pub fn record_any(&self) -> Run {
        let dir = folder();
        let output = self.command(&dir).output().expect("tracer runs");
        Run::read(dir, output)
    }

    /// Returns `tracer record -- kfd-sim -- hsa-dispatch`: the simulator and its namespace are inside the recording.
    #[must_use]
    pub fn command(&self, dir: &TempDir) -> Command {
        let mut command = Command::new(place::programs().join("tracer"));
        command
            .args([
                "record",
                "--backend",
                self.backend,
                "--detail",
                self.detail,
                "--api",
                self.api,
                "-o",
            ])
            .arg(dir.path().join("t.trace"))
            .args(self.api_rows.into_iter().flat_map(|classes| ["--api-rows", classes]))
            .args(self.row_memory.into_iter().flat_map(|mib| ["--row-memory", mib]))
            .args(self.buffer.into_iter().flat_map(|mib| ["--buffer", mib]))
            .args(self.prints_events.then_some("--log"))
            .arg("--")
            .args(self.simulated(dir.path()))
            .envs(self.env.iter().cloned());
        command
    }

    /// Returns the command of the dispatcher on the simulated GPU. Both write their reports into the folder.
    #[must_use]
    pub fn simulated(&self, dir: &Path) -> Vec<OsString> {
        self.simulated_with(dir, &[])
    }

    /// Returns the same command, with more folders visible to it.
    #[must_use]
    pub fn simulated_with(&self, dir: &Path, visible: &[&Path]) -> Vec<OsString> {
        let at = |name: &str| dir.join(name).into_os_string();
        let (programs, kernels) = (place::programs(), place::kernels());
        let mut words = vec![programs.join("kfd-sim").into_os_string()];
        let mut add = |given: &[&OsStr]| words.extend(given.iter().map(OsString::from));
        let root = if self.hip {
            place::rootfs(&format!("{}-hip", self.suite))
        } else {
            place::rootfs(self.suite)
        };
        add(&["--root".as_ref(), root.as_ref()]);
        add(&["--asic".as_ref(), self.asic.as_ref()]);
        for option in &self.sim {
            add(&[option.as_ref()]);
        }
        add(&["--truth".as_ref(), &at("truth.jsonl")]);
        add(&["--kernels".as_ref(), kernels.as_ref()]);
        for visible in [&programs, &kernels, dir].iter().chain(visible) {
            add(&["--bind".as_ref(), visible.as_ref()]);
        }
        add(&["--".as_ref()]);
        for word in &self.through {
            add(&[word]);
        }
        add(&[programs.join("hsa-dispatch").as_ref()]);
        add(&["--kernels".as_ref(), kernels.as_ref()]);
        if self.hip {
            add(&["--api".as_ref(), "hip".as_ref()]);
        }
        add(&["--json".as_ref(), &at("did.json")]);
        add(&["--log".as_ref(), &at("log.jsonl")]);
        for word in &self.workload {
            add(&[word.as_ref()]);
        }
        words
    }
}

/// The most recordings of a scenario.
pub const ATTEMPTS: usize = 3;

/// Creates a folder for the files of a run.
#[must_use]
pub fn folder() -> TempDir {
    TempDir::with_prefix("tracer-e2e-").expect("a temporary directory")
}

macro_rules! rows {
    ($($(#[$doc:meta])* $name:ident: $row:ident;)+) => {
        impl Run {$(
            $(#[$doc])*
            pub fn $name(&self) -> impl Iterator<Item = &$row> {
                self.facts.iter().filter_map(|fact| match fact {
                    Fact::$row(row) => Some(row),
                    _ => None,
                })
            }
        )+}
    };
}

rows! {
    /// Returns the dispatches of the trace.
    dispatches: Dispatch;
    /// Returns the dispatches that the trace has as runs.
    dispatch_runs: DispatchRun;
    /// Returns the doorbells of the trace.
    doorbells: Doorbell;
    /// Returns the doorbells that the trace has as runs.
    doorbell_runs: DoorbellRun;
    /// Returns the queues of the trace.
    queues: Queue;
    /// Returns the code objects.
    code_objects: CodeObject;
    /// Returns the submissions to SDMA queues.
    copies: Copy;
    /// Returns the stacks of the trace.
    stacks: Stack;
    /// Returns the API calls.
    api_calls: ApiCall;
    /// Returns the API calls that were counted.
    api_stats: ApiStats;
    /// Returns the times by the GPU's clock.
    gpu_times: GpuTime;
    /// Returns the proxies of the trace.
    proxies: Proxy;
    /// Returns the packets submitted to proxies.
    requests: Request;
}

impl Run {
    /// Reads the results of a scenario whose files are in that folder, with the trace in `t.trace`.
    #[must_use]
    pub fn read(dir: TempDir, output: Output) -> Self {
        let trace = dir.path().join("t.trace");
        Self::read_trace(dir, &trace, output)
    }

    /// Does the same with another trace.
    #[must_use]
    pub fn read_trace(dir: TempDir, trace: &Path, output: Output) -> Self {
        let at = |name: &str| dir.path().join(name);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = report(trace);
        let trace = Trace::open(trace).unwrap_or_else(|error| panic!("{error}; the recorder said:\n{said}"));
        let facts = trace
            .facts(&Table::ALL)
            .expect("readable")
            .collect::<Result<_, _>>()
            .expect("no damaged part");
        Self {
            facts,
            report,
            truth: Truth::read(&at("truth.jsonl")),
            log: at("log.jsonl").exists().then(|| Log::read(&at("log.jsonl"))),
            trace,
            output,
            dir,
        }
    }

    /// Returns the packets of the trace that are no dispatches.
    pub fn packets(&self) -> impl Iterator<Item = &OtherPacket> {
        self.facts.iter().filter_map(|fact| match fact {
            Fact::Packet(row) => Some(row),
            _ => None,
        })
    }

    /// Returns whether a recording lacks only what a busy machine withholds, and prints what. A test then compares another recording;
    /// one that always lacks this fails. The trace says what it lacks, as it should (docs/limitations.md):
    ///
    /// - events at which the kernel did not run a program, and pauses because the recorder got no processor;
    /// - packets that the device took before their producer rang for them, because another producer's doorbell was later: their kind
    ///   is gone by then;
    /// - without eBPF, the packets of a queue that its program destroyed within milliseconds of the doorbell: its memory was gone.
    #[must_use]
    pub fn passed_over(&self) -> bool {
        let losses = &self.trace.manifest().losses;
        let of_machine = |source: &str| source.starts_with("missed-") || source == LossSource::HoldFailed.name();
        let overtaken = self.packets().filter(|packet| self.was_overtaken(packet)).count();
        let gone = self.doorbells().filter(|doorbell| self.was_destroyed(doorbell)).count();
        if losses.is_empty() && overtaken + gone == 0 || !losses.keys().all(|source| of_machine(source)) {
            return false;
        }
        eprintln!(
            "recorded again, as the machine was too busy: losses {losses:?}, {overtaken} packets overtaken, {gone} queues gone"
        );
        true
    }

    /// Returns whether the kind of a packet is unknown because the device took it before its doorbell, as the truth log shows.
    fn was_overtaken(&self, packet: &OtherPacket) -> bool {
        let Some(queue) = self.queues().find(|queue| queue.queue == packet.queue) else {
            return false;
        };
        let same = self.truth.queues.iter();
        let same = same.filter(|truth| (truth.pid, truth.wptr) == (queue.pid, queue.write_pointer));
        let mut taken = same.flat_map(|truth| &truth.packets);
        let before = |taken: &truth::Packet| {
            (packet.index..packet.index + packet.count).contains(&taken.index) && taken.time_ns < packet.time_ns
        };
        packet.unread == Some(Unread::Consumed) && taken.any(before)
    }

    /// Returns whether a backend without eBPF found no queue at a doorbell, and the process destroyed one soon after it.
    fn was_destroyed(&self, doorbell: &Doorbell) -> bool {
        const SOON_NS: u64 = 5_000_000;
        let soon = doorbell.time_ns..doorbell.time_ns + SOON_NS;
        let mut own = self.queues().filter(|queue| queue.pid == doorbell.pid);
        let is_sampled = matches!(self.trace.manifest().backend, Some(Backend::Perf | Backend::Ftrace));
        is_sampled
            && doorbell.queue.is_none()
            && own.any(|queue| queue.destroyed_ns.is_some_and(|at| soon.contains(&at)))
    }

    /// Returns the device's record of a queue: the first one at that address.
    #[must_use]
    pub fn truth_of(&self, queue: &Queue) -> &truth::Queue {
        let mut all = self.truth.queues.iter();
        all.find(|truth| (truth.pid, truth.wptr) == (queue.pid, queue.write_pointer))
            .unwrap_or_else(|| panic!("the device does not know {queue:?}"))
    }

    /// Returns the dispatcher's report on each queue that it created, with its handle; `None` for HIP, which does not report its
    /// queues, and for another program.
    #[must_use]
    pub fn own_queues(&self) -> Option<Vec<(u64, serde_json::Value)>> {
        self.log.as_ref()?;
        let did = self.did();
        let with_handle = |queue: &serde_json::Value| {
            let digits = queue["handle"].as_str().expect("an address");
            let handle = u64::from_str_radix(digits.trim_start_matches("0x"), 16).expect("hexadecimal");
            (handle, queue.clone())
        };
        Some(did["queues"].as_array()?.iter().map(with_handle).collect())
    }

    /// Returns the dispatcher's report.
    #[must_use]
    pub fn did(&self) -> serde_json::Value {
        let text = fs::read(self.dir.path().join("did.json")).expect("the dispatcher wrote its summary");
        serde_json::from_slice(&text).expect("the summary is JSON")
    }
}

/// Returns `tracer report --format json` of a trace.
#[must_use]
pub fn report(trace: &std::path::Path) -> serde_json::Value {
    let tracer: PathBuf = place::programs().join("tracer");
    let output = Command::new(tracer)
        .args(["report", "--format", "json"])
        .arg(trace)
        .output()
        .expect("tracer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the report is JSON")
}

/// Returns `tracer report --all --wide` of a trace: the whole report for people.
#[must_use]
pub fn report_text(trace: &std::path::Path) -> String {
    let output = Command::new(place::programs().join("tracer"))
        .args(["report", "--all", "--wide"])
        .arg(trace)
        .output()
        .expect("tracer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
