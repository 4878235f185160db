//! One recorded run: a workload of the dispatcher, on a GPU, with a runtime.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
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
        let dir = folder();
        let output = self.command(&dir).output().expect("tracer runs");
        Run::read(dir, output)
    }

    /// `tracer record -- kfd-sim -- hsa-dispatch`: the simulator and its namespace are inside the recording.
    #[must_use]
    pub fn command(&self, dir: &TempDir) -> Command {
        let mut command = Command::new(place::programs().join("tracer"));
        command
            .args(["record", "--detail", self.detail, "-o"])
            .arg(dir.path().join("t.trace"))
            .arg("--")
            .args(self.simulated(dir.path()));
        command
    }

    /// The dispatcher on the simulated GPU: both write what they did into the folder.
    #[must_use]
    pub fn simulated(&self, dir: &Path) -> Vec<OsString> {
        let at = |name: &str| dir.join(name).into_os_string();
        let (programs, kernels) = (place::programs(), place::kernels());
        let mut words = vec![programs.join("kfd-sim").into_os_string()];
        let mut add = |given: &[&OsStr]| words.extend(given.iter().map(OsString::from));
        add(&["--root".as_ref(), place::rootfs(self.suite).as_ref()]);
        add(&["--asic".as_ref(), self.asic.as_ref()]);
        for option in &self.sim {
            add(&[option.as_ref()]);
        }
        add(&["--truth".as_ref(), &at("truth.jsonl")]);
        add(&["--kernels".as_ref(), kernels.as_ref()]);
        for visible in [&programs, &kernels, dir] {
            add(&["--bind".as_ref(), visible.as_ref()]);
        }
        add(&["--".as_ref(), programs.join("hsa-dispatch").as_ref()]);
        add(&["--kernels".as_ref(), kernels.as_ref()]);
        add(&["--json".as_ref(), &at("did.json")]);
        add(&["--log".as_ref(), &at("log.jsonl")]);
        for word in &self.workload {
            add(&[word.as_ref()]);
        }
        words
    }
}

/// A folder for the files of a run.
#[must_use]
pub fn folder() -> TempDir {
    TempDir::with_prefix("tracer-e2e-").expect("a temporary directory")
}

impl Run {
    /// What came of a scenario whose files are in that folder, its trace as `t.trace`.
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
