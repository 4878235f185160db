//! `tracer verify`: judges a trace by a policy, or runs and records a command first; or tests the claims of documents.

mod claims;
mod context;
mod github;
mod json;
mod junit;
mod text;

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, anyhow};
use tracer_capture::pause::guardian::Guardian;
use tracer_core::foreign;
use tracer_core::profile::Profile;
use tracer_core::tables::Table;
use tracer_core::verify::{Judge, Outcome, Policy, Verdict};
use tracer_files::{Folder, Owner};
use tracer_import::rocpd;
use tracer_store::{StoreError, Trace};

use crate::{
    cli::{Backend, Capture, Detail, Record, VerdictFormat, Verify},
    exit, record,
    say::{self, print, say},
    scratch::Scratch,
};

/// Judges the trace and writes the verdict. A trace that is not kept is in `scratch`.
pub fn run(options: &Verify, guardian: Option<Guardian>, scratch: Option<&Scratch>) -> anyhow::Result<ExitCode> {
    if options.claims.is_some() {
        return claims::run(options, scratch);
    }
    // The policy is read before the command runs: hours later is too late to report a typing error in it.
    let policy = match policy(&options.policy) {
        Ok(policy) => policy,
        Err(error) => return Ok(misused(&error)),
    };
    // For the same reason, invalid variables of sudo are reported now.
    let owner = record::output::owner(options.as_root)?;
    let trace = match &options.trace {
        Some(trace) => Trace::open(trace),
        None => Trace::of(recorded(options, &owner, guardian, scratch)?),
    };
    let profile = match profile(&options.against) {
        Ok(profile) => profile,
        Err(error) => return Ok(misused(&error)),
    };
    let verdict = match judge(&policy, profile, trace) {
        Ok(verdict) => verdict,
        Err(error @ (StoreError::NotFound(_) | StoreError::NotATrace { .. })) => return Ok(misused(&error.into())),
        Err(error) => return Err(error.into()),
    };
    write(options, &owner, &verdict)?;
    Ok(ExitCode::from(match strictly(verdict.outcome, options.strict) {
        Outcome::Fail => exit::FAILS,
        Outcome::Inconclusive => exit::INCONCLUSIVE,
        Outcome::Pass | Outcome::Warn => 0,
    }))
}

/// Returns what an outcome means: with `--strict`, a warning is a failure.
fn strictly(outcome: Outcome, strict: bool) -> Outcome {
    match outcome {
        Outcome::Warn if strict => Outcome::Fail,
        outcome => outcome,
    }
}

fn misused(error: &anyhow::Error) -> ExitCode {
    say::error(error);
    ExitCode::from(exit::USAGE)
}

/// Finds a policy: first by the name of a built-in policy, otherwise as a file.
fn policy(wanted: &Path) -> anyhow::Result<Policy> {
    if let Some(text) = wanted.to_str().and_then(Policy::built_in) {
        return Ok(Policy::parse(text)?);
    }
    let name = wanted.display();
    let text = fs::read_to_string(wanted).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let names: Vec<_> = Policy::names().collect();
            anyhow!(
                "no policy {name}; name an existing TOML file, or one of {}",
                names.join(", ")
            )
        }
        _ => anyhow!("cannot read the policy {name}: {error}; check the path and its permissions"),
    })?;
    Policy::parse(&text).with_context(|| format!("cannot use the policy {name}"))
}

/// Reads the profiles of a run, each of some of its processes; `None` if there is none.
fn profile(files: &[PathBuf]) -> anyhow::Result<Option<Profile>> {
    let mut all: Option<Profile> = None;
    for file in files {
        let profile = rocpd::read(file).with_context(|| format!("cannot use {}", foreign::line(file.display())))?;
        match &mut all {
            Some(all) => all.add(profile),
            None => all = Some(profile),
        }
    }
    Ok(all)
}

/// Records the command. Returns the folder that was recorded: the command may have put something else at its path by now.
fn recorded(
    options: &Verify,
    owner: &Owner,
    guardian: Option<Guardian>,
    scratch: Option<&Scratch>,
) -> anyhow::Result<Folder> {
    let temporary = scratch.map(|dir| dir.path().join("trace"));
    // A folder in /tmp that no other user can enter is safest from the command that is judged.
    let owner = scratch.map_or_else(|| owner.clone(), |_| Owner::process());
    let record = Record {
        script: false,
        library: None,
        output: temporary.or_else(|| options.output.clone()),
        overwrite: options.overwrite,
        mode: options.mode,
        row_memory: options.row_memory,
        log: false,
        capture: Capture {
            backend: Backend::Ebpf,
            detail: Detail::Full,
            api: Vec::new(),
            api_rows: Vec::new(),
            stacks: false,
            stack_limit: 0,
            no_follow: options.no_follow,
            as_root: options.as_root,
            debuginfod: false,
            pid: Vec::new(),
            all: false,
            pause_limit: options.pause_limit,
            buffer: options.buffer,
        },
        duration: None,
        command: options.command.clone(),
    };
    Ok(record::capture(&record, owner, guardian)?.outcome.written.folder)
}

/// Reads the trace and judges it. Parts that can't be read make the verdict inconclusive.
fn judge(policy: &Policy, profile: Option<Profile>, trace: Result<Trace, StoreError>) -> Result<Verdict, StoreError> {
    let begin = |context| {
        let judge = Judge::new(policy, context);
        match profile {
            Some(profile) => judge.against(profile),
            None => judge,
        }
    };
    let trace = match trace {
        // Nothing is known of the trace, so nothing passes.
        Err(error @ StoreError::Manifest { .. }) => {
            let mut judge = begin(Default::default());
            judge.context().damage.push(error.to_string());
            return Ok(judge.finish());
        }
        trace => trace?,
    };
    let mut judge = begin(context::of(&trace));
    let mut facts = trace.facts(&Table::ALL)?.skip_damaged();
    while let Some(fact) = facts.next_row() {
        judge.add(fact?);
    }
    let damaged = facts.damaged().iter().map(ToString::to_string);
    judge.context().damage.extend(damaged);
    judge
        .context()
        .unread
        .extend(facts.damaged().iter().map(|damage| damage.table));
    Ok(judge.finish())
}

/// Writes the verdict in every requested form.
fn write(options: &Verify, owner: &Owner, verdict: &Verdict) -> anyhow::Result<()> {
    let subject = match &options.trace {
        Some(trace) => trace.display().to_string(),
        None => options.command.join(OsStr::new(" ")).to_string_lossy().into_owned(),
    };
    let file = |path: &Path, content: anyhow::Result<String>| {
        tracer_files::write(owner, path, options.mode, content?.as_bytes())
            .with_context(|| format!("cannot write the verdict to {}", path.display()))
    };
    if let Some(path) = &options.junit {
        file(path, junit::write(&subject, verdict, options.strict))?;
    }
    if let Some(path) = &options.json {
        file(path, json::write(&subject, verdict))?;
    }
    let content = match options.format {
        VerdictFormat::Text => text::write(&subject, verdict),
        VerdictFormat::Json => json::write(&subject, verdict)?,
        VerdictFormat::Junit => junit::write(&subject, verdict, options.strict)?,
        VerdictFormat::Github => {
            // The steps of a job share the file, and each appends to it.
            if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY") {
                let text = github::summary(&subject, verdict);
                tracer_files::append(owner, Path::new(&path), options.mode, text.as_bytes())
                    .with_context(|| format!("cannot write the step summary to {}", Path::new(&path).display()))?;
            }
            github::annotation(verdict, options.strict)
        }
        VerdictFormat::Markdown => github::summary(&subject, verdict),
    };
    if options.needs_scratch() && verdict.outcome != Outcome::Pass {
        say!("tracer: removed the trace; use `tracer verify -o DIR -- COMMAND` to keep it");
    }
    print(&content)
}

#[cfg(test)]
mod tests;
