//! The cost of recording for a program that maps executable files.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::{Place, median, number};
use crate::cmd;

/// Rounds, each with one run alone and one recorded. The median ratio counts.
const ROUNDS: usize = 3;
/// Mappings in a round that are unmapped at once, and mappings that are kept.
const UNMAPPED: usize = 20_000;
const KEPT: usize = 3_000;
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
        let recorded = number(&recorded(place, &format!("{round}.trace"), &[], &words)?, "mapped_ns")?;
        eprintln!("    {alone:.0} ns alone, {recorded:.0} ns recorded");
        ratios.push(recorded / alone);
    }
    median(ratios)
}

/// Returns what the loader printed while it was recorded with these options.
pub fn recorded(place: &Place<'_>, trace: &str, options: &[&str], words: &[OsString]) -> Result<String> {
    let mut command = Command::new(place.programs.join("tracer"));
    command.args(["record", "--as-root"]).args(options);
    command.arg("-o").arg(place.dir.join(trace));
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
