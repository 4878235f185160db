//! One recorded run: a workload of the dispatcher, on a GPU, with a runtime.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use tempfile::TempDir;
use tracer_core::fact::Fact;
use tracer_store::{Table, Trace};

use crate::{dispatcher::Log, place, truth::Truth};

/// What to run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Debian suite whose runtime is used: `trixie` (ROCr 6.1.2) or `sid` (6.4.3).
    pub suite: &'static str,
    /// The simulated GPU.
    pub asic: &'static str,
    /// More options of the simulator.
    pub sim: Vec<&'static str>,
    /// The dispatcher's workload with its options.
    pub workload: Vec<&'static str>,
    /// `--detail` of the recording.
    pub detail: &'static str,
}

/// What came of it.
pub struct Run {
    /// Holds every file of the run.
    pub dir: TempDir,
    /// What the recorder printed, and its exit code.
    pub output: Output,
    /// The trace, read back.
    pub facts: Vec<Fact>,
    /// The trace.
    pub trace: Trace,
    /// `tracer report --format json`.
    pub report: serde_json::Value,
    /// What the simulated device saw.
    pub truth: Truth,
    /// What the dispatcher says it did; `None` if it wrote no log.
    pub log: Option<Log>,
}

impl Scenario {
    /// A workload, with the defaults of everything else.
    #[must_use]
    pub fn new(suite: &'static str, asic: &'static str, workload: &[&'static str]) -> Self {
        Self {
            suite,
            asic,
            sim: Vec::new(),
            workload: workload.to_vec(),
            detail: "full",
        }
    }

    /// Records it; panics, with what was printed, unless the command succeeded.
    #[must_use]
    pub fn record(&self) -> Run {
        let run = self.record_any();
        let said = String::from_utf8_lossy(&run.output.stderr);
        assert!(
            run.output.status.success(),
            "{self:?} ended with {}:\n{said}",
            run.output.status
        );
        run
    }

    /// Records it, however the command ends.
    #[must_use]
    pub fn record_any(&self) -> Run {
        let dir = TempDir::with_prefix("tracer-e2e-").expect("a temporary directory");
        let output = self.command(&dir).output().expect("tracer runs");
        Run::read(dir, output)
    }

    /// `tracer record -- kfd-sim -- hsa-dispatch`: the simulator and its namespace are inside the recording.
    #[must_use]
    pub fn command(&self, dir: &TempDir) -> Command {
        let at = |name: &str| dir.path().join(name);
        let (programs, kernels) = (place::programs(), place::kernels());
        let mut command = Command::new(programs.join("tracer"));
        command
            .args(["record", "--detail", self.detail, "-o"])
            .arg(at("t.trace"))
            .arg("--");
        command
            .arg(programs.join("kfd-sim"))
            .arg("--root")
            .arg(place::rootfs(self.suite));
        command.args(["--asic", self.asic]).args(&self.sim);
        command
            .arg("--truth")
            .arg(at("truth.jsonl"))
            .arg("--kernels")
            .arg(&kernels);
        for visible in [&programs, &kernels, &dir.path().to_owned()] {
            command.arg("--bind").arg(visible);
        }
        command.arg("--").arg(programs.join("hsa-dispatch"));
        command
            .arg("--kernels")
            .arg(&kernels)
            .arg("--json")
            .arg(at("did.json"))
            .arg("--log")
            .arg(at("log.jsonl"));
        command.args(&self.workload);
        command
    }
}

impl Run {
    /// Reads what a recording left in `dir`: t.trace, truth.jsonl, and log.jsonl if the dispatcher ran.
    #[must_use]
    pub fn read(dir: TempDir, output: Output) -> Self {
        let at = |name: &str| dir.path().join(name);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let trace = Trace::open(&at("t.trace")).unwrap_or_else(|error| panic!("{error}; the recorder said:\n{said}"));
        let facts = trace
            .facts(&Table::ALL)
            .expect("readable")
            .collect::<Result<_, _>>()
            .expect("no damaged part");
        Self {
            facts,
            report: report(&at("t.trace")),
            truth: Truth::read(&at("truth.jsonl")),
            log: at("log.jsonl").exists().then(|| Log::read(&at("log.jsonl"))),
            trace,
            output,
            dir,
        }
    }

    /// What the dispatcher says it did.
    #[must_use]
    pub fn did(&self) -> serde_json::Value {
        let text = fs::read(self.dir.path().join("did.json")).expect("the dispatcher wrote its summary");
        serde_json::from_slice(&text).expect("the summary is JSON")
    }
}

/// `tracer report --format json` of a trace.
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
