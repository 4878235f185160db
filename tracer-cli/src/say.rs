//! Output to tracer's own streams. Nothing here panics, and a reader that goes away does not end a recording.
//!
//! `print!` and `eprintln!` panic when the reader of a pipe is gone (`tracer record ... 2>&1 | true`). [`say!`] writes to standard
//! error and ignores failures: there is no place left to report them to. [`print()`] writes a result to standard output; a reader
//! that closes the pipe early (`| head`) is not a failure.

use std::{
    fmt,
    io::{self, Write},
};

use anyhow::Context;
use serde::Serialize;
use tracer_core::foreign::{Json, Lines};

/// Writes a line to standard error. Foreign text in it must be escaped ([`tracer_core::foreign`]).
macro_rules! say {
    ($($arg:tt)*) => {
        $crate::say::line(format_args!($($arg)*))
    };
}

/// Writes a line to standard error, in one piece if the kernel takes it in one piece.
pub fn line(text: fmt::Arguments<'_>) {
    words(&format!("{text}\n"));
}

/// Writes text unchanged to standard error.
pub fn words(text: &str) {
    // The reader is gone, or its disk is full. The work continues.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Reports a failure of tracer. The message may quote any text.
pub fn error(error: &anyhow::Error) {
    line(format_args!("tracer: {}", Lines(&format!("{error:#}"))));
}

/// Writes a result to standard output.
///
/// # Errors
/// Returns an error if the result can't be written. A reader that is gone is not an error.
pub fn print(result: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(result.as_bytes()).and_then(|()| out.flush());
    unless_gone(written.map_err(Into::into)).context("writing the result")
}

/// Takes the failure to write to a reader that closed the pipe early (`| head`) for success.
///
/// # Errors
/// Returns every other error.
pub fn unless_gone(written: anyhow::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if is_closed_pipe(&error) => Ok(()),
        done => done,
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Formats a JSON document, with a newline at the end.
///
/// # Errors
/// Returns an error if the value can't be represented in JSON.
pub fn json(value: &impl Serialize) -> io::Result<String> {
    Ok(format!("{}\n", Json(&serde_json::to_string_pretty(value)?)))
}

/// Sets up the log of tracer's own crates on standard error. Messages of other crates are not useful to a user.
pub fn log(level: log::LevelFilter) {
    env_logger::Builder::new()
        .filter_level(log::LevelFilter::Warn)
        .filter_module("tracer", level)
        .format(|out, record| {
            let text = record.args().to_string();
            writeln!(out, "[{:<5}] {}", record.level(), Lines(&text))
        })
        .init();
}

pub(crate) use say;
