//! Records scenarios, each with a `tracer record` of its own: a claim is tested by commands that a user could run, too.

use std::{
    ffi::OsString,
    io::Write,
    path::{Path, PathBuf},
    process::{ExitCode, Output, Stdio},
};

use anyhow::Context;
use tracer_capture::target::launch::Process;
use tracer_claims::{Observed, Observer};
use tracer_core::tables::Table;
use tracer_store::{StoreError, Trace, manifest::Manifest};

use crate::{
    cli::Verify,
    exit,
    signals::{Signals, Wish},
    verify::context,
};

/// The first line of the summary that `tracer record` prints at its end.
const SUMMARY: &str = "target     ";
/// Maximum number of lines that are shown of a failed command's messages.
const MAX_LINES: usize = 3;

/// A recorder of scenarios.
pub struct Recorder<'a> {
    /// The options of `tracer verify`.
    pub options: &'a Verify,
    /// The folder for the traces.
    pub dir: PathBuf,
    /// The signals to this process.
    pub signals: Signals,
}

/// A completed recording.
pub struct Done {
    /// What the command did.
    pub observed: Observed,
    /// The manifest of the trace.
    pub manifest: Manifest,
    /// The standard output of the command.
    pub said: String,
    /// Why the command did not succeed; `None` if it did.
    pub failed: Option<String>,
}

impl Recorder<'_> {
    /// Records a command, with its calls of HIP and HSA if `calls` is set. Returns an exit code if the recording failed, or if the
    /// user stopped it.
    pub async fn record(
        &mut self,
        name: &str,
        calls: bool,
        command: &[OsString],
    ) -> anyhow::Result<Result<Done, ExitCode>> {
        let dir = self.dir.join(format!("{name}.trace"));
        let Some(output) = self.run(&dir, calls, command).await? else {
            return Ok(Err(ExitCode::from(exit::FORCED)));
        };
        let complaint = String::from_utf8_lossy(&output.stderr);
        let code = exit::of_status(output.status);
        let trace = match Trace::open(&dir) {
            Ok(trace) => trace,
            Err(StoreError::NotFound(_)) => {
                // The recorder's own messages say what is wrong and how to fix it.
                let _ = std::io::stderr().write_all(&output.stderr);
                return Ok(Err(ExitCode::from(code)));
            }
            Err(error) => return Err(error.into()),
        };
        log::info!("{complaint}");
        Ok(Ok(Done {
            observed: observe(&trace)?,
            manifest: trace.manifest().clone(),
            said: String::from_utf8_lossy(&output.stdout).into_owned(),
            failed: (code != 0).then(|| reason(code, &complaint)),
        }))
    }

    /// Runs `tracer record`; returns `None` if the user stopped it.
    async fn run(&mut self, dir: &Path, calls: bool, command: &[OsString]) -> anyhow::Result<Option<Output>> {
        let own = std::env::current_exe().context("finding this program")?;
        let mut record = tokio::process::Command::new(own);
        record.args(["record", "--detail", "full", "-o"]).arg(dir);
        record.args(["--api", if calls { "all" } else { "none" }]);
        let options = self.options;
        record.args(options.overwrite.then_some("--overwrite"));
        record.args(options.as_root.then_some("--as-root"));
        record.args(["--pause-limit", &options.pause_limit.to_string()]);
        record.args(["--mode", &options.mode.to_string(), "--"]).args(command);
        record
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = record.spawn().context("starting a recorder")?;
        let process = Process::open(child.id().unwrap_or_default()).context("opening a recorder's process")?;
        let mut output = std::pin::pin!(child.wait_with_output());
        let mut ended = false;
        loop {
            tokio::select! {
                output = &mut output => {
                    let output = output.context("waiting for a recorder")?;
                    return Ok((!ended).then_some(output));
                }
                wish = self.signals.next(Some(&process)) => match wish {
                    // The recorder received the signal, too. It ends its command, and with it this loop.
                    Wish::End => ended = true,
                    Wish::Force => return Ok(None),
                },
            }
        }
    }
}

/// Reads a trace. A part that can't be read is damage, which leaves every claim open.
fn observe(trace: &Trace) -> anyhow::Result<Observed> {
    let mut observer = Observer::new(context::of(trace));
    let mut facts = trace.facts(&Table::ALL)?.skip_damaged();
    for fact in &mut facts {
        observer.add(&fact?);
    }
    let damage = facts.damaged().iter().map(ToString::to_string).collect();
    Ok(observer.finish(damage))
}

/// Returns why a command did not succeed, from its messages before the recorder's summary.
fn reason(code: u8, complaint: &str) -> String {
    let own = complaint.lines().take_while(|line| !line.starts_with(SUMMARY));
    let lines: Vec<&str> = own.map(str::trim).filter(|line| !line.is_empty()).collect();
    match &lines[lines.len().saturating_sub(MAX_LINES)..] {
        [] => format!("exit code {code}"),
        last => format!("exit code {code}: {}", last.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_the_words_of_the_command() {
        let complaint =
            "one\ntwo\n\nhsa-dispatch: no GPU\nfix: plug one in\ntarget     hsa-dispatch (exit 3)\nlosses 0\n";
        assert_eq!(
            reason(3, complaint),
            "exit code 3: two; hsa-dispatch: no GPU; fix: plug one in"
        );
        assert_eq!(reason(139, "target     x\n"), "exit code 139");
    }
}
