//! Recordings from a container, and of one.

use anyhow::{Result, ensure};

use super::engines::Engines;
use super::rows::{self, QUERY, Row};
use super::{PROGRAM, Trial, WORKLOAD};

/// The capabilities that every recording needs (docs/security.md).
const CAPABILITIES: [&str; 7] = [
    "BPF",
    "PERFMON",
    "SYS_ADMIN",
    "SYS_PTRACE",
    "DAC_READ_SEARCH",
    "CHECKPOINT_RESTORE",
    "KILL",
];
/// Exit code of tracer if it cannot record.
const REFUSED: Option<i32> = Some(125);

impl Trial {
    /// Returns the command that runs tracer in a container of the root folder, without an image.
    fn tracer(&self, options: &[&str], capabilities: &[&str], words: &[&str]) -> Vec<String> {
        let mut all: Vec<String> = ["podman", "run", "--read-only", "--network=none", "--cap-drop=all"]
            .map(str::to_owned)
            .into();
        all.extend(capabilities.iter().map(|name| format!("--cap-add={name}")));
        all.extend(options.iter().copied().map(str::to_owned));
        let out = self.path("out") + ":/out";
        all.extend(
            [
                "-v",
                "/sys:/sys:ro",
                "-v",
                &out,
                "--rootfs",
                &self.path("root"),
                "tracer",
            ]
            .map(str::to_owned),
        );
        all.extend(words.iter().copied().map(str::to_owned));
        all
    }

    /// Without one of the capabilities, or without the host's process ids, nothing is recorded, and the error says why.
    pub fn refusals(&self, engines: &Engines) -> Result<()> {
        let record = ["record", "-a", "--duration", "1s", "-o", "/out/none.trace"];
        let refused = |options: &[&str], capabilities: &[&str], wanted: &str| -> Result<()> {
            let (code, said) = engines.says(&self.tracer(options, capabilities, &record))?;
            ensure!(
                code == REFUSED && said.contains(wanted),
                "it ended with {code:?}: {said}"
            );
            Ok(())
        };
        for missing in CAPABILITIES {
            let others: Vec<&str> = CAPABILITIES.into_iter().filter(|one| *one != missing).collect();
            let wanted = format!("the capabilities cap_{} are missing", missing.to_lowercase());
            refused(&["--rm", "--pid=host"], &others, &wanted)?;
        }
        refused(&["--rm"], &CAPABILITIES, "start its container with `--pid=host`")
    }

    /// `doctor` in a container finds that doorbells would be captured.
    pub fn doctor(&self, engines: &Engines) -> Result<()> {
        // It fails, because this machine has no rings of a kernel driver.
        let (_, said) = engines.says(&self.tracer(&["--rm", "--pid=host"], &CAPABILITIES, &["doctor"]))?;
        ensure!(said.contains("  doorbells  yes"), "doctor says: {said}");
        Ok(())
    }

    /// `record -a` in a container beside two programs in others: the same dispatches, field by field.
    pub fn records(&self, engines: &Engines) -> Result<()> {
        let before = self.logged()?;
        let record = ["record", "-a", "-o", "/out/all.trace"];
        engines.run(&self.tracer(&["-d", "--name=all", "--pid=host"], &CAPABILITIES, &record))?;
        engines.hears("podman", "all", "watching")?;
        self.program(engines, "podman", &["mixed"])?;
        self.program(engines, "podman", &WORKLOAD)?;
        engines.run(&["podman", "kill", "--signal=INT", "all"])?;
        let code = engines.run(&["podman", "wait", "all"])?;
        ensure!(code.trim() == "0", "the recorder ended with {code}");
        self.compare(engines, "out/all.trace", &before)
    }

    /// `record -- podman run`: the engine stays in the foreground, and its program is a descendant.
    pub fn foreground(&self, engines: &Engines) -> Result<()> {
        let before = self.logged()?;
        let (tracer, trace) = (self.path("root/usr/bin/tracer"), self.path("out/command.trace"));
        let record = [&tracer, "record", "-o", &trace, "--", "podman", "run"];
        engines.run(&[&record[..], &PROGRAM, &["localhost/tracer"], &WORKLOAD].concat())?;
        self.compare(engines, "out/command.trace", &before)
    }

    /// Returns the dispatches of a trace.
    pub fn recorded(&self, engines: &Engines, trace: &str) -> Result<Vec<Row>> {
        let (tracer, trace) = (self.path("root/usr/bin/tracer"), self.path(trace));
        rows::recorded(&engines.run(&[&tracer, "query", &trace, QUERY, "--format", "jsonl"])?)
    }

    /// Compares the dispatches of a trace with those that the simulator logged meanwhile.
    fn compare(&self, engines: &Engines, trace: &str, before: &[Row]) -> Result<()> {
        let mut expected = self.logged()?;
        expected.retain(|row| !before.contains(row));
        let mut recorded = self.recorded(engines, trace)?;
        // Beside the trial, others may use simulated GPUs of their own on this machine.
        let processes = rows::processes(&expected);
        recorded.retain(|row| processes.contains(&row[0]));
        let differs = expected
            .iter()
            .zip(&recorded)
            .find(|(logged, recorded)| logged != recorded);
        ensure!(differs.is_none(), "logged and recorded: {differs:?}");
        let counts = (expected.len(), recorded.len());
        ensure!(
            counts.0 > 0 && counts.0 == counts.1,
            "logged and recorded dispatches: {counts:?}"
        );
        eprintln!("==> {trace}: all of {} dispatches, field by field", counts.0);
        Ok(())
    }
}
