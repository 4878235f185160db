//! What the tracer writes to its own streams. Nothing here panics, and nobody who stops reading ends a recording.
//!
//! `print!` and `eprintln!` panic when the reader of a pipe is gone (`tracer record ... 2>&1 | true`). [`say!`] writes to
//! standard error and ignores failures: there is no place left to report them to. [`print()`] writes a result to standard
//! output; a reader that has seen enough (`| head`) is no failure.

use std::{
    fmt,
    io::{self, Write},
};

use anyhow::Context;
use tracer_core::foreign::Lines;

/// Writes a line to standard error. Foreign text in it must be escaped ([`tracer_core::foreign`]).
macro_rules! say {
    ($($arg:tt)*) => {
        $crate::say::line(format_args!($($arg)*))
    };
}

/// Writes a line to standard error, in one piece where the kernel takes it.
pub fn line(text: fmt::Arguments<'_>) {
    words(&format!("{text}\n"));
}

/// Writes text as it is to standard error.
pub fn words(text: &str) {
    // Whoever read it is gone, or its disk is full. The work goes on.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Reports a failure of the tracer, whose sentence may quote anything.
pub fn error(error: &anyhow::Error) {
    line(format_args!("tracer: {}", Lines(&format!("{error:#}"))));
}

/// Writes a result to standard output.
///
/// # Errors
/// If it can't be written. That nobody reads it any more is no error.
pub fn print(result: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(result.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.context("writing the result"),
    }
}

/// Sets up the log of the tracer's own crates on standard error; messages of other crates are of no use to a user.
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
