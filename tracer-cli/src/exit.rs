//! Exit codes: the command's own code if there is one, otherwise a code for the failure, by the conventions of `env` and `timeout`.

use std::{
    io,
    os::unix::process::ExitStatusExt,
    process::{ExitCode, ExitStatus},
};

use tracer_capture::CaptureError;

/// The verdict is "fail".
pub const FAILS: u8 = 1;
/// The arguments are invalid.
pub const USAGE: u8 = 2;
/// The verdict is "inconclusive": the evidence does not suffice.
pub const INCONCLUSIVE: u8 = 3;
/// The command exited with 0, and a process created a compute queue for which no doorbell probe was attached.
pub const NOT_PROBED: u8 = 124;
/// tracer itself failed.
pub const FAILED: u8 = 125;
/// The command cannot be run.
pub const CANNOT_RUN: u8 = 126;
/// The command does not exist.
pub const NOT_FOUND: u8 = 127;
/// A second Ctrl-C ended the recording: 128 + SIGINT.
pub const FORCED: u8 = 130;

/// Converts the command's status to an exit code as a shell does.
pub fn of_status(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED)
}

/// Returns the exit code for an error.
pub fn of_error(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(match error.downcast_ref() {
        Some(CaptureError::Command { source, .. }) if source.kind() == io::ErrorKind::NotFound => NOT_FOUND,
        Some(CaptureError::Command { .. }) => CANNOT_RUN,
        _ => FAILED,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_128_and_more() {
        assert_eq!(of_status(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(of_status(ExitStatus::from_raw(9)), 137);
    }
}
