//! Fuzzing with libFuzzer and the stable compiler: LLVM's own pass inserts the coverage counters.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cargo;
use crate::cmd;
use crate::project::Project;

const PACKAGE: &str = "tracer-fuzz";

/// The flags that `cargo fuzz` passes to the compiler, except those that stable rustc lacks: counters at every edge, traced
/// comparisons, and detection of arithmetic overflow.
const RUSTFLAGS: [&str; 8] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Ccodegen-units=1",
    "-Cdebug-assertions=yes",
    "-Coverflow-checks=yes",
];

/// Longest input: every interesting case fits into a few kilobytes.
const MAX_LEN: u32 = 16 << 10;
/// Time limit of an input. An input that takes longer is a finding, and so is one that takes more memory.
const TIMEOUT_SECONDS: u32 = 10;
const MEMORY_MIB: u32 = 1024;

/// What to fuzz, and for how long.
#[derive(Args)]
pub struct Fuzz {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Only run this input: one that was found before.
    #[arg(long, value_name = "FILE", requires = "target")]
    input: Option<PathBuf>,
    /// The target; without it all of them, one after the other.
    target: Option<String>,
}

/// Builds the targets and runs them.
pub fn run(project: &Project, wanted: &Fuzz) -> Result<()> {
    let folder = project.target().join("fuzz");
    let program = build(project, &folder)?;
    let names = cmd::read(&mut Command::new(&program))?;
    let names: Vec<&str> = match &wanted.target {
        Some(target) if names.lines().any(|name| name == target) => vec![target],
        Some(target) => bail!(
            "there is no target {target}, but {}",
            names.trim_end().replace('\n', ", ")
        ),
        None => names.lines().collect(),
    };
    names
        .into_iter()
        .try_for_each(|name| target(&program, &folder, name, wanted))
}

/// Builds the program with its counters. Code that runs during the build (build scripts) has none.
fn build(project: &Project, folder: &Path) -> Result<PathBuf> {
    let host = project.toolchain().host()?;
    let mut cargo = cargo::plain(project);
    cargo
        .env("RUSTFLAGS", RUSTFLAGS.join(" "))
        .env("CARGO_TARGET_DIR", folder)
        .args(["build", "--release", "--package", PACKAGE, "--bin", "fuzz"])
        .args(["--features", "libfuzzer", "--target", host]);
    cmd::run(&mut cargo).context("libFuzzer is C++: building it needs g++ (apt install build-essential)")?;
    Ok(folder.join(host).join("release/fuzz"))
}

fn target(program: &Path, folder: &Path, name: &str, wanted: &Fuzz) -> Result<()> {
    let corpus = folder.join("corpus").join(name);
    let findings = folder.join("findings").join(name);
    for dir in [&corpus, &findings] {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    }
    let mut fuzzer = Command::new(program);
    fuzzer
        .env("TRACER_FUZZ_TARGET", name)
        .arg(format!("-timeout={TIMEOUT_SECONDS}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-artifact_prefix={}/", findings.display()));
    match &wanted.input {
        Some(input) => fuzzer.arg(input),
        None => fuzzer
            .env("TRACER_FUZZ_SEEDS", &corpus)
            .arg(format!("-max_total_time={}", wanted.seconds))
            .arg(format!("-max_len={MAX_LEN}"))
            .arg("-print_final_stats=1")
            .arg(&corpus),
    };
    cmd::run(&mut fuzzer).with_context(|| {
        format!(
            "{name}: the findings are in {0}; to reproduce one: cargo xtask fuzz {name} --input FILE",
            findings.display()
        )
    })
}
