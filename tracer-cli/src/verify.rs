//! `tracer verify`: judges a trace by a policy, or runs and records a command first; or tests the claims of documents.

mod claims;
mod context;
mod github;
mod json;
mod junit;
mod text;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, anyhow};
use tracer_capture::pause::guardian::Guardian;
use tracer_core::tables::Table;
use tracer_core::verify::{Judge, Outcome, Policy, Verdict};
use tracer_files::{Folder, Owner};
use tracer_store::{Placing, StoreError, Trace};

use crate::{
    cli::{Api, Capture, Detail, Record, VerdictFormat, Verify},
    exit, record,
    say::{self, print, say},
    scratch::Scratch,
};

/// Judges the trace and writes the verdict.
pub fn run(options: &Verify, guardian: Option<Guardian>) -> anyhow::Result<ExitCode> {
    if options.claims.is_some() {
        return claims::run(options);
    }
    // The policy is read before the command runs: hours later is too late to report a typing error in it.
    let policy = match policy(&options.policy) {
        Ok(policy) => policy,
        Err(error) => return Ok(misused(&error)),
    };
    // For the same reason, invalid variables of sudo are reported now.
    let owner = record::output::owner(options.as_root)?;
    let kept = recorded(options, &owner, guardian)?;
    let verdict = match judge(&policy, kept.open()) {
        Ok(verdict) => verdict,
        Err(error @ (StoreError::NotFound(_) | StoreError::NotATrace { .. })) => return Ok(misused(&error.into())),
        Err(error) => return Err(error.into()),
    };
    write(options, &owner, &kept, &verdict)?;
    Ok(ExitCode::from(match verdict.outcome {
        Outcome::Fail => exit::FAILS,
        Outcome::Warn if options.strict => exit::FAILS,
        Outcome::Inconclusive => exit::INCONCLUSIVE,
        Outcome::Pass | Outcome::Warn => 0,
    }))
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

/// A trace to judge, and the objects that keep it until then.
struct Kept {
    trace: PathBuf,
    /// The folder that was recorded. The command may have put something else at its path by now.
    folder: Option<Folder>,
    temporary: Option<Scratch>,
}

impl Kept {
    fn open(&self) -> Result<Trace, StoreError> {
        match &self.folder {
            Some(folder) => Trace::of(folder.clone()),
            None => Trace::open(&self.trace),
        }
    }
}

/// Returns the given trace, or records the command.
fn recorded(options: &Verify, owner: &Owner, guardian: Option<Guardian>) -> anyhow::Result<Kept> {
    if let Some(trace) = &options.trace {
        return Ok(Kept {
            trace: trace.clone(),
            folder: None,
            temporary: None,
        });
    }
    let temporary = match options.output {
        Some(_) => None,
        None => Some(Scratch::take()?),
    };
    let output = options.output.clone();
    let placing = Placing {
        // A folder in /tmp that no other user can enter is safest from the command that is judged.
        owner: temporary.as_ref().map_or_else(|| owner.clone(), |_| Owner::process()),
        mode: options.mode,
        overwrite: options.overwrite,
        row_memory: record::row_memory(options.row_memory),
    };
    let recorded = record::capture(
        &Record {
            output: output.or_else(|| temporary.as_ref().map(|dir| dir.path().join("trace"))),
            overwrite: options.overwrite,
            mode: options.mode,
            row_memory: options.row_memory,
            capture: Capture {
                detail: Detail::Full,
                api: Api::None,
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
        },
        placing,
        guardian,
    )?;
    Ok(Kept {
        trace: recorded.outcome.written.dir,
        folder: Some(recorded.outcome.written.folder),
        temporary,
    })
}

/// Reads the trace and judges it. Parts that can't be read make the verdict inconclusive.
fn judge(policy: &Policy, trace: Result<Trace, StoreError>) -> Result<Verdict, StoreError> {
    let trace = match trace {
        // Nothing is known of the trace, so nothing passes.
        Err(error @ StoreError::Manifest { .. }) => {
            let unknown = tracer_core::verify::Context {
                damage: vec![error.to_string()],
                ..Default::default()
            };
            return Ok(Judge::new(policy, unknown).finish());
        }
        trace => trace?,
    };
    let mut judge = Judge::new(policy, context::of(&trace));
    let mut facts = trace.facts(&Table::ALL)?.skip_damaged();
    for fact in &mut facts {
        judge.add(&fact?);
    }
    let damaged = facts.damaged().iter().map(ToString::to_string);
    judge.context().damage.extend(damaged);
    Ok(judge.finish())
}

/// Writes the verdict in every requested form.
fn write(options: &Verify, owner: &Owner, kept: &Kept, verdict: &Verdict) -> anyhow::Result<()> {
    let subject = match options.command.as_slice() {
        [] => kept.trace.display().to_string(),
        words => words
            .iter()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" "),
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
    if kept.temporary.is_some() && verdict.outcome != Outcome::Pass {
        say!("tracer: removed the trace; use `tracer verify -o DIR -- COMMAND` to keep it");
    }
    print(&content)
}

#[cfg(test)]
mod tests;
