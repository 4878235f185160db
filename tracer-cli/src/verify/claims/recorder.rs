//! Records scenarios, each by a `tracer record` of its own: a claim is tested by what a user could run, too.

use std::{
    ffi::OsString,
    io::Write,
    path::{Path, PathBuf},
    process::{ExitCode, Output, Stdio},
};

use anyhow::Context;
use tracer_capture::launch::Process;
use tracer_core::claims::{Observed, Observer};
use tracer_files::Mode;
use tracer_store::{StoreError, Table, Trace, manifest::Manifest};

use crate::{
    exit,
    signals::{Signals, Wish},
    verify::context,
};

/// The first line of what `tracer record` tells at its end.
const SUMMARY: &str = "target     ";
/// Lines of a failed command's words that are shown.
const MAX_LINES: usize = 3;

/// Records scenarios.
pub struct Recorder {
    /// Where traces go.
    pub dir: PathBuf,
    /// Replace traces that are there.
    pub overwrite: bool,
    /// Permissions of the traces.
    pub mode: Mode,
    /// Run commands as root.
    pub as_root: bool,
    /// How long a process may be paused, ms.
    pub pause_limit: u32,
    /// Signals to this process.
    pub signals: Signals,
}

/// How a recording ended.
pub enum Recorded {
    /// It could not be made, or the user did not want it: with what code to exit.
    Stopped(ExitCode),
    /// There is a trace.
    Done(Box<Done>),
}

/// A recording that was made.
pub struct Done {
    /// What the command did.
    pub observed: Observed,
    /// What the trace says of itself.
    pub manifest: Manifest,
    /// Standard output of the command.
    pub said: String,
    /// Why the command did not succeed; `None` if it did.
    pub failed: Option<String>,
}

impl Recorder {
    /// Records a command, with its calls of HIP and HSA if these are wanted.
    pub async fn record(&mut self, name: &str, calls: bool, command: &[OsString]) -> anyhow::Result<Recorded> {
        let dir = self.dir.join(format!("{name}.trace"));
        let Some(output) = self.run(&dir, calls, command).await? else {
            return Ok(Recorded::Stopped(ExitCode::from(exit::FORCED)));
        };
        let complaint = String::from_utf8_lossy(&output.stderr);
        let code = exit::of_status(output.status);
        let trace = match Trace::open(&dir) {
            Ok(trace) => trace,
            Err(StoreError::NotFound(_)) => {
                // Its own words tell what is wrong and how to mend it.
                let _ = std::io::stderr().write_all(&output.stderr);
                return Ok(Recorded::Stopped(ExitCode::from(code)));
            }
            Err(error) => return Err(error.into()),
        };
        log::info!("{complaint}");
        Ok(Recorded::Done(Box::new(Done {
            observed: observe(&trace)?,
            manifest: trace.manifest().clone(),
            said: String::from_utf8_lossy(&output.stdout).into_owned(),
            failed: (code != 0).then(|| reason(code, &complaint)),
        })))
    }

    /// Runs `tracer record`; `None` if the user would not wait.
    async fn run(&mut self, dir: &Path, calls: bool, command: &[OsString]) -> anyhow::Result<Option<Output>> {
        let own = std::env::current_exe().context("finding this program")?;
        let mut record = tokio::process::Command::new(own);
        record.args(["record", "--detail", "full", "-o"]).arg(dir);
        record.args(["--api", if calls { "all" } else { "none" }]);
        for (wanted, flag) in [(self.overwrite, "--overwrite"), (self.as_root, "--as-root")] {
            record.args(wanted.then_some(flag));
        }
        record.args(["--pause-limit", &self.pause_limit.to_string()]);
        record.args(["--mode", &self.mode.to_string(), "--"]).args(command);
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
                    // The recorder got it, too: it ends its command, and this loop with it.
                    Wish::End => ended = true,
                    Wish::Force => return Ok(None),
                },
            }
        }
    }
}

/// Reads a trace. What can't be read of it is damage, which leaves every claim open.
fn observe(trace: &Trace) -> anyhow::Result<Observed> {
    let mut observer = Observer::new(context::of(trace));
    let mut facts = trace.facts(&Table::ALL)?.skip_damaged();
    for fact in &mut facts {
        observer.add(&fact?);
    }
    let damage = facts.damaged().iter().map(ToString::to_string).collect();
    Ok(observer.finish(damage))
}

/// Why a command did not succeed, from what it said before the recorder's summary.
fn reason(code: u8, complaint: &str) -> String {
    let own = complaint.lines().take_while(|line| !line.starts_with(SUMMARY));
    let lines: Vec<&str> = own.map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(MAX_LINES)..];
    match last {
        [] => format!("exit code {code}"),
        last => format!("exit code {code}: {}", last.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_in_the_commands_own_words() {
        let complaint =
            "one\ntwo\n\nhsa-dispatch: no GPU\nfix: plug one in\ntarget     hsa-dispatch (exit 3)\nlosses 0\n";
        assert_eq!(
            reason(3, complaint),
            "exit code 3: two; hsa-dispatch: no GPU; fix: plug one in"
        );
        assert_eq!(reason(139, "target     x\n"), "exit code 139");
    }
}
