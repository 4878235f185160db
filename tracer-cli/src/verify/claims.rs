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

use anyhow::{Context, anyhow};
use tracer_claims::{CLAIMS, Claim, Evidence, Report, Scenario};
use tracer_core::foreign::{Json, Terminal};
use tracer_core::words::Named;
use tracer_files::Owner;

use super::misused;
use crate::{
    cli::{VerdictFormat, Verify},
    exit,
    record::output,
    say::{print, say},
    scratch::Scratch,
    signals::Signals,
};
use recorder::{Recorded, Recorder};

/// The program that runs the workloads.
const DISPATCHER: &str = "hsa-dispatch";

/// Tests the requested claims, or shows the results of an earlier test.
pub fn run(options: &Verify) -> anyhow::Result<ExitCode> {
    let wanted = match wanted(options) {
        Ok(wanted) => wanted,
        Err(error) => return Ok(misused(&error)),
    };
    let owner = output::owner(options.as_root)?;
    let reports = if options.from.is_empty() {
        match test(options, &owner, &wanted)? {
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
    Ok(ExitCode::from(
        codes.min_by_key(|code| (*code == 0, *code)).unwrap_or(0),
    ))
}

/// Returns the requested claims.
fn wanted(options: &Verify) -> anyhow::Result<Vec<&'static Claim>> {
    if matches!(options.format, VerdictFormat::Junit | VerdictFormat::Github) {
        return Err(anyhow!(
            "reports on claims do not support this format; use --format text, json or markdown"
        ));
    }
    if options.from.len() > 1 && (options.format == VerdictFormat::Json || options.json.is_some()) {
        return Err(anyhow!(
            "--format json takes one --from file; use --format markdown for several"
        ));
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
fn test(options: &Verify, owner: &Owner, wanted: &[&'static Claim]) -> anyhow::Result<Result<Report, ExitCode>> {
    let Some(dispatcher) = dispatcher(&options.command)? else {
        say!(
            "tracer: cannot find {DISPATCHER}, which makes the workloads, beside tracer or on PATH; build it with \
             `cargo xtask build`, or give its command: `sudo tracer verify --claims -- /path/to/{DISPATCHER}`"
        );
        return Ok(Err(ExitCode::from(exit::NOT_FOUND)));
    };
    let (dir, _temporary) = folder(options, owner)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting tokio")?;
    runtime.block_on(async {
        let recorder = Recorder {
            dir,
            overwrite: options.overwrite,
            mode: options.mode,
            as_root: options.as_root,
            pause_limit: options.pause_limit,
            signals: Signals::new()?,
        };
        record(recorder, options.control.as_deref(), &dispatcher, wanted).await
    })
}

/// Returns the folder for the traces, and what removes it if they are not kept. A separate recorder writes each trace, so the
/// folder must belong to the owner.
fn folder(options: &Verify, owner: &Owner) -> anyhow::Result<(PathBuf, Option<Scratch>)> {
    let Some(dir) = &options.output else {
        let temporary = Scratch::take()?;
        // The parent folder is sticky: no other user can have put another folder there.
        std::os::unix::fs::chown(temporary.path(), Some(owner.uid()), None)
            .context("changing the owner of a folder")?;
        return Ok((temporary.path().to_owned(), Some(temporary)));
    };
    let mode = options.mode.folder().as_raw_mode();
    let make = || fs::DirBuilder::new().recursive(true).mode(mode).create(dir);
    let made = owner.run(make).flatten();
    made.with_context(|| format!("cannot create the folder {}", dir.display()))?;
    Ok((dir.clone(), None))
}

async fn record(
    mut recorder: Recorder,
    control: Option<&str>,
    dispatcher: &[OsString],
    wanted: &[&'static Claim],
) -> anyhow::Result<Result<Report, ExitCode>> {
    let mut evidence = Evidence::default();
    let mut place = place::Place::default();
    if let Some(command) = control {
        let words = ["/bin/sh", "-c", command].map(OsString::from);
        say!("tracer: control: {}", Terminal(command));
        match recorder.record("control", false, &words).await? {
            Recorded::Stopped(code) => return Ok(Err(code)),
            Recorded::Done(done) => {
                if let Some(reason) = done.failed {
                    log::warn!("the control command failed: {reason}");
                }
                place.control(command, &done.observed);
                evidence.control = Some(done.observed);
            }
        }
    }
    for scenario in Scenario::ALL {
        if !wanted.iter().any(|claim| claim.scenario == Some(scenario)) {
            continue;
        }
        let workload = scenario.workload().iter().map(OsString::from);
        let words: Vec<OsString> = dispatcher.iter().cloned().chain(workload).collect();
        say!("tracer: {}: {}", scenario.name(), scenario.workload().join(" "));
        match recorder.record(scenario.name(), scenario.with_calls(), &words).await? {
            Recorded::Stopped(code) => return Ok(Err(code)),
            Recorded::Done(done) => {
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

/// Writes the reports in every requested form.
fn write(options: &Verify, owner: &Owner, reports: &[Report]) -> anyhow::Result<()> {
    if let (Some(path), [report]) = (&options.json, reports) {
        tracer_files::write(owner, path, options.mode, json(report)?.as_bytes())
            .with_context(|| format!("cannot write the report to {}", path.display()))?;
    }
    match options.format {
        VerdictFormat::Json => reports.iter().try_for_each(|report| print(&json(report)?)),
        VerdictFormat::Markdown => print(&markdown::write(reports)),
        _ => reports.iter().try_for_each(|report| print(&text::write(report))),
    }
}

/// Formats the report for programs: docs/claims.schema.json.
fn json(report: &Report) -> anyhow::Result<String> {
    Ok(format!("{}\n", Json(&serde_json::to_string_pretty(report)?)))
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
