//! The time that a recording takes to end, by the number of its probes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

use super::mappings::recorded;
use super::{Place, RUNTIME, median, number};
use crate::setup::Rootfs;

/// Rounds. The median counts.
const ROUNDS: usize = 9;
/// Numbers of libraries in a long end and in a short one. The difference is the time of the additional libraries.
const MANY: usize = 11;
const FEW: usize = 1;

/// Returns the time from the command's exit to the recorder's exit, s, for each library that has probes.
pub fn per_library(place: &Place<'_>) -> Result<f64> {
    let copies = (0..MANY)
        .map(|number| copy(place, number))
        .collect::<Result<Vec<PathBuf>>>()?;
    let mut per_library = Vec::new();
    for round in 0..ROUNDS {
        let few = end_ns(place, &format!("few-{round}.trace"), &[], &copies[..FEW])?;
        let many = end_ns(place, &format!("many-{round}.trace"), &[], &copies)?;
        eprintln!("    {few:.0} ns for {FEW}, {many:.0} ns for {MANY}");
        per_library.push((many - few) / (MANY - FEW) as f64 / 1e9);
    }
    median(per_library)
}

/// Returns the time from the command's exit to the recorder's exit, ms, if one runtime library has its usual probes.
pub fn usual(place: &Place<'_>) -> Result<f64> {
    milliseconds(place, &[])
}

/// Returns the same if every function of the library's interface has two probes, which are more than 300.
pub fn every_function(place: &Place<'_>) -> Result<f64> {
    milliseconds(place, &["--api", "all"])
}

fn milliseconds(place: &Place<'_>, options: &[&str]) -> Result<f64> {
    let library = [copy(place, 0)?];
    let rounds = (0..ROUNDS).map(|round| Ok(end_ns(place, &format!("{round}.trace"), options, &library)? / 1e6));
    median(rounds.collect::<Result<_>>()?)
}

/// Copies the runtime library; each copy is a library of its own.
fn copy(place: &Place<'_>, number: usize) -> Result<PathBuf> {
    let from = Rootfs::stable(place.project).dir().join(RUNTIME);
    let to = place.dir.join(format!("libhsa-runtime64.{number}.so"));
    fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(to)
}

fn end_ns(place: &Place<'_>, trace: &str, options: &[&str], files: &[impl AsRef<Path>]) -> Result<f64> {
    let words: Vec<OsString> = files.iter().map(|file| file.as_ref().into()).collect();
    let printed = recorded(place, trace, options, &words)?;
    Ok(monotonic_ns() - number(&printed, "ended_ns")?)
}

/// Returns the time of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}
