//! The cost of recording for a program that maps executable files, and the time that a recording takes to end.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};

use super::{Place, median, number};
use crate::cmd;
use crate::setup::Rootfs;

/// Rounds, each with one run alone and one recorded. The median ratio counts.
const ROUNDS: usize = 3;
/// Mappings in a round that are unmapped at once, and mappings that are kept.
const UNMAPPED: usize = 20_000;
const KEPT: usize = 3_000;
/// Numbers of libraries in a long end and in a short one. The difference is the time of the additional libraries.
const MANY: usize = 11;
const FEW: usize = 1;

/// 20,000 mappings of one known file, each unmapped at once: the ratio of their time while recorded to their time alone.
pub fn unmapped_at_once(place: &Place<'_>) -> Result<f64> {
    ratio(place, &["--times", &UNMAPPED.to_string()])
}

/// 3,000 mappings of one known file that stay: the ratio of their time while recorded to their time alone.
pub fn kept(place: &Place<'_>) -> Result<f64> {
    ratio(place, &["--keep", "--times", &KEPT.to_string()])
}

fn ratio(place: &Place<'_>, options: &[&str]) -> Result<f64> {
    let loader = place.programs.join("loader");
    // A file that the recorder knows by then: the program itself.
    let words: Vec<OsString> = options.iter().map(Into::into).chain([loader.clone().into()]).collect();
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let alone = number(
            &cmd::read(Command::new(&loader).arg("--kfd").args(&words))?,
            "mapped_ns",
        )?;
        let recorded = number(&recorded(place, &format!("{round}.trace"), &words)?, "mapped_ns")?;
        eprintln!("    {alone:.0} ns alone, {recorded:.0} ns recorded");
        ratios.push(recorded / alone);
    }
    median(ratios)
}

/// Returns the time from the command's exit to the recorder's exit, s, for each library that has probes.
pub fn end_per_library(place: &Place<'_>) -> Result<f64> {
    let library = Rootfs::stable(place.project)
        .dir()
        .join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1");
    let copies = (0..MANY)
        .map(|number| copy(&library, &place.dir.join(format!("libhsa-runtime64.{number}.so"))))
        .collect::<Result<Vec<PathBuf>>>()?;
    let mut per_library = Vec::new();
    for round in 0..ROUNDS {
        let few = end_ns(place, &format!("few-{round}.trace"), &copies[..FEW])?;
        let many = end_ns(place, &format!("many-{round}.trace"), &copies)?;
        eprintln!("    {few:.0} ns for {FEW}, {many:.0} ns for {MANY}");
        per_library.push((many - few) / (MANY - FEW) as f64 / 1e9);
    }
    median(per_library)
}

fn copy(from: &Path, to: &Path) -> Result<PathBuf> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(to.to_owned())
}

fn end_ns(place: &Place<'_>, trace: &str, files: &[PathBuf]) -> Result<f64> {
    let words: Vec<OsString> = files.iter().map(Into::into).collect();
    let printed = recorded(place, trace, &words)?;
    let now = clock_gettime(ClockId::Monotonic);
    let now_ns = now.tv_sec as f64 * 1e9 + now.tv_nsec as f64;
    Ok(now_ns - number(&printed, "ended_ns")?)
}

/// Returns what the loader printed while it was recorded.
fn recorded(place: &Place<'_>, trace: &str, words: &[OsString]) -> Result<String> {
    let mut command = Command::new(place.programs.join("tracer"));
    command.args(["record", "--as-root", "-o"]).arg(place.dir.join(trace));
    command
        .arg("--")
        .arg(place.programs.join("loader"))
        .arg("--kfd")
        .args(words);
    let output = command.stdin(Stdio::null()).output().context("cannot start tracer")?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    // The exit code says whether dispatches were watched, and this program has none.
    ensure!(
        printed.contains("mapped_ns="),
        "tracer ended with {}: {said}",
        output.status
    );
    Ok(printed)
}
