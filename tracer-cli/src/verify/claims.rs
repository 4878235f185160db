//! `tracer verify --claims`: tests claims of the documentation on the GPU of this machine.

mod markdown;
mod place;
mod recorder;
mod text;

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, anyhow, bail};
use tracer_claims::{CLAIMS, Claim, Evidence, Report, Scenario};
use tracer_core::foreign::Terminal;
use tracer_core::words::Named;
use tracer_files::Owner;

use super::misused;
use crate::{
    cli::{VerdictFormat, Verify},
    exit,
    record::output,
    say::{self, print, say},
    scratch::Scratch,
    signals::{self, Signals},
};
use recorder::Recorder;

/// The program that runs the workloads.
const DISPATCHER: &str = "hsa-dispatch";

/// Tests the requested claims, or shows the results of an earlier test.
pub fn run(options: &Verify, scratch: Option<&Scratch>) -> anyhow::Result<ExitCode> {
    let wanted = match wanted(options) {
        Ok(wanted) => wanted,
        Err(error) => return Ok(misused(&error)),
    };
    let owner = output::owner(options.as_root)?;
    let reports = if options.from.is_empty() {
        match test(options, scratch, &owner, &wanted)? {
            Ok(report) => vec![report],
            Err(code) => return Ok(code),
        }
    } else {
        let read = |path: &PathBuf| read(path, &wanted);
        match options.from.iter().map(read).collect::<anyhow::Result<_>>() {
            Ok(reports) => reports,
            Err(error) => return Ok(misused(&error)),
        }
    };
    write(options, &owner, &reports)?;
    let codes = reports.iter().map(|report| code(report, options.strict));
    // A contradiction to the sources matters more than an unknown.
    let code = codes.min_by_key(|code| (*code == 0, *code)).unwrap_or(0);
    Ok(ExitCode::from(code))
}

/// Returns the requested claims.
fn wanted(options: &Verify) -> anyhow::Result<Vec<&'static Claim>> {
    if matches!(options.format, VerdictFormat::Junit | VerdictFormat::Github) {
        bail!("reports on claims do not support this format; use --format text, json or markdown");
    }
    if options.from.len() > 1 && (options.format == VerdictFormat::Json || options.json.is_some()) {
        bail!("--format json takes one --from file; use --format markdown for several");
    }
    let ids = options.claims.as_deref().unwrap_or_default();
    if ids.iter().any(|id| id == "all") {
        return Ok(CLAIMS.iter().collect());
    }
    let find = |id: &String| {
        Claim::by_id(id).ok_or_else(|| anyhow!("no claim {id}; the claims are C1 to C12 (`--claims=C1,C5`)"))
    };
    ids.iter().map(find).collect()
}

/// Runs the scenarios and judges them. Returns an exit code if they can't be run.
fn test(
    options: &Verify,
    scratch: Option<&Scratch>,
    owner: &Owner,
    wanted: &[&'static Claim],
) -> anyhow::Result<Result<Report, ExitCode>> {
    let Some(dispatcher) = dispatcher(&options.command)? else {
        say!(
            "tracer: cannot find {DISPATCHER}, which makes the workloads, beside tracer or on PATH; build it with \
             `cargo xtask build`, or give its command: `sudo tracer verify --claims -- /path/to/{DISPATCHER}`"
        );
        return Ok(Err(ExitCode::from(exit::NOT_FOUND)));
    };
    let dir = folder(options, scratch, owner)?;
    signals::block_on(async {
        let signals = Signals::new()?;
        record(Recorder { options, dir, signals }, &dispatcher, wanted).await
    })
}

/// Returns the folder for the traces. A separate recorder writes each trace, so the folder must belong to the owner.
fn folder(options: &Verify, scratch: Option<&Scratch>, owner: &Owner) -> anyhow::Result<PathBuf> {
    let Some(dir) = &options.output else {
        let dir = scratch.context("there is no folder for the traces")?.path();
        // The parent folder is sticky: no other user can have put another folder there.
        std::os::unix::fs::chown(dir, Some(owner.uid()), None).context("changing the owner of a folder")?;
        return Ok(dir.to_owned());
    };
    let mode = options.mode.folder().as_raw_mode();
    let make = || fs::DirBuilder::new().recursive(true).mode(mode).create(dir);
    let made = owner.run(make).flatten();
    made.with_context(|| format!("cannot create the folder {}", dir.display()))?;
    Ok(dir.clone())
}

async fn record(
    mut recorder: Recorder<'_>,
    dispatcher: &[OsString],
    wanted: &[&'static Claim],
) -> anyhow::Result<Result<Report, ExitCode>> {
    let mut evidence = Evidence::default();
    let mut place = place::Place::default();
    if let Some(command) = recorder.options.control.as_deref() {
        let words = ["/bin/sh", "-c", command].map(OsString::from);
        say!("tracer: control: {}", Terminal(command));
        let done = match recorder.record("control", false, &words).await? {
            Ok(done) => done,
            Err(code) => return Ok(Err(code)),
        };
        if let Some(reason) = done.failed {
            log::warn!("the control command failed: {reason}");
        }
        place.control(command, &done.observed);
        evidence.control = Some(done.observed);
    }
    for &scenario in Scenario::ALL {
        if !wanted.iter().any(|claim| claim.scenario == scenario) {
            continue;
        }
        let workload = scenario.workload().iter().map(OsString::from);
        let words: Vec<OsString> = dispatcher.iter().cloned().chain(workload).collect();
        say!("tracer: {}: {}", scenario.name(), scenario.workload().join(" "));
        let done = match recorder.record(scenario.name(), scenario.with_calls(), &words).await? {
            Ok(done) => done,
            Err(code) => return Ok(Err(code)),
        };
        // If no kernel can be launched at all, every other scenario would only report the same.
        if let (Some(reason), Scenario::Launches) = (&done.failed, scenario) {
            say!("tracer: cannot test the claims here: {}", Terminal(reason));
            return Ok(Err(ExitCode::from(exit::FAILED)));
        }
        place.scenario(&done);
        match done.failed {
            Some(reason) => drop(evidence.failed.insert(scenario, reason)),
            None => drop(evidence.runs.insert(scenario, done.observed)),
        }
    }
    evidence.product = place.product();
    let verdicts = wanted.iter().map(|claim| tracer_claims::judge(claim, &evidence));
    Ok(Ok(Report::new(place.finish(dispatcher), verdicts.collect())))
}

/// Returns the command that workloads are appended to; `None` if none was given and none is found.
fn dispatcher(given: &[OsString]) -> anyhow::Result<Option<Vec<OsString>>> {
    if !given.is_empty() {
        return Ok(Some(given.to_vec()));
    }
    let own = std::env::current_exe().context("finding this program's folder")?;
    let beside = own.parent().map(Path::to_owned);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = beside.into_iter().chain(std::env::split_paths(&paths));
    let found = folders.find_map(|folder| Some(folder.join(DISPATCHER)).filter(|file| file.is_file()));
    Ok(found.map(|file| vec![file.into_os_string()]))
}

/// Reads a result of `--json` and keeps the requested claims.
fn read(path: &Path, wanted: &[&'static Claim]) -> anyhow::Result<Report> {
    let text = fs::read(path).with_context(|| format!("cannot read the report {}", path.display()))?;
    let report: Report = serde_json::from_slice(&text)
        .with_context(|| format!("{} is not a result of `tracer verify --claims --json`", path.display()))?;
    let asked = |id: &str| wanted.iter().any(|claim| claim.id == id);
    let claims = report.claims.into_iter().filter(|claim| asked(&claim.id));
    Ok(Report::new(report.place, claims.collect()))
}

/// Writes the reports in every requested form. JSON: docs/claims.schema.json.
fn write(options: &Verify, owner: &Owner, reports: &[Report]) -> anyhow::Result<()> {
    if let (Some(path), [report]) = (&options.json, reports) {
        tracer_files::write(owner, path, options.mode, say::json(report)?.as_bytes())
            .with_context(|| format!("cannot write the report to {}", path.display()))?;
    }
    match options.format {
        VerdictFormat::Json => reports.iter().try_for_each(|report| print(&say::json(report)?)),
        VerdictFormat::Markdown => print(&markdown::write(reports)),
        _ => reports.iter().try_for_each(|report| print(&text::write(report))),
    }
}

/// Returns the exit code of a report.
fn code(report: &Report, strict: bool) -> u8 {
    let tally = report.tally;
    let decided = tally.holds + tally.contradicted;
    if tally.against_sources > 0 {
        exit::FAILS
    } else if tally.inconclusive > 0 || decided == 0 || strict && tally.not_tested > 0 {
        exit::INCONCLUSIVE
    } else {
        0
    }
}

#[cfg(test)]
mod tests;
